package profiles_test

import (
	"maps"
	"testing"

	"sandglass/pkg/seccomp/edges"
	"sandglass/pkg/seccomp/profile"
	"sandglass/pkg/seccomp/sysnum"
)

// onArm64 has the calls of the default profile that arm64 has no number for, and
// what its C libraries call in their place; "" where there is nothing to replace:
// they are of x86 alone.
var onArm64 = map[string]string{
	"access": "faccessat", "alarm": "setitimer", "arch_prctl": "", "chmod": "fchmodat", "chown": "fchownat", "creat": "openat",
	"dup2": "dup3", "epoll_create": "epoll_create1", "epoll_wait": "epoll_pwait", "eventfd": "eventfd2", "fork": "clone",
	"futimesat": "utimensat", "getdents": "getdents64", "getpgrp": "getpgid", "inotify_init": "inotify_init1", "lchown": "fchownat",
	"link": "linkat", "lstat": "newfstatat", "mkdir": "mkdirat", "mknod": "mknodat", "open": "openat", "pause": "ppoll",
	"pipe": "pipe2", "poll": "ppoll", "readlink": "readlinkat", "rename": "renameat2", "rmdir": "unlinkat", "select": "pselect6",
	"signalfd": "signalfd4", "stat": "newfstatat", "symlink": "symlinkat", "time": "gettimeofday", "unlink": "unlinkat",
	"uprobe": "", "uretprobe": "", "utime": "utimensat", "utimes": "utimensat", "vfork": "clone",
}

// allows says whether a profile lets a call through for some arguments.
func allows(p *profile.Profile, arch, name string) bool {
	nr, ok := sysnum.Number(arch, name)
	if !ok {
		return false
	}
	for _, args := range edges.Calls(p, arch, nr) {
		if p.Decide(arch, nr, args).Kind == profile.Allow {
			return true
		}
	}
	return false
}

// TestArm64MissesNothing: whatever a program may do on amd64 it may on arm64, by
// the call of the same name, or by the one that is there in its place.
func TestArm64MissesNothing(t *testing.T) {
	p := source(t)
	left := maps.Clone(onArm64)
	for _, name := range sysnum.Names() {
		if !allows(p, "amd64", name) {
			continue
		}
		place, listed := onArm64[name]
		delete(left, name)
		switch _, there := sysnum.Number("arm64", name); {
		case there && listed:
			t.Errorf("%s is there on arm64", name)
		case there && !allows(p, "arm64", name):
			t.Errorf("%s is allowed on amd64 alone", name)
		case !there && !listed:
			t.Errorf("%s has no number on arm64, and nothing is named in its place", name)
		case place != "" && !allows(p, "arm64", place):
			t.Errorf("%s: %s, which arm64 has in its place, is not allowed there", name, place)
		}
	}
	for name := range left {
		t.Errorf("%s is listed and not allowed on amd64", name)
	}
}
