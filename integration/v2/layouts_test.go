package v2

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

func parent(t *testing.T, path string, flags ...string) testkit.Output {
	t.Helper()
	return testkit.Run(t, testkit.Opts{}, append(append([]string{"--cgroup-parent", path}, flags...), "--", "echo", "ran")...)
}

// A parent by name, below groups that pass no controller on yet.
func TestParent(t *testing.T) {
	testkit.Requires(t, "root", "cgroup2")
	outer := group(t, "outer")
	inner := group(t, "outer"+"/inner")
	if got := read(t, top+outer, "cgroup.subtree_control"); got != "" {
		t.Fatalf("subtree_control is %q before", got)
	}
	o := parent(t, inner)
	ended(t, o, result.Exited, 0)
	for _, limit := range []string{"memory", "pids", "cpus"} {
		if by := o.Result.Limits[limit].EnforcedBy; by != result.ByCgroup2 {
			t.Errorf("%s is held by %s", limit, by)
		}
	}
	if !exists(top + inner) {
		t.Error("a parent that was named must stay")
	}
}

func TestParentThatIsNotThere(t *testing.T) {
	testkit.Requires(t, "root", "cgroup2")
	refused(t, parent(t, "/no/such", "--allow-degraded", "memory,cpu,pids"), "cgroup parent /sys/fs/cgroup/no/such does not exist", "mkdir -p /sys/fs/cgroup/no/such")
}

func TestParentThatIsFrozen(t *testing.T) {
	testkit.Requires(t, "root", "cgroup2")
	g := group(t, "frozen")
	write(t, "1", top+g, "cgroup.freeze")
	refused(t, parent(t, g), "memory, pids, cpu limits: cgroup "+top+g+" is frozen", "echo 0 > "+top+g+"/cgroup.freeze")
	write(t, "0", top+g, "cgroup.freeze") // the hint
	ended(t, parent(t, g), result.Exited, 0)
}

func TestParentThatIsThreaded(t *testing.T) {
	testkit.Requires(t, "root", "cgroup2")
	g := group(t, "threaded")
	write(t, "threaded", top+g, "cgroup.type")
	refused(t, parent(t, g), "memory, pids, cpu limits: cgroup "+top+g+` is threaded (cgroup.type is "threaded"): no memory limit can be set below it`,
		"--allow-degraded memory,pids,cpu")
}

// A group with a process of its own passes no controller on; the hint's
// commands move it to a leaf.
func TestParentWithAProcess(t *testing.T) {
	testkit.Requires(t, "root", "cgroup2")
	g := group(t, "busy")
	cmd := exec.Command("sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: dirFD(t, top+g)}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end := func() { cmd.Process.Kill(); cmd.Wait() }
	defer end()
	o := parent(t, g)
	ended(t, o, result.Refused, 125)
	if got := read(t, top+g, "cgroup.subtree_control"); got != "" {
		t.Errorf("the refusal has left %q in subtree_control: the group is %q now", got, read(t, top+g, "cgroup.type"))
	}
	if want := "the memory controller cannot be enabled in " + top + g + ": device or resource busy (processes are in that group itself)"; !strings.Contains(o.Stderr, want) {
		t.Errorf("stderr %q, want %q", o.Stderr, want)
	}
	_, hint, _ := strings.Cut(o.Stderr, "hint: mkdir -p ")
	paste, _, ok := strings.Cut(hint, "; sandglass run --cgroup-parent "+g)
	if !ok {
		t.Fatalf("no hint with a leaf in %q", o.Stderr)
	}
	if out, err := exec.Command("sh", "-c", "mkdir -p "+paste).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ended(t, parent(t, g), result.Exited, 0)
	end()
	if err := syscall.Rmdir(top + g + "/init"); err != nil {
		t.Error(err)
	}
}

// inside runs sandglass from a shell script in new namespaces, in a group of
// its own; the binary is $0.
func inside(t *testing.T, g, script string, namespaces uintptr) (string, error) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script, testkit.Binary(t))
	cmd.Env = []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin", "HOME=/nonexistent"}
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: dirFD(t, top+g), Cloneflags: namespaces}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

const private = "mount --make-rprivate / && "

// As in a container whose /sys/fs/cgroup is read-only.
func TestReadOnlyMount(t *testing.T) {
	testkit.Requires(t, "root", "cgroup2")
	const want = "sandglass: error: memory, pids, cpu limits: the cgroup mount is read-only: "
	out, err := inside(t, group(t, "ro"), private+"mount -o remount,bind,ro "+top+` && "$0" run -- echo ran; echo "exit $?"`, syscall.CLONE_NEWNS)
	if err != nil || !strings.HasPrefix(out, want) || !strings.Contains(out, "hint: mount -o remount,rw "+top+"\n") || !strings.HasSuffix(out, "\nexit 125\n") {
		t.Errorf("%v: %q, want %q, a hint and exit 125", err, out, want)
	}
	// By name it may run, and the result says that nothing holds memory but the watchdog.
	out, err = inside(t, group(t, "ro2"), private+"mount -o remount,bind,ro "+top+` && "$0" run --allow-degraded memory,cpu,pids -- echo ran`, syscall.CLONE_NEWNS)
	if err != nil || out != "ran\n" {
		t.Errorf("%v: %q", err, out)
	}
}

// As root of a container: a cgroup namespace and a mount of its own. The group
// that is the container's top holds the shell, until that becomes sandglass.
func TestCgroupNamespace(t *testing.T) {
	testkit.Requires(t, "root", "cgroup2")
	const ns = syscall.CLONE_NEWNS | syscall.CLONE_NEWCGROUP
	const own = private + "umount -l " + top + " && mount -t cgroup2 cgroup2 " + top + " && "
	write(t, "+memory +cpu +pids +io", top, "cgroup.subtree_control")
	g := group(t, "container")
	out, err := inside(t, g, own+`"$0" run -- cat /proc/self/cgroup; echo "exit $?"`, ns)
	if err != nil || !strings.Contains(out, "other processes are in own cgroup "+top+", so no controller can be enabled in it\n") || !strings.HasSuffix(out, "\nexit 125\n") {
		t.Errorf("with the shell in the group: %v: %q", err, out)
	}
	out, err = inside(t, g, own+`exec "$0" run -- sh -c 'echo ran; cat /sys/fs/cgroup/memory.max'`, ns)
	if err != nil || out != "ran\n268435456\n" {
		t.Errorf("alone in the group: %v: %q", err, out)
	}
	if left := read(t, top+g, "cgroup.procs"); left != "" {
		t.Errorf("left in the container: %q", left)
	}
	if err := syscall.Rmdir(top + g + "/sandglass-supervisor"); err != nil {
		t.Errorf("the leaf of the supervisor: %v", err)
	}
}
