package escape

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"

	"golang.org/x/sys/unix"
)

// The ways out of other sandboxes that no other test here takes, see the history
// in docs/THREATMODEL.md.

// What the kernel runs as the host's root by itself: helpers whose path is a
// setting, and the release agent of a cgroup (CVE-2022-0492).
func TestPathsOfTheKernelsHelpers(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		var tries []try
		for _, name := range []string{"core_pattern", "modprobe", "hotplug", "poweroff_cmd", "usermodehelper/bset"} {
			open, chmod := "EACCES", "EROFS"
			if _, err := os.Stat("/proc/sys/kernel/" + name); err != nil { // some kernels lack some
				open, chmod = "ENOENT", "ENOENT"
			}
			tries = append(tries, try{"open:w:/proc/sys/kernel/" + name, open}, try{"chmod:777:/proc/sys/kernel/" + name, chmod})
		}
		attempt(t, who, nil, slices.Concat(tries,
			all("ENOENT", "open:w:/sys/kernel/uevent_helper", "open:w:/sys/fs/cgroup/release_agent", "open:w:/sys/fs/cgroup/memory/release_agent",
				"open:w:/sys/fs/cgroup/pids/release_agent", "open:w:/proc/sys/fs/binfmt_misc/register", "list:/sys/kernel"),
			all("EPERM", "mount:cgroup:/tmp", "mount:cgroup2:/tmp", "mount:binfmt_misc:/tmp", "mount:debugfs:/tmp", "mount:securityfs:/tmp", "mount:bpf:/tmp")))
	})
}

// A namespace's file leads to its owner and its parent (ioctl_nsfs(2)), and in
// some kernels to the host's other mount namespaces (CVE-2026-43403).
func TestNamespaceFilesLeadNowhere(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		const owner, parent, next, prev = ":b701", ":b702", ":8010b70b", ":8010b70c"
		attempt(t, who, nil, slices.Concat(
			all("ENOTTY", "openioctl:/proc/self/ns/net"+owner, "openioctl:/proc/self/ns/user"+owner, "openioctl:/proc/self/ns/user"+parent,
				"openioctl:/proc/self/ns/pid"+parent, "openioctl:/proc/self/ns/mnt"+next, "openioctl:/proc/self/ns/mnt"+prev)))
	})
}

// kill(0) reaches the process group of the caller of sandglass, whatever the PID
// namespace, unless the program is in a group of its own (CVE-2026-97029).
func TestProcessGroupOfTheCaller(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for _, script := range []string{"kill -9 0", "(kill -9 0)", "sleep 100 & kill -9 0"} {
			beside := exec.Command("cat")
			beside.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			if os.Getuid() == 0 {
				beside.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(who.UID), Gid: uint32(who.GID)}
			}
			in, err := beside.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := beside.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := beside.Start(); err != nil {
				t.Fatal(err)
			}
			join := func(cmd *exec.Cmd) {
				cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Pgid = true, beside.Process.Pid
			}
			o := testkit.Run(t, testkit.Opts{Who: who, Setup: join}, "--", "sh", "-c", script)
			if o.Exit != 137 || o.Result.Outcome != result.Signaled {
				t.Errorf("%s: exit %d, outcome %q, %s", script, o.Exit, o.Result.Outcome, o.Result.Error)
			}
			answer := make([]byte, 16)
			in.Write([]byte("alive\n"))
			if n, err := out.Read(answer); err != nil || string(answer[:n]) != "alive\n" {
				t.Errorf("%s: the process beside sandglass: %q, %v", script, answer[:n], err)
			}
			in.Close()
			if err := beside.Wait(); err != nil {
				t.Errorf("%s: the process beside sandglass: %v", script, err)
			}
		}
	})
}

// asyncSource has the kernel send PID 1 each signal when a pipe becomes readable.
const asyncSource = `#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
	for (int sig = 0; sig <= 64; sig++) {
		int p[2]; char c;
		if (pipe(p) || fcntl(p[0], F_SETFL, O_ASYNC) || fcntl(p[0], F_SETOWN, 1) || fcntl(p[0], F_SETSIG, sig)) return 1;
		if (write(p[1], "x", 1) != 1 || read(p[0], &c, 1) != 1) return 2;
		close(p[0]); close(p[1]);
	}
	puts("sent");
	return 42;
}`

// A signal need not be sent with kill: whoever owns a descriptor hears of its
// data, and the kernel sends that.
func TestNoSignalByAsyncIO(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := testkit.RunC(t, testkit.Opts{Who: who}, nil, asyncSource)
		if o.Exit != 42 || o.Result.Outcome != result.Exited || o.Stdout != "sent\n" {
			t.Errorf("exit %d, outcome %q, %q, %s", o.Exit, o.Result.Outcome, o.Stdout, o.Result.Error)
		}
	})
}

