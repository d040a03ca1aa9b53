// Package limits passes every limit of the sandbox from inside and asserts the
// exact verdict, what holds the limit, and what the kernel's own file says, for
// root (cgroups) and for an ordinary user (rlimits and the watchdog).
package limits
