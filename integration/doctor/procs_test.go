package doctor

import (
	"os/exec"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/internal/testkit/agree"
	"sandglass/pkg/doctor"
)

// refused is a run that never starts, in a line and with hints, which doctor says
// as well.
func (p place) refused(t *testing.T, want string, flags ...string) {
	t.Helper()
	o := p.do(t, "run", append(flags, "--", "echo", "ran")...)
	said, hints, _ := strings.Cut(agree.Plain(o.Stderr), "\n")
	if o.Exit != 125 || o.Stdout != "" || said != "sandglass: error: "+want || !strings.HasPrefix(hints, "hint: ") {
		t.Errorf("exit %d, %q, %s\nwant %s", o.Exit, o.Stdout, o.Stderr, want)
	}
	r := p.report(t)
	if r.Run.State == doctor.Works {
		t.Errorf("doctor: a run %s", r.Run.State)
	}
	p.agrees(t, r)
}

// By a /proc of another PID namespace ids would be mapped for, and what was read
// back would be of, whoever has the sandbox's number there.
func TestForeignProc(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		p := script(t, who, ":")
		p.prefix = append([]string{"unshare", "--pid", "--fork"}, p.prefix...)
		p.refused(t, "/proc is of another PID namespace: process N is M there, and other processes have the numbers of the sandbox's", who.Flags()...)
		// The hint helps.
		p = script(t, who, "mount -t proc proc /proc")
		p.prefix = append([]string{"unshare", "--pid", "--fork"}, p.prefix...)
		p.runs(t, "ran\n", append(who.Flags(), "--", "echo", "ran")...)
	})
}

func TestNoProc(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		p := script(t, who, `for m in $(awk '$5 ~ "^/proc" { print $5 }' /proc/self/mountinfo | sort -r); do umount -l "$m"; done`)
		p.refused(t, "no /proc is mounted that shows this process, and without it no sandbox can be set up or looked at", who.Flags()...)
	})
}

func TestReadOnlyProc(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		p := script(t, who, "mount -o remount,bind,ro /proc")
		p.refused(t, "/proc is read-only on this host, so the sandbox's ids cannot be mapped", who.Flags()...)
	})
}

// What changes nothing: processes of others that cannot be seen, no /sys but the
// limits', no shared memory, no mqueue.
func TestFewFileSystems(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for _, c := range []struct{ name, text string }{
			{"hidepid=2", "mount -t proc -o hidepid=2 proc /proc"},
			{"no /dev/shm", `for m in $(awk '$5 ~ "^/dev/(shm|mqueue|pts)" { print $5 }' /proc/self/mountinfo); do umount -l "$m"; done`},
			{"no /tmp to write to", "for d in /tmp /var/tmp; do mount --bind $d $d; mount -o remount,bind,ro $d; done"},
		} {
			p := script(t, who, c.text)
			p.runs(t, "ran\n", append(who.Flags(), "--", "echo", "ran")...)
			if c.name == "hidepid=2" { // what doctor looks at is not in the others
				everywhere(t, who, p)
			}
		}
	})
}

// Without /sys there is no control group, and that is what is said.
func TestNoSys(t *testing.T) {
	testkit.Requires(t, "cgroup")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		p := script(t, who, `for m in $(awk '$5 ~ "^/sys" { print $5 }' /proc/self/mountinfo | sort -r); do umount -l "$m"; done`)
		p.refused(t, "memory, pids, cpu limits: no cgroup file system is mounted below /sys/fs/cgroup")
		p.runs(t, "ran\n", "--allow-degraded", "memory,cpu,pids", "--", "echo", "ran")
	})
}

