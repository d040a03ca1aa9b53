package launch

import "golang.org/x/sys/unix"

// Without a control group for the CPU every process of a sandbox has a share of
// its own. A crowd then leaves next to nothing to others, and not only they
// suffer: before Linux 6.5 (commit d15121be7485) what a failed fork(2) leaves is
// freed by a kernel thread that has to compete with the crowd. On Linux 6.1 a
// fork bomb of 64 processes that all only fail took 400 MB to 1 GB of the host's
// memory a second. So a crowd is made nice, and a program cannot take that back:
// that needs RLIMIT_NICE or CAP_SYS_NICE.

// crowdSize is how many running threads for each CPU of --cpus are no crowd.
// More of them together weigh as much as that many, as far as there are values.
const crowdSize = 4

// weight is what a thread of nice value 0 weighs; each value more is a fifth
// less (sched_prio_to_weight of kernel/sched/core.c).
const weight, lessByNice = 1024, 1.25

// maxNice is the highest value there is.
const maxNice = 19

// crowdNice is the value at which that many threads weigh no more than allowed do.
func crowdNice(running, allowed int) int {
	nice := 0
	for each := float64(weight); float64(running)*each > float64(allowed*weight) && nice < maxNice; nice++ {
		each /= lessByNice
	}
	return nice
}

// calm makes a crowd nice, while it is still being counted: the more of it runs,
// the longer each look takes. It does so by process groups, all of a group in one
// call, for one that sleeps now may run later. What is started inherits the value,
// which never falls again. Nobody outside is in a group of the inside's, for a
// group belongs to a session, and those of the sandbox are its own.
//
// A number that was read here may be another group's a moment later, which would
// then be nice and nothing worse; the kernel gives numbers out in turn.
func (t *tree) calm(cpus int) {
	list, _ := t.processes(new(look)) // without an end: no verdict hangs on it, and nobody waits for it
	c := crowd{list: list, groups: map[int]bool{}}
	running := 0
	for _, p := range list {
		for _, task := range p.tasks {
			runs, group := stateOf(task)
			if group > 1 {
				c.groups[group] = true
			}
			if runs {
				running++
			}
			if nice := crowdNice(running, crowdSize*cpus); nice > t.nice {
				t.nice = nice
				c.calm(nice)
			}
		}
	}
	if t.nice > 0 {
		c.calm(t.nice)
	}
}

// crowd is what one look finds.
type crowd struct {
	list   []process
	groups map[int]bool // those of the threads that were counted so far
	values map[int]int  // of all threads that are nice, before the first call of this look
}

// calm fails only for a group that is gone.
//
// A call for a group gives all of it one value, and root's makes those less nice
// that were nicer, which the kernel refuses to others: they get theirs back. To
// leave their groups out would let a crowd stay as it is by one nice member, and
// to make each thread nice by itself would miss those that are forked meanwhile.
func (c *crowd) calm(nice int) {
	if c.values == nil {
		c.values = niceValues(c.list)
	}
	for group := range c.groups {
		_ = unix.Setpriority(unix.PRIO_PGRP, group, nice)
	}
	for task, own := range c.values {
		if own > nice {
			_ = unix.Setpriority(unix.PRIO_PROCESS, task, own)
		}
	}
}

// niceValues are those of the threads that are nice. It is one call for each,
// and reads no file that a crowd makes slow.
func niceValues(list []process) map[int]int {
	values := map[int]int{}
	for _, p := range list {
		for _, task := range p.tasks {
			// The kernel's answer is 20 less the value, for an error is below 0.
			if raw, err := unix.Getpriority(unix.PRIO_PROCESS, task); err == nil && raw < 20 {
				values[task] = 20 - raw
			}
		}
	}
	return values
}

// stateOf says whether a thread runs or would like to, and its process group.
func stateOf(task int) (runs bool, group int) {
	stat, err := statOf(procOf(task))
	if err != nil || len(stat) < 3 {
		return false, 0
	}
	return string(stat[0]) == "R", int(number(stat[2], 10))
}
