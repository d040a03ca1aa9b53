package escape

import (
	_ "embed"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/seccomp/sysnum"
)

const noCaps = "0000000000000000"

func TestNoCapabilityInAnySet(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		l := hold(t, testkit.Opts{Who: who}, "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status")
		confined(t, l.init)
		for _, field := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
			if got := status(t, l.program, field); got != noCaps {
				t.Errorf("%s of the program: %s", field, got)
			}
			if field != "CapBnd" { // the bounding set means nothing without exec, which its filter refuses
				if got := status(t, l.init, field); got != noCaps {
					t.Errorf("%s of init: %s", field, got)
				}
			}
		}
		for _, pid := range []int{l.init, l.program} {
			for field, want := range map[string]string{"NoNewPrivs": "1", "Seccomp": "2"} {
				if got := status(t, pid, field); got != want {
					t.Errorf("%s of %d: %s, want %s", field, pid, got, want)
				}
			}
		}
		l.release()
		o := must(t, l.Wait())
		want := "ready\nCapInh:\t" + noCaps + "\nCapPrm:\t" + noCaps + "\nCapEff:\t" + noCaps + "\nCapBnd:\t" + noCaps + "\nCapAmb:\t" + noCaps +
			"\nNoNewPrivs:\t1\nSeccomp:\t2\n"
		if o.Stdout != want {
			t.Errorf("%q, want %q", o.Stdout, want)
		}
	})
}

// confined waits until init has put its own filter on, its last step, which it
// takes when the program already runs.
func confined(t *testing.T, init int) {
	t.Helper()
	testkit.Eventually(t, "init confines itself", func() bool { return status(t, init, "Seccomp") == "2" })
}

// Every thread of init must have given up, not only the one that did the work.
func TestEveryThreadOfInitIsConfined(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		l := hold(t, testkit.Opts{Who: who}, "true")
		confined(t, l.init)
		onEveryThread(t, l.init, "CapEff:\t"+noCaps, "CapPrm:\t"+noCaps, "NoNewPrivs:\t1", "Seccomp:\t2")
	})
}

// onEveryThread wants lines in the status of each of a process's threads.
func onEveryThread(t *testing.T, pid int, lines ...string) {
	t.Helper()
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil || len(tasks) == 0 {
		t.Fatalf("threads of init: %d, %v", len(tasks), err)
	}
	for _, task := range tasks {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/status", pid, task.Name()))
		if err != nil {
			continue // the thread is gone
		}
		for _, want := range lines {
			if !strings.Contains(string(text), want+"\n") {
				t.Errorf("thread %s of init lacks %q", task.Name(), want)
			}
		}
	}
}

// A set-uid program of root's gains nothing: not from the host's own /usr, not
// from a mount of the caller's.
func TestSetUIDProgramsGainNothing(t *testing.T) {
	testkit.Requires(t, "root")
	dir := testkit.Dir(t)
	text, err := os.ReadFile(testkit.C(t, trySource))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/root", text, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir+"/root", 0o6755|os.ModeSetuid|os.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for _, mode := range []string{"ro", "rw"} {
			o := must(t, testkit.Run(t, testkit.Opts{Who: who}, "-v", dir+":/data:"+mode, "--", "/data/root", "ids", "chown:/tmp"))
			if want := "ids 65534 65534 65534 65534\nids OK\nchown:/tmp EINVAL\n"; o.Stdout != want {
				t.Errorf("%s: %q, want %q", mode, o.Stdout, want)
			}
		}
	})
}

func TestRlimits(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := must(t, testkit.Sh(t, who, "grep -E '^Max (core file size|open files|file size|stack size|processes|locked memory|realtime priority|nice priority|msgqueue size|pending signals)' /proc/self/limits", "--disk", "32m"))
		got := map[string]string{}
		for line := range strings.Lines(o.Stdout) {
			f := strings.Fields(strings.TrimSpace(line[26:]))
			got[strings.TrimSpace(line[4:26])] = f[0] + " " + f[1]
		}
		for name, want := range map[string]string{
			"core file size": "1 1", "open files": "1024 1024", "file size": "34603008 34603008" /* 1 MiB above the disk: a full one is ENOSPC */, "nice priority": "0 0", "realtime priority": "0 0",
		} {
			if got[name] != want {
				t.Errorf("%s: %s, want %s", name, got[name], want)
			}
		}
		// Setting core is answered as if done: neither 0, which would start a helper
		// behind a pipe in core_pattern, nor a size is taken.
		o = must(t, testkit.Sh(t, who, "ulimit -c 0; ulimit -c; ulimit -H -c 0; prlimit --core=0:0; grep core /proc/self/limits | tr -s ' '"))
		if !strings.HasSuffix(o.Stdout, "Max core file size 1 1 bytes \n") {
			t.Errorf("core after lowering it: %q", o.Stdout)
		}
		attempt(t, who, nil, append(all("EPERM", "rlimit:7:1025", "rlimit:1:999999999999"), try{"rlimit:7:100", "OK"}))
	})
}

