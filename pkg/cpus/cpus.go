// Package cpus chooses which CPUs a sandbox's program sees: as many as its rate
// (--cpus) can keep busy, so that runtimes, build tools and numeric libraries
// start as many threads as they get CPU time for. The rate is the limit; this
// only tells of it, and a program may ask for more CPUs again.
//
// Live sandboxes of one host are spread over its CPUs. Each holds a read lock on
// one byte per CPU of a file that everybody may open, and a new one takes the
// CPUs with the fewest: such a lock needs no permission to write, any caller can
// ask for it, and it is gone with its holder, however that ends.
package cpus

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// file carries the locks: one of the kernel's own, opened for its inode alone.
// Whoever holds locks here to no purpose only makes others share a CPU.
const file = "/proc/sys/kernel/overflowgid"

// Set is a choice of CPUs. The zero value is the caller's own CPUs.
type Set struct {
	List []int // in order; nil when there was nothing to choose
	fd   int
	held bool
}

// Count is how many CPUs a rate in thousandths can keep busy, and at most how
// many the caller has.
func Count(milli int64) int {
	var own unix.CPUSet
	have := 1
	if unix.SchedGetaffinity(0, &own) == nil {
		have = max(own.Count(), 1)
	}
	return int(min((milli+999)/1000, int64(have)))
}

// Take chooses n CPUs of the caller's. The search begins at a place that differs
// between callers. It cannot fail: without locks the choice is by seed alone.
func Take(n, seed int) *Set {
	var own unix.CPUSet
	if unix.SchedGetaffinity(0, &own) != nil || own.Count() <= n || n <= 0 {
		return &Set{}
	}
	var all []int
	for cpu := 0; len(all) < own.Count(); cpu++ {
		if own.IsSet(cpu) {
			all = append(all, cpu)
		}
	}
	start := seed % len(all)
	all = append(all[start:], all[:start]...)
	s := &Set{}
	fd, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		s.fd, s.held = fd, true
	}
	s.choose(all, n)
	return s
}

// levels is how many sandboxes of one CPU are told apart; beyond them the choice
// is by seed.
const levels = 4

// maxCPUs is the size of unix.CPUSet.
const maxCPUs = 1024

// choose takes the first n that the fewest others have. Two that look at the
// same moment may take the same.
func (s *Set) choose(all []int, n int) {
	taken := map[int]bool{}
	take := func(cpu, level int) {
		taken[cpu] = true
		if s.held {
			l := unix.Flock_t{Type: unix.F_RDLCK, Start: int64(level*maxCPUs + cpu), Len: 1}
			unix.FcntlFlock(uintptr(s.fd), unix.F_OFD_SETLK, &l)
		}
	}
	for level := range levels {
		for _, cpu := range all {
			if len(taken) < n && !taken[cpu] && (level == levels-1 || s.free(cpu, level)) {
				take(cpu, level)
			}
		}
	}
	for cpu := range maxCPUs {
		if taken[cpu] {
			s.List = append(s.List, cpu)
		}
	}
}

// free asks for a write lock, which needs no permission as long as it is only
// asked for, and is in conflict with a read lock of anybody else's.
func (s *Set) free(cpu, level int) bool {
	l := unix.Flock_t{Type: unix.F_WRLCK, Start: int64(level*maxCPUs + cpu), Len: 1}
	return s.held && unix.FcntlFlock(uintptr(s.fd), unix.F_OFD_GETLK, &l) == nil && l.Type == unix.F_UNLCK
}

// String is the list as a cpuset takes it, "" for the caller's own.
func (s *Set) String() string {
	text := make([]string, len(s.List))
	for i, cpu := range s.List {
		text[i] = strconv.Itoa(cpu)
	}
	return strings.Join(text, ",")
}

// Mask is the set as sched_setaffinity(2) takes it, nil for the caller's own.
func (s *Set) Mask() []byte {
	if len(s.List) == 0 {
		return nil
	}
	// In whole words: the kernel reads no part of one.
	mask := make([]byte, s.List[len(s.List)-1]/64*8+8)
	for _, cpu := range s.List {
		mask[cpu/8] |= 1 << (cpu % 8)
	}
	return mask
}

// Release lets others have the CPUs.
func (s *Set) Release() {
	if s.held {
		unix.Close(s.fd)
		s.held = false
	}
}
