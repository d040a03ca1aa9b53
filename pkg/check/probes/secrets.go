package probes

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// environment prints every variable, and the environment of every process
// that /proc shows: the program's own is the least interesting one.
func environment([]string) {
	for _, kv := range os.Environ() {
		name, value, _ := strings.Cut(kv, "=")
		say("env "+name, value)
	}
	for _, path := range append(glob("/proc/[0-9]*/environ"), "/proc/1/environ") {
		read("file "+path, path)
	}
}

func glob(pattern string) []string {
	list, _ := filepath.Glob(pattern)
	return list
}

// mostRead is how much of a file a probe repeats.
const mostRead = 4096

// read says the head of a file, or why it could not be read.
func read(key, path string) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		try(key, err)
		return
	}
	defer unix.Close(fd)
	buf := make([]byte, mostRead)
	n, err := unix.Read(fd, buf)
	if err != nil {
		try(key, err)
		return
	}
	say(key, string(buf[:n]))
}

func hostname([]string) {
	read("/etc/hostname", "/etc/hostname")
	read("/proc/sys/kernel/hostname", "/proc/sys/kernel/hostname")
	var u unix.Utsname
	if try("uname", unix.Uname(&u)) {
		say("nodename", unix.ByteSliceToString(u.Nodename[:]))
		say("domainname", unix.ByteSliceToString(u.Domainname[:]))
	}
}

// descriptors tries every number that could be open, whatever /proc shows.
func descriptors([]string) {
	const highest = 1 << 16
	for fd := range highest {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil {
			continue
		}
		path := "/proc/self/fd/" + strconv.Itoa(fd)
		target, _ := os.Readlink(path)
		if ofRuntime(fd, target) {
			continue
		}
		say("fd "+strconv.Itoa(fd), target)
		var st unix.Stat_t // a socket or a pipe might never answer
		if fd > 2 && unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG {
			unix.Seek(fd, 0, 0)
			buf := make([]byte, mostRead)
			if n, err := unix.Read(fd, buf); err == nil {
				say("content "+strconv.Itoa(fd), string(buf[:n]))
			}
		}
	}
}

// ofRuntime tells what the Go runtime of this very process opens: its poller,
// and the file that says how many CPUs it may use.
func ofRuntime(fd int, target string) bool {
	if target == "anon_inode:[eventpoll]" || target == "anon_inode:[eventfd]" {
		return true
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	name := target[strings.LastIndexByte(target, '/')+1:]
	return err == nil && flags&unix.O_ACCMODE == unix.O_RDONLY && strings.HasPrefix(target, "/sys/fs/cgroup/") &&
		(name == "cpu.max" || name == "cpu.cfs_quota_us" || name == "cpu.cfs_period_us")
}

// ways are prefixes that lead to a host path when some root is not ours.
var ways = []string{"", "/proc/self/root", "/proc/1/root", "/proc/self/cwd/../../../../../..", "/proc/1/cwd/../../../../../.."}

// Planted is what files appends to a path for a file that it makes beside it.
const Planted = "-planted"

// files tries to read, change and replace host files by their paths.
func files(paths []string) {
	for _, path := range paths {
		for _, way := range ways {
			read("read "+way+path, way+path)
			fd, err := unix.Open(way+path, unix.O_WRONLY|unix.O_TRUNC|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
			if try("write "+way+path, err) {
				unix.Write(fd, []byte("changed"))
				unix.Close(fd)
			}
			fd, err = unix.Open(way+path+Planted, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
			if try("create beside "+way+path, err) {
				unix.Close(fd)
			}
		}
	}
}

// keyring looks for a key of the caller's, by name.
func keyring(names []string) {
	for _, ring := range []struct {
		name string
		id   int
	}{{"session", unix.KEY_SPEC_SESSION_KEYRING}, {"user", unix.KEY_SPEC_USER_KEYRING}, {"user session", unix.KEY_SPEC_USER_SESSION_KEYRING}} {
		for _, name := range names {
			id, err := unix.KeyctlSearch(ring.id, "user", name, 0)
			if !try("search "+ring.name, err) {
				continue
			}
			buf := make([]byte, mostRead)
			if n, err := unix.KeyctlBuffer(unix.KEYCTL_READ, id, buf, 0); err == nil {
				say("key in "+ring.name, string(buf[:min(n, len(buf))]))
			}
		}
	}
	_, err := unix.AddKey("user", "planted", []byte("x"), unix.KEY_SPEC_SESSION_KEYRING)
	try("add_key", err)
	read("/proc/keys", "/proc/keys")
}
