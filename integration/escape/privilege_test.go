package escape

import (
	_ "embed"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"
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
		tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", l.init))
		if err != nil || len(tasks) == 0 {
			t.Fatalf("threads of init: %d, %v", len(tasks), err)
		}
		for _, task := range tasks {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/status", l.init, task.Name()))
			if err != nil {
				continue // the thread is gone
			}
			for _, want := range []string{"CapEff:\t" + noCaps, "CapPrm:\t" + noCaps, "NoNewPrivs:\t1", "Seccomp:\t2"} {
				if !strings.Contains(string(text), want+"\n") {
					t.Errorf("thread %s of init lacks %q", task.Name(), want)
				}
			}
		}
	})
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
	testkit.Requires(t, "amd64")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		attempt(t, who, nil, refusedCalls())
	})
}

func refusedCalls() []try {
	return slices.Concat(
		all("EPERM", syscalls(
			101,      // ptrace
			153,      // vhangup
			155, 161, // pivot_root, chroot
			159, 164, 227, 305, // adjtimex, settimeofday, clock_settime, clock_adjtime
			163, 179, 443, // acct, quotactl, quotactl_fd
			165, 166, // mount, umount2
			167, 168, 169, // swapon, swapoff, reboot
			170, 171, 172, 173, // sethostname, setdomainname, iopl, ioperm
			175, 176, 313, // init_module, delete_module, finit_module
			246, 320, // kexec_load, kexec_file_load
			248, 249, 250, // add_key, request_key, keyctl
			272, 308, // unshare, setns
			298, 321, 323, // perf_event_open, bpf, userfaultfd
			300, 303, 304, // fanotify_init, name_to_handle_at, open_by_handle_at
			310, 311, 312, // process_vm_readv, process_vm_writev, kcmp
			428, 429, 430, 431, 432, 433, 442, 467, // open_tree, move_mount, fsopen, fsconfig, fsmount, fspick, mount_setattr, open_tree_attr
			438, // pidfd_getfd
		)...),
		all("ENOSYS", syscalls(425, 426, 427, // io_uring_setup, io_uring_enter, io_uring_register
			435,                                                   // clone3: flags lie in memory, where a filter cannot look
			134, 136, 154, 156, 177, 178, 180, 183, 212, 256, 279, // uselib, ustat, modify_ldt, _sysctl, get_kernel_syms, query_module, nfsservctl, afs_syscall, lookup_dcookie, migrate_pages, move_pages
			447, 500, 9999, // memfd_secret, and numbers that are not known
		)...),
		[]try{{"sys:39", "OK"}, {"sys:24", "OK"}}, // getpid and sched_yield do go through
	)
}

func syscalls(numbers ...int) []string {
	ops := make([]string, len(numbers))
	for i, n := range numbers {
		ops[i] = fmt.Sprintf("sys:%d", n)
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
		attempt(t, who, nil, append(all("EPERM", "sys:248", "sys:249", "sys:250:0:-3:0", "sys:250:0:-4:0", "sys:250:1:0"),
			try{"read:/proc/keys", "OK"}, try{"read:/proc/key-users", "OK"}))
	})
}
