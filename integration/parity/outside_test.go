package parity

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"sandglass/internal/testkit"
	"sandglass/pkg/seccomp"
	"sandglass/pkg/seccomp/bpfvm"

	"golang.org/x/sys/unix"
)

// limitFiles are what the kernel says of a group's limits, on v1 and v2.
var limitFiles = map[string][]string{
	"memory": {"memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.swappiness", "memory.oom_control", "memory.kmem.tcp.limit_in_bytes"},
	"pids":   {"pids.max"},
	"cpu":    {"cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.shares"},
	"":       {"memory.max", "memory.swap.max", "memory.oom.group", "pids.max", "cpu.max", "cpu.weight"},
}

// outside reads what the host's kernel says of a process: the limits of its
// groups and the maps of its ids.
func outside(t *testing.T, pid int, facts map[string]string) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		for _, controller := range strings.Split(part[1], ",") {
			for _, file := range limitFiles[controller] {
				value, err := os.ReadFile(filepath.Join("/sys/fs/cgroup", controller, part[2], file))
				if err == nil {
					first, _, _ := strings.Cut(string(value), "\n")
					facts["cgroup "+file] = first
				}
			}
			if controller == "devices" {
				value, _ := os.ReadFile(filepath.Join("/sys/fs/cgroup/devices", part[2], "devices.list"))
				first, _, _ := strings.Cut(string(value), "\n")
				facts["cgroup devices.list"] = first + " ..."
			}
		}
	}
	for _, file := range []string{"uid_map", "gid_map"} {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
		var list []string
		for line := range strings.Lines(string(text)) {
			// Which ids of the host is each engine's own affair: none is anybody's.
			var in, out, n uint32
			fmt.Sscan(line, &in, &out, &n)
			if out < 1<<30 || n != 1 {
				t.Errorf("%s of %d has %q: that may be somebody's id", file, pid, line)
			}
			list = append(list, fmt.Sprint(in))
		}
		facts["ids "+file] = strings.Join(list, " ")
	}
}

// ptraceGetFilter is PTRACE_SECCOMP_GET_FILTER (Linux 4.4).
const ptraceGetFilter = 0x420c

// filter reads the installed filter from the kernel. It needs a kernel with
// CONFIG_CHECKPOINT_RESTORE, which every distribution's has.
func filter(t *testing.T, pid int) []bpfvm.Insn {
	t.Helper()
	runtime.LockOSThread() // the kernel knows the tracer by its thread
	defer runtime.UnlockOSThread()
	must := func(err error, what string) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s %d: %v", what, pid, err)
		}
	}
	must(unix.PtraceSeize(pid), "seize")
	defer unix.PtraceDetach(pid)
	must(unix.PtraceInterrupt(pid), "interrupt")
	var st unix.WaitStatus
	_, err := unix.Wait4(pid, &st, unix.WALL, nil)
	must(err, "wait for")
	get := func(index int, into unsafe.Pointer) (int, error) {
		n, _, errno := unix.Syscall6(unix.SYS_PTRACE, ptraceGetFilter, uintptr(pid), uintptr(index), uintptr(into), 0, 0)
		if errno != 0 {
			return 0, errno
		}
		return int(n), nil
	}
	n, err := get(0, nil)
	must(err, "PTRACE_SECCOMP_GET_FILTER")
	raw := make([]byte, n*bpfvm.InsnSize)
	_, err = get(0, unsafe.Pointer(&raw[0]))
	must(err, "PTRACE_SECCOMP_GET_FILTER")
	if _, err := get(1, nil); err != unix.ENOENT {
		t.Errorf("%d has more than one filter: %v", pid, err)
	}
	prog, err := bpfvm.Decode(raw)
	must(err, "decode the filter of")
	return prog
}

// Init has the filter of one that only waits, under whatever filter the program is:
// what takes it over must not have the program's two hundred calls, and the one
// that reports the end must not depend on what the caller lets a program do.
func TestInitHasAFilterOfItsOwn(t *testing.T) {
	testkit.Requires(t, "root", "seccomp")
	want, err := bpfvm.Decode(seccomp.ForInit())
	if err != nil {
		t.Fatal(err)
	}
	for _, profile := range []string{seccomp.Default, "debug"} {
		p, release := testkit.Hold(t, testkit.Opts{}, "--seccomp", profile, "--", "sh", "-c", "echo ready; cat >/dev/null")
		p.WaitLine("ready")
		var init int
		testkit.Eventually(t, "init confines itself", func() bool {
			children := testkit.Children(t, p.PID())
			if len(children) != 1 {
				return false
			}
			init = children[0]
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", init))
			return err == nil && strings.Contains(string(text), "\nSeccomp:\t2\n")
		})
		if got := filter(t, init); !slices.Equal(got, want) {
			t.Errorf("under --seccomp %s init has another filter, of %d instructions and not %d", profile, len(got), len(want))
		}
		release()
		if o := p.Wait(); o.Exit != 0 {
			t.Errorf("--seccomp %s: exit %d\n%s", profile, o.Exit, o.Stderr)
		}
	}
}
