package escape

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"

	"golang.org/x/sys/unix"
)

func TestProcessesOfTheHostAreUnseen(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		mine := os.Getpid()
		o := must(t, testkit.Sh(t, who, "cd /proc; echo [0-9]*; readlink self"))
		// The shell alone, for its echo is built in, and not PID 1; then readlink,
		// with a PID that follows at once or after threads of init's.
		var shell, link int
		if n, err := fmt.Sscanf(o.Stdout, "%d\n%d\n", &shell, &link); n != 2 || err != nil || shell == 1 || link <= shell {
			t.Errorf("processes %q, want the shell and then readlink", o.Stdout)
		}
		attempt(t, who, nil, append(
			all("ESRCH", fmt.Sprintf("kill:%d:9", mine+100000), fmt.Sprintf("nice:%d", mine+100000)),
			all(unseen, fmt.Sprintf("open:r:/proc/%d/environ", mine+100000), "list:/proc/1", "open:r:/proc/1/environ", "open:r:/proc/1/mem",
				"open:r:/proc/1/maps", "readlink:/proc/1/exe", "readlink:/proc/1/root", "readlink:/proc/1/cwd", "list:/proc/1/fd",
				"open:r:/proc/1/status", "open:r:/proc/1/task/1/environ", "open:rw:/proc/1/exe", "open:path:/proc/1/exe")...))
	})
}

// masked are read as empty or are not there; none may tell about the host.
var masked = []string{
	"cmdline", "config.gz", "crypto", "diskstats", "interrupts", "iomem", "ioports", "kallsyms", "kcore", "key-users", "keys", "kmsg",
	"latency_stats", "locks", "misc", "modules", "partitions", "sched_debug", "sys/kernel/random/boot_id", "sysrq-trigger", "timer_list",
}

var maskedDirs = []string{"acpi", "asound", "bus", "driver", "fs", "irq", "scsi"}

func TestProcIsMasked(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		script := "cd /proc; for f in " + strings.Join(masked, " ") + "; do [ -e $f ] && printf '%s ' $f && wc -c <$f; done; " +
			"for d in " + strings.Join(maskedDirs, " ") + "; do [ -e $d ] && printf '%s %s\\n' $d $(ls -A $d | wc -l); done; true"
		o := must(t, testkit.Sh(t, who, script))
		seen := 0
		for line := range strings.Lines(o.Stdout) {
			if !strings.HasSuffix(line, " 0\n") {
				t.Errorf("not empty: %s", line)
			}
			seen++
		}
		if seen < 12 {
			t.Errorf("only %d of the masked files exist here: %s", seen, o.Stdout)
		}
	})
}

func TestKernelSettingsCannotBeWritten(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		attempt(t, who, nil, slices.Concat(
			// The network namespace's own settings would be the program's to
			// change by owner; the read-only mount is what stops it.
			all("EROFS", "chmod:777:/proc/sys/net/ipv4/ip_forward", "chmod:777:/proc/sys/kernel/core_pattern"),
			all("EACCES", "open:w:/proc/sys/kernel/core_pattern", "open:w:/proc/sys/kernel/hostname", "open:w:/proc/sys/vm/drop_caches", "open:w:/proc/sys/net/ipv4/ip_forward"),
			all("EPERM", "remount:/proc/sys", "umount:/proc/sys", "umount:/proc/kmsg", "mount:proc:/tmp"),
		))
	})
}

func TestDevHoldsOnlyHarmlessNodes(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := must(t, testkit.Sh(t, who, "cd /dev; ls -A | LC_ALL=C sort | tr '\\n' ' '; echo; stat -c '%n %F %t:%T' null zero full random urandom; "+
			"readlink fd stdin stdout stderr; ls -A shm"))
		want := "fd full null random shm stderr stdin stdout urandom zero \n" +
			"null character special file 1:3\nzero character special file 1:5\nfull character special file 1:7\n" +
			"random character special file 1:8\nurandom character special file 1:9\n" +
			"/proc/self/fd\n/proc/self/fd/0\n/proc/self/fd/1\n/proc/self/fd/2\n"
		if o.Stdout != want {
			t.Errorf("%q, want %q", o.Stdout, want)
		}
		attempt(t, who, nil, append(append(all("EPERM", "mknod:/tmp/disk", "mknod:/dev/shm/disk", "mknod:/work/disk"),
			try{"chmod:666:/dev/null", "EROFS"}),
			all("ENOENT", "open:r:/dev/mem", "open:r:/dev/kmsg", "open:r:/dev/kvm", "open:r:/dev/fuse", "open:r:/dev/tty", "open:r:/dev/vda",
				"open:r:/dev/sda", "open:r:/dev/net/tun", "open:r:/dev/console", "list:/dev/mqueue", "list:/dev/hugepages")...))
	})
}