// The calls that the filter answers, with the one errno that each must have:
// EPERM where a program should hear that it may not, ENOSYS where it should
// think that the kernel is older.
func TestSystemCallsAreRefused(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		attempt(t, who, nil, refusedCalls())
	})
}

func refusedCalls() []try {
	return slices.Concat(
		all("EPERM", calls(
			"ptrace vhangup pivot_root chroot adjtimex settimeofday clock_settime clock_adjtime acct quotactl quotactl_fd",
			"mount umount2 swapon swapoff reboot sethostname setdomainname iopl ioperm",
			"init_module delete_module finit_module kexec_load kexec_file_load add_key request_key keyctl unshare setns",
			"perf_event_open bpf userfaultfd fanotify_init name_to_handle_at open_by_handle_at",
			"process_vm_readv process_vm_writev kcmp pidfd_getfd",
			"open_tree move_mount fsopen fsconfig fsmount fspick mount_setattr open_tree_attr",
		)...),
		all("ENOSYS", calls(
			"io_uring_setup io_uring_enter io_uring_register",
			"clone3", // its flags lie in memory, where a filter cannot look
			"uselib ustat modify_ldt _sysctl get_kernel_syms query_module nfsservctl afs_syscall lookup_dcookie migrate_pages move_pages",
			"memfd_secret",
		)...),
		all("ENOSYS", "sys:500", "sys:9999"), // numbers that are not known
		all("OK", calls("getpid sched_yield")...),
	)
}

// call is the op of a system call by its name, for it has another number on each
// architecture. Its arguments follow as in ":1:0".
func call(name, args string) string {
	n, ok := sysnum.Number(runtime.GOARCH, name)
	if !ok {
		panic(name + " is no call of " + runtime.GOARCH)
	}
	return fmt.Sprintf("sys:%d%s", n, args)
}

// calls are those that the architecture has.
func calls(lines ...string) (ops []string) {
	for name := range strings.FieldsSeq(strings.Join(lines, " ")) {
		if _, ok := sysnum.Number(runtime.GOARCH, name); ok {
			ops = append(ops, call(name, ""))
		}
	}
	return ops
}

//go:embed testdata/foreign.c
var foreignSource string

// The same call by its x32 number or by int 0x80 is another call to a filter
// that looks at numbers alone.
func TestForeignCallsAreKilled(t *testing.T) {
	testkit.Requires(t, "amd64")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := must(t, testkit.RunC(t, testkit.Opts{Who: who}, nil, foreignSource))
		if want := "x32 getpid SIG31\nx32 mount SIG31\nint80 getpid SIG31\nint80 mount SIG31\nnative getpid OK\n"; o.Stdout != want {
			t.Errorf("%q, want %q", o.Stdout, want)
		}
	})
}

// The kernel compares the low 32 bits of the number, and so must the filter
// (CVE-2019-10063).
func TestTerminalCannotBeTypedInto(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		attempt(t, who, nil, append(
			all("EPERM", "ioctl:5412", "ioctl:541c", "ioctlraw:5412", "ioctlraw:100005412", "ioctlraw:8000000000005412", "ioctlraw:ffffffff0000541c"),
			try{"open:rw:/dev/tty", "ENOENT"}))
		// The program is the leader of a session that has no terminal.
		o := must(t, testkit.Sh(t, who, "cut -d ' ' -f 6,7 /proc/$$/stat; echo $$"))
		var session, tty, pid int
		if n, err := fmt.Sscanf(o.Stdout, "%d %d\n%d\n", &session, &tty, &pid); n != 3 || err != nil || session != pid || tty != 0 {
			t.Errorf("session and terminal: %q", o.Stdout)
		}
	})
}

func TestKeyringsAreOutOfReach(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		attempt(t, who, nil, append(all("EPERM", call("add_key", ""), call("request_key", ""), call("keyctl", ":0:-3:0"), call("keyctl", ":0:-4:0"), call("keyctl", ":1:0")),
			try{"read:/proc/keys", "OK"}, try{"read:/proc/key-users", "OK"}))
	})
}
