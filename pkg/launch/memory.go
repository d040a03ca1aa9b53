package launch

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// used is what a process holds. Its shared pages may be counted by others too.
type used struct{ own, shared int64 }

// memory is what all processes, their descriptors and the scratch hold, and
// whether it was measured in time. The quick sum counts a page once for each
// process that shares it; only when that is above limit is the exact one taken,
// for which the kernel walks the page tables.
//
// What it cannot see: buffers of sockets and pipes, System V segments that
// nobody has mapped, and files without a path that are on their way through a
// socket, or mapped and not touched with no descriptor left.
func (t *tree) memory(limit int64, deadline time.Time) (int64, bool) {
	quick, ok := t.sum(quickly, deadline)
	if !ok || quick.total(false) <= limit {
		return quick.total(false), ok
	}
	// While processes that share pages end, the last ones hold them alone: one
	// pass may count a page several times. Two in a row hardly do.
	first, ok := t.sum(exactly, deadline)
	if !ok || first.total(true) <= limit {
		return first.total(true), ok
	}
	second, ok := t.sum(exactly, deadline)
	return min(first.total(true), second.total(true)), ok
}

// held is one sample.
type held struct {
	used
	scratch int64
	files   int64 // without a path, by the descriptors that are open
}

// total adds up. Such a file that is mapped as well is in files and in shared;
// the exact total takes the larger of the two, else a program would seem to
// hold twice what it does.
func (h *held) total(exact bool) int64 {
	if exact {
		return h.own + h.scratch + max(h.shared, h.files)
	}
	return h.own + h.scratch + h.shared + h.files
}

// sum takes one sample, each process by measure.
func (t *tree) sum(measure func(pid int) used, deadline time.Time) (held, bool) {
	h := held{scratch: t.scratch()}
	pids, ok := t.processes(deadline)
	seen := map[uint64]bool{}
	for _, pid := range pids {
		if time.Now().After(deadline) {
			return h, false
		}
		u := measure(pid)
		h.own += u.own
		h.shared += u.shared
		files, open := t.files(pid, seen)
		if !open && alive(pid) {
			return h, false
		}
		h.files += files
	}
	return h, ok
}

// alive says whether a process still has memory. One that has and does not let
// its descriptors be seen (PR_SET_DUMPABLE of prctl(2), a program that its user
// may not read) could hold any amount by them: it cannot be measured.
func alive(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	return err == nil && bytes.Contains(text, []byte("\nRssAnon:"))
}

// quickly reads the kernel's counters. Page tables count: a program can have
// many times more of them than of memory that they lead to.
func quickly(pid int) used {
	v, ok := kilobytes(pid, "status", "RssAnon:", "VmPTE:", "RssShmem:")
	if !ok {
		return used{}
	}
	return used{own: v[0] + v[1], shared: v[2]}
}

// exactly counts a page that n processes share as the n-th part for each.
func exactly(pid int) used {
	v, ok := kilobytes(pid, "smaps_rollup", "Pss_Anon:", "Pss_Shmem:")
	if !ok { // it has ended, or is not to be read: no way out of the limit
		return quickly(pid)
	}
	tables, _ := kilobytes(pid, "status", "VmPTE:")
	return used{own: v[0] + tables[0], shared: v[1]}
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
func shmemDevice() uint64 {
	fd, err := unix.MemfdCreate("device", unix.MFD_CLOEXEC)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0
	}
	return uint64(st.Dev)
}

// files is what the files without a path hold that a process has open, each
// once, and whether its descriptors may be seen. They are looked at, never
// opened.
func (t *tree) files(pid int, seen map[uint64]bool) (sum int64, ok bool) {
	dir, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/fd", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, false
	}
	f := os.NewFile(uintptr(dir), "fd")
	defer f.Close()
	names, err := f.Readdirnames(-1)
	for _, name := range names {
		var st unix.Stat_t
		if unix.Fstatat(dir, name, &st, 0) != nil || uint64(st.Dev) != t.shmem || seen[st.Ino] {
			continue
		}
		seen[st.Ino] = true
		sum += st.Blocks * 512
	}
	return sum, err == nil
}

// kilobytes reads fields of a file of the form "Name:  N kB", in bytes.
func kilobytes(pid int, file string, fields ...string) ([]int64, bool) {
	values := make([]int64, len(fields))
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/" + file)
	if err != nil {
		return values, false
	}
	for line := range bytes.Lines(text) {
		for i, f := range fields {
			value, ok := bytes.CutPrefix(line, []byte(f))
			if !ok {
				continue
			}
			if kb := bytes.Fields(value); len(kb) > 0 {
				n, _ := strconv.ParseInt(string(kb[0]), 10, 64)
				values[i] = n << 10
			}
		}
	}
	return values, true
}
