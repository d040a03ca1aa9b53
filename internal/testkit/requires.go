package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// EnvMustRun lists, separated by commas, what this host has for certain: a
// test that lacks one of these fails instead of being skipped.
const EnvMustRun = "SANDGLASS_MUST_RUN"

// Requires skips the test when the host lacks something, and says what. Names:
//
//	root user userns
//	cgroup cgroup1 cgroup2        any, or one version, for memory and pids
//	cgroup1-memory cgroup2-pids … one controller of one version
//	landlock seccomp idmap
//	ipv6 amd64 arm64
//	python3:numpy …               a module of the system's Python
//	python3 node gcc bash …       any other name: a command on PATH, or its path
func Requires(t testing.TB, what ...string) {
	t.Helper()
	for _, w := range what {
		if have := lacks(w); have != "" {
			Skip(t, w, have)
		}
	}
}

var skips struct {
	sync.Mutex
	list []string
}

// Skips lists what was skipped in this process, a line each.
func Skips() []string {
	skips.Lock()
	defer skips.Unlock()
	return slices.Clone(skips.list)
}

// Skip skips the test for the want of something, or fails it where the
// environment says that it must run.
func Skip(t testing.TB, want, have string) {
	t.Helper()
	line := fmt.Sprintf("SKIP(want %s, have %s)", want, have)
	if slices.Contains(strings.Split(os.Getenv(EnvMustRun), ","), want) {
		t.Fatalf("%s lists %s: %s", EnvMustRun, want, line)
	}
	skips.Lock()
	skips.list = append(skips.list, line+" "+t.Name())
	skips.Unlock()
	t.Skip(line)
}

// lacks returns "" when the host has it, else what it has instead.
func lacks(what string) string {
	switch what {
	case "root":
		if uid := os.Geteuid(); uid != 0 {
			return fmt.Sprintf("uid %d", uid)
		}
		return ""
	case "user":
		return ""
	case "amd64", "arm64":
		if runtime.GOARCH != what {
			return runtime.GOARCH
		}
		return ""
	case "userns":
		return userns()
	case "landlock":
		return landlock()
	case "seccomp", "ipv6", "idmap":
		return lacksFile(map[string]string{"seccomp": "/proc/sys/kernel/seccomp", "ipv6": "/proc/sys/net/ipv6", "idmap": "/proc/self/ns/user"}[what])
	}
	if kind, ok := strings.CutPrefix(what, "cgroup"); ok {
		return lacksCgroup(kind)
	}
	if module, ok := strings.CutPrefix(what, "python3:"); ok {
		return lacksModule(module)
	}
	if _, err := exec.LookPath(what); err != nil {
		return "no " + what + " on PATH"
	}
	return ""
}

// lacksModule finds a module without loading it, which can take seconds.
func lacksModule(name string) string {
	const find = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"
	if err := exec.Command("/usr/bin/python3", "-c", find, name).Run(); err != nil {
		return "no module " + name + " in /usr/bin/python3"
	}
	return ""
}

func lacksFile(path string) string {
	if _, err := os.Stat(path); err != nil {
		return "no " + path
	}
	return ""
}

// lacksCgroup takes "", "1", "2", "1-memory" and the like.
func lacksCgroup(kind string) string {
	version, ctrl, _ := strings.Cut(kind, "-")
	if ctrl == "" {
		ctrl = "memory"
	}
	have := probeCgroup(ctrl)
	if have == "" {
		return "no cgroup with " + ctrl
	}
	if version != "" && have != "cgroup"+version {
		return have
	}
	return ""
}

// probeCgroup says which version has a controller: cgroup1, cgroup2 or "".
func probeCgroup(ctrl string) string {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		_, after, ok := strings.Cut(line, " - cgroup ")
		if f := strings.Fields(after); ok && len(f) == 2 && slices.Contains(strings.Split(f[1], ","), ctrl) {
			return "cgroup1"
		}
	}
	list, err := os.ReadFile("/sys/fs/cgroup/cgroup.controllers")
	if err == nil && slices.Contains(strings.Fields(string(list)), ctrl) {
		return "cgroup2"
	}
	return ""
}

// userns makes one and looks.
var userns = sync.OnceValue(func() string {
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	if err := cmd.Run(); err != nil {
		return "no user namespaces: " + err.Error()
	}
	return ""
})

// landlock asks for the ABI's version.
func landlock() string {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return "no Landlock: " + errno.Error()
	}
	if v < 1 {
		return "Landlock version 0"
	}
	return ""
}

// CgroupVersion says which version has a controller: cgroup1, cgroup2 or "".
func CgroupVersion(ctrl string) string { return probeCgroup(ctrl) }

// StaticBusybox is a shell and its tools that need nothing of a host.
func StaticBusybox(t testing.TB) string {
	t.Helper()
	Requires(t, "busybox")
	path, err := exec.LookPath("busybox")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "/ld-linux") {
		Skip(t, "a static busybox", path+" with a loader")
	}
	return path
}