func TestSysShowsOnlyTheOwnCgroup(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		if !who.Limited() {
			attempt(t, who, nil, []try{{"list:/sys", "OK"}, {"list:/sys/fs", "ENOENT"}})
			return
		}
		o := must(t, testkit.Sh(t, who, "ls /sys /sys/fs; cat /proc/self/cgroup"))
		if want := "/sys:\nfs\n\n/sys/fs:\ncgroup\n"; !strings.HasPrefix(o.Stdout, want) || strings.Contains(o.Stdout, "sandglass") {
			t.Errorf("%q, want %q and no name of a group of the host's", o.Stdout, want)
		}
		// The directory of a group is not to be listed, its files are known.
		files := map[string][]string{"cgroup1": {
			"memory/memory.limit_in_bytes", "memory/tasks", "memory/cgroup.procs", "pids/pids.max", "pids/tasks", "cpu/cpu.cfs_quota_us", "cpu/tasks",
		}, "cgroup2": {"memory.max", "pids.max", "cpu.max", "cgroup.procs", "cgroup.kill", "cgroup.freeze", "cgroup.subtree_control"}}
		version := string(o.Result.Limits["memory"].EnforcedBy)
		if len(files[version]) == 0 {
			t.Fatalf("memory is held by %q", version)
		}
		var tries []try
		for _, f := range files[version] {
			tries = append(tries, try{"chmod:666:/sys/fs/cgroup/" + f, "EROFS"})
		}
		attempt(t, who, nil, append(tries, try{"mkdir:/sys/fs/cgroup/x", "EROFS"}))
	})
}

func TestHostnameAndIPCAreItsOwn(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := must(t, testkit.Sh(t, who, "hostname; cat /etc/hostname; uname -n; cat /proc/sysvipc/shm /proc/sysvipc/sem /proc/sysvipc/msg | grep -c '[0-9]'; true"))
		if want := "sandglass\nsandglass\nsandglass\n"; !strings.HasPrefix(o.Stdout, want) || !strings.HasSuffix(o.Stdout, "\n0\n") {
			t.Errorf("%q, want %q and no object", o.Stdout, want)
		}
		attempt(t, who, nil, []try{{"sethostname:other", "EPERM"}, {"open:w:/etc/hostname", "EROFS"}})
	})
}

// The host's shared memory segment with a known key is not to be had inside.
func TestHostSharedMemoryIsUnseen(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		key, id := sharedSegment(t)
		attempt(t, who, nil, []try{{fmt.Sprintf("shmget:%d", key), "ENOENT"}, {fmt.Sprintf("shmat:%d", id), "EINVAL"}})
	})
}

func TestEtcIsSynthetic(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := must(t, testkit.Sh(t, who, "cat /etc/passwd /etc/group /etc/hosts /etc/resolv.conf /etc/nsswitch.conf"))
		host, err := os.Hostname()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{host + "\n", " " + host, "/home/cloudsdk", "cloudsdk", "systemd-network", "nameserver 1", "nameserver 8"} {
			if strings.Contains(o.Stdout, s) {
				t.Errorf("/etc tells %q of the host", s)
			}
		}
		users := must(t, testkit.Sh(t, who, "cut -d: -f1,3,4 /etc/passwd; cut -d: -f1,3 /etc/group"))
		if want := "root:0:0\nnobody:65534:65534\nroot:0\nnogroup:65534\n"; users.Stdout != want {
			t.Errorf("accounts %q, want %q", users.Stdout, want)
		}
	})
}

// The nodes are the host's own files: they take data, and keep their time stamps.
func TestDevicesOfTheHostAreNotTouched(t *testing.T) {
	before := times(t)
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := must(t, testkit.Sh(t, who, `cd /dev; for f in null zero full random urandom; do
			touch $f 2>/dev/null && echo "$f touched"; chmod 600 $f 2>/dev/null && echo "$f changed"; done
			echo x >null && echo x >zero && head -c 3 zero | od -An -tx1; echo x 2>/dev/null >full || echo full`))
		if want := " 00 00 00\nfull\n"; o.Stdout != want {
			t.Errorf("%q, want %q", o.Stdout, want)
		}
	})
	if after := times(t); after != before {
		t.Errorf("changed and modified: %v, before %v", after, before)
	}
}

// times are when the host's nodes were changed and written, which writes by
// others of the host do not move.
func times(t *testing.T) (all [5][2]unix.Timespec) {
	for i, name := range []string{"null", "zero", "full", "random", "urandom"} {
		var st unix.Stat_t
		if err := unix.Stat("/dev/"+name, &st); err != nil {
			t.Fatal(err)
		}
		all[i] = [2]unix.Timespec{st.Mtim, st.Ctim}
	}
	return all
}

// The kernel echoes in threads of its own, which no CPU limit holds: without
// being asked for there is no terminal to be made.
func TestNoTerminalWithoutBeingAskedFor(t *testing.T) {
	const open = "import os\ntry:\n  print(os.ttyname(os.openpty()[1]))\nexcept OSError as e:\n  print(e.strerror)"
	testkit.Requires(t, "python3")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for _, c := range []struct {
			flags []string
			want  string
		}{{nil, "No such file or directory\n"}, {[]string{"--pty"}, "/dev/pts/0\n"}} {
			o := must(t, testkit.Run(t, testkit.Opts{Who: who}, append(c.flags, "-c", open, "--lang", "python")...))
			if o.Stdout != c.want {
				t.Errorf("%v: %q, want %q", c.flags, o.Stdout, c.want)
			}
		}
	})
}
