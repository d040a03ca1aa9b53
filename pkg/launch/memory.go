package launch

import (
	"bytes"
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// used is what a process holds. Its shared pages may be counted by others too.
type used struct{ own, shared int64 }

// memory is what all processes, their descriptors and the scratch hold, and
// whether it was measured in time. The quick sum counts a page once for each
// process that shares it; only when that is above limit is the exact one taken,
// for which the kernel walks the page tables.
//
// What it cannot see: buffers of pipes and of unix sockets, System V segments
// that nobody has mapped, files without a path that are on their way through
// a socket, or mapped and not touched with no descriptor left, and swapped-out pages
// of shared memory that has no descriptor (those of files count all the same).
func (t *tree) memory(limit int64, l *look) (int64, bool) {
	quick, ok := t.sum(quickly, limit, l)
	if !ok || quick.total(false) <= limit {
		return quick.total(false), ok
	}
	// While processes that share pages end, the last ones hold them alone: one
	// pass may count a page several times. Two in a row hardly do.
	soon := exact.begin(l, nil)
	defer soon.end()
	// Both may wait for locks of the program's, and then nobody asks them anything:
	// the whole look would seem to have had no time of its own, and be late only at
	// the end of all waiting.
	l.take()
	soon.take()
	first, ok := t.sum(exactly, limit, soon)
	if ok && first.total(true) <= limit {
		return first.total(true), true
	}
	second, ok2 := t.sum(exactly, limit, soon)
	if !ok || !ok2 {
		return quick.total(false), false
	}
	return min(first.total(true), second.total(true)), true
}

// held is one sample.
type held struct {
	used
	scratch int64
	files   int64 // without a path, by the descriptors that are open
	kernel  int64 // buffers of sockets, and file locks
}

// total adds up. Such a file that is mapped as well is in files and in shared;
// the exact total takes the larger of the two, else a program would seem to
// hold twice what it does.
func (h *held) total(exact bool) int64 {
	if exact {
		return h.own + h.scratch + h.kernel + max(h.shared, h.files)
	}
	return h.own + h.scratch + h.kernel + h.shared + h.files
}

// sum takes one sample, each process by measure.
func (t *tree) sum(measure func(task int) (used, bool), limit int64, l *look) (held, bool) {
	h := held{scratch: t.scratch()}
	locks, ok := t.locks(limit, l)
	if !ok {
		return h, false
	}
	list, ok := t.processes(l)
	if !ok {
		return h, false
	}
	seen := map[uint64]bool{}
	for _, p := range list {
		if l.over() {
			return h, false
		}
		u, ok := p.memory(measure, l)
		if !ok {
			return h, false
		}
		h.own += u.own
		h.shared += u.shared
		files, open := t.files(&p, seen, l)
		if !open {
			return h, false
		}
		h.files += files
	}
	sockets, ok := t.sockets(everySocket, limit-locks-h.total(false), l)
	h.kernel = sockets + locks
	return h, ok
}

// memory measures a process by the first of its threads that has memory. It has
// ended, or is about to, when none has; a program that replaces its threads
// faster than they can be looked at is not measured in time.
//
// A child of vfork(2) has its parent's memory, which counts once.
func (p *process) memory(measure func(task int) (used, bool), l *look) (used, bool) {
	for last := false; ; {
		for _, task := range p.tasks {
			if u, ok := measure(task); ok && l.same(p.parent, task, kcmpVM) {
				return used{}, true
			} else if ok {
				return u, true
			}
		}
		if last || len(p.tasks) == 0 {
			return used{}, true
		}
		if l.over() {
			return used{}, false
		}
		p.tasks = tasksOf(p.pid)
		// A first thread without memory makes no others.
		last = len(p.tasks) == 1 && p.tasks[0] == p.pid
	}
}

// Types of kcmp(2).
const (
	kcmpVM    = 1 // KCMP_VM
	kcmpFiles = 2 // KCMP_FILES
)

// same says whether two tasks certainly share something. The kernel lets it wait while
// one of the two executes a program and what that is not to have is closed
// (exec_update_lock in fs/exec.c), which takes as long as a program likes.
func (l *look) same(a, b, what int) (yes bool) {
	l.during(func() { yes = kcmp(a, b, what) })
	return yes
}

var kcmp = func(a, b, what int) bool { // for tests
	r, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), uintptr(what), 0, 0, 0)
	return errno == 0 && r == 0
}

// quickly reads the kernel's counters. Page tables count: a program can have
// many times more of them than of memory that they lead to. So do pages that are
// swapped out, or a program would hold all that the host has room to swap. It is
// false for a thread that has none any more.
func quickly(task int) (used, bool) { return quicklyIn(procOf(task)) }

