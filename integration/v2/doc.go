// Package v2 tests what only hosts with cgroup v2 have, and looks at it from
// outside: the groups of a live run, the kernel's own events, and the layouts
// in which a run must be refused by name. make test-vm brings such hosts.
package v2
