package check

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"sandglass/pkg/check/probes"
	"sandglass/pkg/policy"
	"sandglass/pkg/result"
	"sandglass/pkg/sandbox"

	"golang.org/x/sys/unix"
)

// judgePolicy reads only what the supervisor read of the live program in the
// host's /proc.
func judgePolicy(_ *bait, s *saw) verdict {
	for _, f := range [...][3]string{
		{"seccomp", "Seccomp", "2"}, {"capabilities", "NoNewPrivs", "1"},
	} {
		if got := s.readBack(f[0], f[1]); got != f[2] {
			return leak("%s is %q, not %s", f[1], got, f[2])
		}
	}
	for layer, ns := range map[string]string{"user namespace": "user", "mount": "mnt", "pid": "pid", "ipc": "ipc", "uts": "uts", "net": "net"} {
		own, err := os.Readlink("/proc/self/ns/" + ns)
		got := s.readBack(layer, ns)
		if err != nil || got == "" || got == own {
			return leak("the %s namespace is %q, the host's is %q", ns, got, own)
		}
	}
	return held("read back outside: Seccomp 2, NoNewPrivs 1, six namespaces that are not the host's")
}

func judgeIDs(_ *bait, s *saw) verdict {
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		if got := s.readBack("capabilities", set); got != "0000000000000000" {
			return leak("%s is %q", set, got)
		}
	}
	uids := strings.Fields(s.readBack("user namespace", "Uid"))
	if len(uids) != 4 || slices.Contains(uids, "0") {
		return leak("its ids on the host are %v", uids)
	}
	if os.Geteuid() == 0 && slices.Contains(strings.Fields(s.readBack("user namespace", "Groups")), "0") {
		return leak("it is in the host's group root")
	}
	return both(
		s.is("uid", "65534", "no_new_privs", "1"+probes.Done),
		s.is("setuid", "EINVAL", "setgid", "EINVAL", "setresuid", "EINVAL", "setgroups", "EPERM"),
		s.is("capset", "EPERM", "ambient", "EPERM", "securebits", "EPERM"),
		held("all five sets are empty on the host's side, host id %s", strings.Join(uids[:1], "")))
}

// shareDirectory gives the program a directory of the host to write to.
func shareDirectory(b *bait, s *sandbox.Spec) {
	dir := b.path("shared")
	os.Mkdir(dir, 0o777)
	s.Mounts = append(s.Mounts, policy.Mount{Source: dir, Target: "/shared", Write: true})
}

func judgeSetID(b *bait, s *saw) verdict {
	list, err := os.ReadDir(b.path("shared"))
	if err != nil || len(list) == 0 {
		return leak("the probe could not write to the mount: %s", s.answers["create in /shared"])
	}
	for _, e := range list {
		var st unix.Stat_t
		if err := unix.Lstat(b.path("shared/"+e.Name()), &st); err != nil || st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0 {
			return leak("%s on the host has mode %o", e.Name(), st.Mode)
		}
	}
	return both(s.is("create in /shared", probes.Done),
		s.only("chmod ", "EPERM"), s.only("fchmod ", "EPERM"), s.only("create u+s ", "EPERM"),
		s.only("setxattr ", "EPERM", "ENOSYS", "EOPNOTSUPP"))
}

// judgeCalls asks for the filter's own answer to each call of a group.
func judgeCalls(group string, s *saw) verdict {
	n := 0
	for _, c := range probes.Calls() {
		if c.Group != group {
			continue
		}
		n++
		if got := s.answers[c.Name]; got != c.Want {
			return leak("%s: %q, not %s", c.Name, got, c.Want)
		}
	}
	if n == 0 {
		return leak("no call was made")
	}
	return held("%d calls refused", n)
}

func judgeForeign(_ *bait, s *saw) verdict {
	if probes.ForeignCalls == "" {
		return held("this architecture has no second interface")
	}
	return killedBySeccomp(s)
}

// killedBySeccomp: the supervisor saw SIGSYS.
func killedBySeccomp(s *saw) verdict {
	if s.res.Outcome != result.Signaled || s.res.Signal != int(unix.SIGSYS) {
		return leak("%s %s", s.ending(), s.tail())
	}
	return held("signal %d (SIGSYS)", s.res.Signal)
}

// judgeI386: a kernel without 32-bit programs does not even start it.
func judgeI386(_ *bait, s *saw) verdict {
	if s.answers["create"] != probes.Done {
		return leak("the program could not be written: %s", s.answers["create"])
	}
	if how := s.answers["execve"]; how == "ENOEXEC" && s.res.ExitCode == 0 {
		return held("this kernel runs no such programs")
	}
	return killedBySeccomp(s)
}

func judgeTerminal(_ *bait, s *saw) verdict {
	return both(
		s.is("open terminal", probes.Done), // else nothing was tried
		s.is("open /dev/tty0", "ENOENT", "open /dev/console", "ENOENT"),
		s.is("TIOCSTI", "EPERM", "TIOCSTI with high bits", "EPERM", "TIOCLINUX", "EPERM", "TIOCSETD", "EPERM"))
}

// deviceList is the whole of /dev.
const deviceList = "fd full null random shm stderr stdin stdout urandom zero"

func judgeDevices(_ *bait, s *saw) verdict {
	return both(s.is("list", deviceList, "mknod in /dev", "EROFS"),
		s.is("mknod block", "EPERM", "mknod char", "EPERM", "mknod null", "EPERM"),
		s.only("open ", "ENOENT"),
		held("/dev is %s", deviceList))
}

// scratchPlaces are where a file may be made.
var scratchPlaces = []string{"/dev/shm", "/home/sandbox", "/out", "/tmp", "/work"}

func judgeReadOnly(_ *bait, s *saw) verdict {
	var made []string
	for _, key := range s.keys("made ") {
		made = append(made, strings.TrimPrefix(key, "made "))
	}
	if !slices.Equal(made, scratchPlaces) {
		return leak("files can be made in %s", strings.Join(made, " "))
	}
	return both(s.only("refused ", "EROFS", "EACCES", "EPERM", "ENOENT", "ENOTDIR"), s.only("chmod ", "EROFS", "EPERM"), s.only("rename ", "EROFS", "EPERM", "EACCES", "EBUSY", "EXDEV"),
		held("%d places refused, %s writable", len(s.keys("refused ")), strings.Join(made, " ")))
}

func judgeSysctl(_ *bait, s *saw) verdict {
	refused := []string{"EROFS", "EACCES", "EPERM", "ENOENT"}
	return both(s.only("/", refused...), s.is("lower oom_score_adj", "EACCES"),
		s.only("read ", append(refused, "empty")...),
		held("%s", fmt.Sprintf("%d files refused or empty", len(s.keys("/"))+len(s.keys("read ")))))
}
