package launch

import (
	"bufio"
	"bytes"
	"os"

	"golang.org/x/sys/unix"
)

// The kernel charges no cgroup for file locks and has no limit for them
// (RLIMIT_LOCKS does nothing since Linux 2.4.25): a program that locks each
// second byte of its files takes 200 MB a second of the host's memory. They can
// only be counted descriptor by descriptor; /proc/locks stops every lock of the
// host while it is read. So that is done only when the host's unreclaimable
// memory has grown by as much as would matter.

// lockSize is what a lock takes (struct file_lock), about.
const lockSize = 200

// slabs is what the kernel cannot reclaim on the whole host, -1 when it does
// not say.
func slabs() int64 {
	v, found := kilobytes("/proc/meminfo", "SUnreclaim:")
	if found == 0 {
		return -1
	}
	return v[0]
}

// locks is what the tree's locks hold, and whether that was known in time. Below
// a part of limit nothing is counted, and no more than is above it.
func (t *tree) locks(limit int64, l *look) (int64, bool) {
	now := slabs()
	if t.slabs == 0 {
		t.slabs = now
	}
	// What others have freed meanwhile must not hide what was taken here.
	t.slabs = min(t.slabs, now)
	if now >= 0 && now-t.slabs < limit/locksShare {
		return 0, true
	}
	list, ok := t.processes(l)
	if !ok {
		return 0, false
	}
	var sum int64
	for _, p := range list {
		if sum*lockSize > limit {
			break
		}
		for task := range p.tables(l) {
			n, ok := t.locksOf(task, limit/lockSize-sum, l)
			if sum += n; !ok {
				return sum * lockSize, false
			}
		}
	}
	return sum * lockSize, true
}

// locksShare of the memory limit is what the host's slabs must have grown by.
const locksShare = 4

// locksOf counts the locks behind a thread's descriptors. They last as long as
// these do: the filter refuses the other kind (F_OFD_SETLK), which a mapping or a
// message on its way keeps without any. It stops above most.
func (t *tree) locksOf(task int, most int64, l *look) (sum int64, ok bool) {
	fd, ok := t.openTask(task, "fdinfo", l)
	if fd < 0 {
		return 0, ok
	}
	dir := os.NewFile(uintptr(fd), "fdinfo")
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		if sum > most {
			break
		}
		if l.over() {
			return sum, false
		}
		info, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue // closed meanwhile
		}
		n, ok := countLocks(os.NewFile(uintptr(info), name), l)
		if sum += n; !ok {
			return sum, false
		}
	}
	return sum, true
}

// countLocks counts the lines of the form "lock: ...". There can be any number.
func countLocks(info *os.File, l *look) (n int64, ok bool) {
	defer info.Close()
	lines := bufio.NewScanner(info)
	for lines.Scan() {
		if !bytes.HasPrefix(lines.Bytes(), []byte("lock:")) {
			continue
		}
		if n++; n%1024 == 0 && l.over() {
			return n, false
		}
	}
	// The kernel needs memory for a long list, and then gives none of it.
	return n, lines.Err() == nil || ended(lines.Err())
}
