// The Go runtime's own look at the cgroup, which every start would pay for
// twice (supervisor and init), reads all of /proc/self/mountinfo. Neither
// process has work for more threads than the runtime starts with.
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

package main