// Two things are lacking: one line for both, what no flag mends first, and hints
// which together are enough.
func TestTwoThingsLacking(t *testing.T) {
	testkit.Requires(t, "cgroup")
	const masked = "init: mount /proc: operation not permitted (an outer container masks parts of /proc, so a new one may not be mounted)"
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		p := script(t, who, noCgroup+"\nmount -t tmpfs -o ro tmpfs /proc/fs")
		p.refused(t, masked+"; memory, pids, cpu limits: no cgroup file system is mounted below /sys/fs/cgroup")
		o := p.do(t, "run", "--", "true")
		var flags []string
		for line := range strings.Lines(o.Stderr) {
			hint, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "hint: "), "   # ")
			if strings.HasPrefix(hint, "--") {
				flags = append(flags, strings.Fields(hint)...)
			}
		}
		if got := strings.Join(flags, " "); got != "--proc none --allow-degraded memory,pids,cpu" {
			t.Errorf("the hints' flags are %q", got)
		}
		p.runs(t, "ran\n", append(flags, "--", "echo", "ran")...)
		// With what one of them lacks alone, the other is said alone.
		p.refused(t, masked, "--allow-degraded", "memory,cpu,pids")
		p.refused(t, "memory, pids, cpu limits: no cgroup file system is mounted below /sys/fs/cgroup", "--proc", "none")
	})
}

// In a chroot the kernel allows no user namespace. Where a file system is mounted
// at its root nothing tells that it is one, and it is among what may be the cause.
func TestChroot(t *testing.T) {
	testkit.Requires(t, "root", "/usr/sbin/chroot", "userns")
	const what = "user namespaces cannot be made or mapped: clone: operation not permitted; "
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir := testkit.Dir(t)
		for _, c := range []struct{ root, why string }{
			{"mkdir -p r", "this process is in a chroot, where the kernel allows no user namespace"},
			{"mkdir -p r; mount -t tmpfs tmpfs r", "AppArmor, SELinux, an LXC profile, an outer container's seccomp filter or a chroot withholds it"},
		} {
			fill := "cd " + dir + "\n" + c.root + "\nfor d in bin lib lib64 usr proc sys dev tmp; do mkdir -p r/$d; mount --rbind /$d r/$d; done\n"
			p := script(t, testkit.AsRoot(t), fill+"set -- /usr/sbin/chroot --userspec="+number(who.UID)+":"+number(who.GID)+` --groups= r "$@"`)
			p.refused(t, what+c.why, who.Flags()...)
			// In place of it, as the hint has it.
			become := "setpriv --reuid " + number(who.UID) + " --regid " + number(who.GID) + " --clear-groups"
			p = script(t, testkit.AsRoot(t), fill+"mount --rbind r r && cd r && /usr/sbin/pivot_root . . && umount -l .\nset -- "+become+` "$@"`)
			p.runs(t, "ran\n", append(who.Flags(), "--", "echo", "ran")...)
		}
	})
}

// Root without one of its capabilities: each is enough to be refused by name, or
// changes nothing.
func TestRootWithoutOneCapability(t *testing.T) {
	testkit.Requires(t, "root", "setpriv", "userns")
	who := testkit.AsRoot(t)
	list, err := exec.Command("setpriv", "--list-caps").Output()
	if err != nil {
		t.Fatal(err)
	}
	const group = "permission denied (root without the capability CAP_DAC_OVERRIDE?)"
	want := map[string]string{
		"chown":      "root lacks CAP_CHOWN, which it needs to give the sandbox its pipes",
		"kill":       "a process cannot be ended by its pidfd, so no limit on time could be held: operation not permitted; root lacks CAP_KILL",
		"sys_ptrace": "root lacks CAP_SYS_PTRACE, which it needs to look at the sandbox's processes, which have another id",
	}
	for _, name := range strings.Fields(string(list)) {
		p := place{who: who, prefix: []string{"setpriv", "--bounding-set", "-" + name, "--inh-caps", "-" + name}}
		o := p.do(t, "run", "-v", testkit.Dir(t)+":/task", "--", "echo", "ran")
		said, hints, _ := strings.Cut(o.Stderr, "\n")
		switch {
		case o.Exit == 0 && o.Stdout == "ran\n" && o.Stderr == "":
		case o.Exit == 125 && o.Stdout == "" && strings.HasPrefix(hints, "hint: "):
			said = strings.TrimPrefix(said, "sandglass: error: ")
			if name == "dac_override" && strings.HasSuffix(said, group) { // of which limit depends on the host
				continue
			}
			if said != want[name] {
				t.Errorf("%s: %s, want %q", name, said, want[name])
			}
			delete(want, name)
			p.agrees(t, p.report(t))
		default:
			t.Errorf("%s: exit %d, %q, %q", name, o.Exit, o.Stdout, o.Stderr)
		}
	}
	for name := range want {
		t.Errorf("without %s nothing was refused", name)
	}
}
