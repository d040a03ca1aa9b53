package check

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"sandglass/pkg/check/probes"
	"sandglass/pkg/sandbox"

	"golang.org/x/sys/unix"
)

// variables are the whole environment inside: the value, or "" where it
// depends on the host's interpreters or the limits.
func variables() map[string]string {
	return map[string]string{
		"HOME": "/home/sandbox", "LANG": "C.UTF-8", "TMPDIR": "/tmp", "USER": "nobody", "PATH": "",
		"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "NUMEXPR_NUM_THREADS": "1",
		"LSAN_OPTIONS": "detect_leaks=0",
	}
}

func judgeEnvironment(_ *bait, s *saw) verdict {
	got, whole := s.keys("env "), variables()
	for _, key := range got {
		want, known := whole[strings.TrimPrefix(key, "env ")]
		if !known || want != "" && want != s.answers[key] {
			return leak("%s is %q", key, s.answers[key])
		}
	}
	if s.answers["env PATH"] == "" {
		return leak("the probe did not see its own variables")
	}
	return both(s.only("file /proc/1/environ", "ENOENT", "EPERM"),
		held("%d variables, all of them the sandbox's own", len(got)))
}

func judgeHostname(_ *bait, s *saw) verdict {
	return s.is("/etc/hostname", "sandglass\n", "/proc/sys/kernel/hostname", "sandglass\n",
		"nodename", "sandglass", "domainname", "(none)")
}

// judgeRequest: only errors that come at once will do. A timeout would mean
// that packets went somewhere.
func judgeRequest(b *bait, s *saw) verdict {
	if what := b.door.arrived(); what != "" {
		return leak("%s", what)
	}
	now := []string{"ECONNREFUSED", "ENETUNREACH", "EADDRNOTAVAIL", "EAFNOSUPPORT"}
	v := both(s.is("request", "over"), s.only("query ", now...), s.only("connect ", now...))
	if v.held {
		v.seen = "no connection and no query arrived; " + v.seen
	}
	return v
}

func judgeDescriptors(_ *bait, s *saw) verdict {
	got := s.keys("fd ")
	if !slices.Equal(got, []string{"fd 0", "fd 1", "fd 2"}) {
		var list []string
		for _, fd := range got {
			list = append(list, fd+" "+s.answers[fd])
		}
		return leak("open are %s", strings.Join(list, ", "))
	}
	for _, fd := range got {
		if !strings.HasPrefix(s.answers[fd], "pipe:[") {
			return leak("%s is %s", fd, s.answers[fd])
		}
	}
	return held("0, 1 and 2, each a pipe")
}

func judgeFiles(b *bait, s *saw) verdict {
	if what := b.touched(); what != "" {
		return leak("%s", what)
	}
	if n := len(s.keys("read ")); n < len(b.files) {
		return leak("the probe tried only %d paths", n)
	}
	return held("%d files of the host, by %d paths, neither read nor changed", len(b.files), len(s.keys("read ")))
}

func judgeProcesses(_ *bait, s *saw) verdict {
	if s.answers["self"] == "" {
		return leak("the probe does not see itself")
	}
	if others := s.keys("process "); len(others) > 0 {
		return leak("%d others, such as %s: %q", len(others), others[0], s.answers[others[0]])
	}
	return held("the program alone")
}

func judgeInit(_ *bait, s *saw) verdict {
	return both(s.only("open /proc/1/", "ENOENT", "EPERM"),
		s.is("ptrace init", "EPERM", "process_vm_readv init", "EPERM", "prlimit init", "EPERM"))
}

func preyPID(b *bait) []string { return []string{strconv.Itoa(b.prey.cmd.Process.Pid)} }

func judgeSignals(b *bait, s *saw) verdict {
	if !b.prey.alive() {
		return leak("a process of the host was killed: signal %d", b.prey.end.Signal())
	}
	return s.only("", "ESRCH")
}

func judgeKeyring(b *bait, s *saw) verdict {
	v := both(s.only("search ", "EPERM"), s.is("add_key", "EPERM"))
	if keys := s.answers["/proc/keys"]; v.held && keys != "" && keys != "ENOENT" {
		return leak("/proc/keys: %q", keys)
	}
	return v
}

func judgeAbstract(b *bait, s *saw) verdict {
	if accepts(b.door.unix) {
		return leak("a connection arrived at the host's abstract socket")
	}
	return s.is("connect", "ECONNREFUSED")
}

func judgeNetwork(b *bait, s *saw) verdict {
	var devices []string
	for line := range strings.Lines(s.answers["/proc/net/dev"]) {
		if name, _, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			devices = append(devices, name)
		}
	}
	switch {
	case !slices.Equal(devices, []string{"lo"}):
		return leak("interfaces: %s", strings.Join(devices, ", "))
	case strings.Count(s.answers["/proc/net/route"], "\n") > 1:
		return leak("routes: %q", s.answers["/proc/net/route"])
	case strings.Count(s.answers["/proc/net/tcp"], "\n") != 1:
		return leak("TCP sockets: %q", s.answers["/proc/net/tcp"])
	case strings.Contains(s.answers["/proc/net/unix"], b.socketName()):
		return leak("the host's abstract socket is listed")
	}
	return held("lo alone, no route, no socket")
}

func segmentArgs(b *bait) []string { return []string{strconv.Itoa(b.shmKey), strconv.Itoa(b.shmID)} }

func judgeIPC(_ *bait, s *saw) verdict {
	return s.is("shmget", "ENOENT", "shmat", "EINVAL", "segments", "0")
}

// judgeExecutable also looks at the host's file: whatever was answered, it must
// be as it was when this process started from it.
func judgeExecutable(b *bait, s *saw) verdict {
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/exe", &st); err != nil || !sameFile(&st, &b.exe) {
		return leak("the host's binary was changed")
	}
	return both(s.only("write ", "EROFS", "ETXTBSY", "EACCES"), s.only("unlink ", "EROFS"), s.only("chmod ", "EROFS"))
}

func sameFile(a, b *unix.Stat_t) bool {
	return a.Ino == b.Ino && a.Dev == b.Dev && a.Size == b.Size && a.Mtim == b.Mtim && a.Ctim == b.Ctim
}

// outTo collects /out into a directory of the check's own.
func outTo(name string) func(*bait, *sandbox.Spec) {
	return func(b *bait, s *sandbox.Spec) { s.Out = b.path(name) }
}

func judgeArtifacts(b *bait, s *saw) verdict {
	if s.answers["plain"] != probes.Done {
		return leak("the probe could not write to /out: %s", s.answers["plain"])
	}
	list, err := os.ReadDir(b.path("links"))
	if err != nil {
		return leak("nothing was collected: %v", err)
	}
	var got []string
	for _, e := range list {
		got = append(got, e.Name())
		if !e.Type().IsRegular() {
			return leak("%s on the host is not a plain file", e.Name())
		}
		data, err := os.ReadFile(b.path("links/" + e.Name()))
		if err != nil || string(data) != "plain" {
			return leak("%s on the host holds something else", e.Name())
		}
	}
	if !slices.Equal(got, []string{"plain"}) {
		return leak("collected were %s", strings.Join(got, ", "))
	}
	return held("the plain file alone was collected, no link and no FIFO")
}