// While a run starts, somebody turns the directory that a mount goes to into a
// link and back: another sandbox that has it for writing (CVE-2021-30465).
func TestMountTargetSwappedWhileStarting(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir, data := testkit.Dir(t), testkit.Dir(t)
		if err := os.Mkdir(dir+"/sub", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("../etc", dir+"/other"); err != nil {
			t.Fatal(err)
		}
		flags := []string{"-v", dir + ":/data", "-v", data + ":/data/sub"}
		quiet := must(t, testkit.Sh(t, who, targets, flags...)).Stdout
		stop := swapping(dir+"/sub", dir+"/other")
		got := map[string]int{}
		for range 40 {
			o := testkit.Sh(t, who, targets, flags...)
			switch {
			case o.Exit == 0 && o.Stdout == quiet:
				got["mounted"]++
			case o.Exit == 125 && o.Stdout == "" && strings.Contains(o.Stderr, "symbolic link"):
				got["refused"]++
			default:
				t.Errorf("exit %d, %q, %q, want %q", o.Exit, o.Stdout, o.Stderr, quiet)
			}
		}
		t.Logf("%d swaps, outcomes %v", stop(), got)
	})
}

// targets prints where mounts are, those below /data without their last name,
// which is swapped on.
const targets = `awk '{sub("^/data/.*", "/data/NAME", $5); print $5}' /proc/self/mountinfo | LC_ALL=C sort`

// A directory that is moved out of a mount while a program is in it has a ".."
// that no mount stands in the way of (CVE-2015-2925).
func TestDirectoryMovedOutOfAMount(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for _, c := range []struct{ to, want string }{
			{"mnt/deep/inner", "ready\nsecret\n"}, // inside the mount, so that the test shows that it would see one
			{"inner", "ready\nout of reach\n"},
		} {
			dir := testkit.Dir(t)
			for _, d := range []string{"mnt/inner", "mnt/deep"} {
				if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			write(t, filepath.Join(dir, filepath.Dir(c.to), "secret"), "secret\n")
			l := hold(t, testkit.Opts{Who: who}, "cat ../secret ../../secret ../../../secret 2>/dev/null || [ -e ../secret ] || echo out of reach",
				"-v", dir+"/mnt:/data", "-w", "/data/inner")
			if err := os.Rename(dir+"/mnt/inner", filepath.Join(dir, c.to)); err != nil {
				t.Fatal(err)
			}
			l.release()
			if o := l.Wait(); o.Stdout != c.want {
				t.Errorf("moved to %s: exit %d, %q, want %q; %s", c.to, o.Exit, o.Stdout, c.want, o.Stderr)
			}
		}
	})
}

// A lease makes every other open of a file wait until it is given back: hostile
// code with a read-only mount could stall the caller's editor and compiler.
func TestFilesCannotBeHeldBack(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir := testkit.Dir(t)
		write(t, dir+"/file", "text")
		if !who.IsRoot() {
			for _, path := range []string{dir, dir + "/file"} {
				if err := os.Chown(path, who.UID, who.GID); err != nil {
					t.Fatal(err)
				}
			}
		}
		const setLease, getLease, read, write, none = 1024, 1025, unix.F_RDLCK, unix.F_WRLCK, unix.F_UNLCK
		for _, mode := range []string{"ro", "rw"} {
			attempt(t, who, []string{"-v", dir + ":/data:" + mode}, []try{
				{fmt.Sprintf("fcntl:/data/file:%d:%d", setLease, read), "EACCES"}, {fmt.Sprintf("fcntl:/data/file:%d:%d", setLease, write), "EACCES"},
				{fmt.Sprintf("fcntl:/data/file:%d:%d", setLease, none), "EACCES"}, {"deleg:/data", "EACCES"},
				{fmt.Sprintf("fcntl:/data/file:%d:0", getLease), "OK"}, {"fcntl:/data/file:1:0", "OK"},
			})
		}
	})
}

// The label of the volume that /usr lies on is often the host's name, and its
// UUID is one: the same in all sandboxes of a host, and in none of another.
func TestVolumesAreNotNamed(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir := testkit.Dir(t)
		var ops []string
		for _, request := range []string{"81009431", "80111500", "80811501", "8008662c", "8400941f", "80705864", "8070587c", "8100587e"} {
			ops = append(ops, "openioctl:/usr:"+request, "openioctl:/data:"+request)
		}
		attempt(t, who, []string{"-v", dir + ":/data"}, all("ENOTTY", ops...))
	})
}