func quicklyIn(proc string) (used, bool) {
	v, found := kilobytes(proc+"/status", "RssAnon:", "VmPTE:", "RssShmem:", "VmSwap:")
	return used{own: v[0] + v[1] + v[3], shared: v[2]}, found >= 3
}

// exactly counts a page that n processes share as the n-th part for each.
func exactly(task int) (used, bool) { return exactlyIn(procOf(task)) }

func exactlyIn(proc string) (used, bool) {
	v, found := kilobytes(proc+"/smaps_rollup", "Pss_Anon:", "Pss_Shmem:", "SwapPss:")
	if found < 2 { // it has ended, or is not to be read: no way out of the limit
		return quicklyIn(proc)
	}
	tables, _ := kilobytes(proc+"/status", "VmPTE:")
	return used{own: v[0] + v[2] + tables[0], shared: v[1]}, true
}

// scratch is what the sandbox's own tmpfs holds, whose places are all one file
// system. /tmp is a mount point of ours that the program cannot replace.
func (t *tree) scratch() int64 {
	var fs unix.Statfs_t
	if err := unix.Statfs("/proc/"+strconv.Itoa(t.init)+"/root/tmp", &fs); err != nil || fs.Type != unix.TMPFS_MAGIC {
		return 0
	}
	return int64(fs.Blocks-fs.Bfree) * fs.Bsize
}

// shmemDevice is the device of memfd_create(2)'s files, on which nothing else
// lies that has a path.
func shmemDevice() (uint64, error) {
	fd, err := unix.MemfdCreate("device", unix.MFD_CLOEXEC)
	if err != nil {
		return 0, os.NewSyscallError("memfd_create", err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, os.NewSyscallError("fstat", err)
	}
	return uint64(st.Dev), nil
}

// files is what the files without a path hold that a process has open, each
// once, and whether its descriptors may be seen.
func (t *tree) files(p *process, seen map[uint64]bool, l *look) (sum int64, ok bool) {
	for task := range p.tables(l) {
		if l.over() {
			return sum, false
		}
		dir, ok := t.openTask(task, "fd", l)
		if !ok {
			return sum, false
		}
		if dir < 0 {
			continue
		}
		n, ok := t.filesOf(dir, seen)
		if !ok {
			return sum, false
		}
		sum += n
	}
	return sum, true
}

// filesOf is files for one thread. They are looked at, never opened. A thread
// that ends meanwhile has none any more; whoever shared them has them still.
func (t *tree) filesOf(dir int, seen map[uint64]bool) (sum int64, ok bool) {
	f := os.NewFile(uintptr(dir), "fd")
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if t.owned != nil {
		more, ok := t.ownedFiles(dir, names, seen)
		return more, ok && (err == nil || ended(err))
	}
	for _, name := range names {
		var st unix.Stat_t
		if unix.Fstatat(dir, name, &st, 0) != nil || uint64(st.Dev) != t.shmem || seen[st.Ino] {
			continue
		}
		seen[st.Ino] = true
		sum += st.Blocks * 512
	}
	return sum, err == nil || ended(err)
}

// ownedFiles is filesOf where the descriptors are not the caller's to look at.
func (t *tree) ownedFiles(dir int, names []string, seen map[uint64]bool) (sum int64, ok bool) {
	found, err := t.owned.Stat(dir, names)
	if err != nil {
		return 0, false
	}
	for i := range found {
		st := &found[i]
		if st.Mask == 0 || unix.Mkdev(st.Dev_major, st.Dev_minor) != t.shmem || seen[st.Ino] {
			continue
		}
		seen[st.Ino] = true
		sum += int64(st.Blocks) * 512
	}
	return sum, true
}

// ended says whether /proc failed because the thread is gone.
func ended(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) }

func procOf(task int) string { return "/proc/" + strconv.Itoa(task) }

// kilobytes reads fields of a file of the form "Name:  N kB", in bytes, and says
// how many there were.
func kilobytes(path string, fields ...string) (values []int64, found int) {
	values = make([]int64, len(fields))
	text, err := os.ReadFile(path)
	if err != nil {
		return values, 0
	}
	for line := range bytes.Lines(text) {
		for i, f := range fields {
			value, ok := bytes.CutPrefix(line, []byte(f))
			if !ok {
				continue
			}
			if kb := bytes.Fields(value); len(kb) > 0 {
				values[i] = number(kb[0], 10) << 10
				found++
			}
		}
	}
	return values, found
}
