package doctor

import (
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/doctor"
)

// refuses is who withholds something, as far as this host lets one know.
func refuses(r doctor.Report) string {
	for _, k := range r.Host.Kind {
		if strings.HasSuffix(k, " container") {
			return "the profile of this " + k + " (seccomp, AppArmor or SELinux)"
		}
	}
	return "the seccomp filter that this process is under"
}

// isContainer: this host is one, of a kind that can be told.
func isContainer(r doctor.Report) bool {
	return slices.ContainsFunc(r.Host.Kind, func(k string) bool { return strings.HasSuffix(k, " container") })
}

func fails(cause string) doctor.Layer   { return doctor.Layer{State: doctor.DoesNot, Cause: cause} }
func untried(cause string) doctor.Layer { return doctor.Layer{State: doctor.NotTried, Cause: cause} }

// inNamespaces are the layers that are tried inside all of a run's namespaces.
var inNamespaces = []string{"cgroup namespace", "new mounts", "bind mounts", "devices", "proc", "scratch", "pivot_root",
	"kernel quotas", "capabilities", "landlock"}

// otherNamespaces are those beside the user namespace.
var otherNamespaces = []string{"mount namespace", "pid namespace", "network namespace", "ipc namespace", "uts namespace"}

func (w want) all(names []string, l doctor.Layer) want {
	for _, n := range names {
		w[n] = l
	}
	return w
}

// without is the same for both kinds of caller: this host, and the poorer one.
func without(t *testing.T, poor func(t *testing.T, who testkit.Who) place, expect func(who testkit.Who, r doctor.Report) want, state doctor.State, cause func(doctor.Report) string) {
	t.Helper()
	testkit.Requires(t, "userns")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		base := place{who: who}.report(t)
		p := poor(t, who)
		r := p.report(t)
		expect(who, r).compare(t, base, r)
		wantState := state
		if state == doctor.Works {
			wantState = base.Run.State
		}
		if r.Run.State != wantState || cause != nil && r.Run.Error != cause(r) {
			t.Errorf("a run: %s, %q", r.Run.State, r.Run.Error)
		}
		p.agrees(t, r)
	})
}

// A filter that knows clone3 no flags to look at, and allows namespaces by clone:
// where limits are groups of cgroup v2 nothing can be started in them.
func TestNoClone3(t *testing.T) {
	const none = "clone: this kernel lacks a system call that sandglass needs, or the seccomp filter that this process is under hides it"
	testkit.Requires(t, "cgroup2", "userns")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		if !who.Limited() {
			testkit.Skip(t, "a delegated cgroup", "none")
		}
		base := place{who: who}.report(t)
		p := rules(t, who, "clone3=ENOSYS")
		r := p.report(t)
		w := want{}
		for _, l := range limits {
			if layer(t, base, l+" limit").State == doctor.Works {
				w[l+" limit"] = fails(none)
			}
		}
		w.compare(t, base, r)
		if r.Run.State != doctor.DoesNot || r.Run.Error != none {
			t.Errorf("a run: %+v", r.Run)
		}
		p.agrees(t, r)
	})
}

// This host as it is: every layer works, but for limits that an ordinary user
// has no group for.
func TestThisHost(t *testing.T) {
	testkit.Requires(t, "userns", "seccomp")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		p := place{who: who}
		r := p.report(t)
		for _, l := range r.Layers {
			switch l.Name {
			case "landlock", "io limit", "id-mapped mounts", ownID: // the kernel's age, the disks, the file system, the host's owner decide
			case "memory limit", "cpu limit", "pids limit":
				if (l.State == doctor.Works) != who.Limited() {
					t.Errorf("%s: %s: %s", l.Name, l.State, l.Cause)
				}
			default:
				if l.State != doctor.Works {
					t.Errorf("%s: %s: %s", l.Name, l.State, l.Cause)
				}
			}
		}
		p.agrees(t, r)
	})
}

// The seccomp filter of a container with Docker's own profile.
func TestDockerProfile(t *testing.T) {
	cause := func(r doctor.Report) string {
		return "user namespaces cannot be made or mapped: clone: operation not permitted; " + refuses(r) + " refuses it"
	}
	without(t, func(t *testing.T, who testkit.Who) place {
		return rules(t, who, "newns=EPERM", "unshare=EPERM", "setns=EPERM", "mount=EPERM", "umount2=EPERM", "pivot_root=EPERM",
			"open_tree=EPERM", "move_mount=EPERM", "fsopen=EPERM", "mount_setattr=EPERM", "clone3=ENOSYS")
	}, func(who testkit.Who, r doctor.Report) want {
		w := want{"user namespace": fails(cause(r))}.all(inNamespaces, untried("it needs the user namespace")).all(otherNamespaces, untried("it needs the user namespace"))
		if who.IsRoot() {
			w["id-mapped mounts"] = untried("it needs the user namespace")
		}
		if who.Limited() && r.Host.Cgroup == "v2" { // whose groups are cloned into, by clone3
			for _, l := range limits {
				w[l+" limit"] = fails("clone: this kernel lacks a system call that sandglass needs, or the seccomp filter that this process is under hides it")
			}
		}
		return w
	}, doctor.DoesNot, cause)
}

// Ubuntu's restriction, and profiles of LXC, let namespaces be made and refuse
// the mounts in them.
func TestMountsRefused(t *testing.T) {
	denied := func(r doctor.Report) string {
		return "permission denied (inside a user namespace this needs CAP_SYS_ADMIN; " + refuses(r) + " refuses it)"
	}
	without(t, func(t *testing.T, who testkit.Who) place {
		return rules(t, who, "mount=EACCES", "umount2=EACCES", "pivot_root=EACCES", "fsopen=EACCES", "sethostname=EACCES")
	}, func(_ testkit.Who, r doctor.Report) want {
		return want{
			"uts namespace": fails("hostname: " + denied(r)),
			"landlock":      fails("landlock: allow message queues: " + denied(r)),
		}.all([]string{"new mounts", "bind mounts", "devices", "proc", "scratch", "pivot_root"}, fails("make mounts private: "+denied(r)))
	}, doctor.DoesNot, func(r doctor.Report) string { return "init: hostname: " + denied(r) })
}

func TestPivotRootRefused(t *testing.T) {
	denied := func(r doctor.Report) string {
		return "pivot_root: permission denied (inside a user namespace this needs CAP_SYS_ADMIN; " + refuses(r) + " refuses it)"
	}
	without(t, func(t *testing.T, who testkit.Who) place { return rules(t, who, "pivot_root=EACCES") },
		func(_ testkit.Who, r doctor.Report) want { return want{"pivot_root": fails(denied(r))} },
		doctor.DoesNot, func(r doctor.Report) string { return "init: " + denied(r) })
}

// As on a host whose root is the initial ramfs.
func TestInitialRamfs(t *testing.T) {
	const cause = "pivot_root: invalid argument (the host's root is the initial ramfs, which pivot_root(2) refuses)"
	without(t, func(t *testing.T, who testkit.Who) place { return rules(t, who, "pivot_root=EINVAL") },
		func(testkit.Who, doctor.Report) want { return want{"pivot_root": fails(cause)} },
		doctor.DoesNot, func(doctor.Report) string { return "init: " + cause })
}

// A kernel without Landlock: the other layers do, and a run starts.
func TestNoLandlock(t *testing.T) {
	without(t, func(t *testing.T, who testkit.Who) place { return rules(t, who, "landlock_create_ruleset=EOPNOTSUPP") },
		func(testkit.Who, doctor.Report) want {
			return want{"landlock": {State: doctor.Less,
				Cause: "this kernel has no Landlock, or it was not switched on at boot: there is no second opinion on files, signals and sockets"}}
		}, doctor.Works, nil)
}

// A kernel before 5.12, or a filter that does not know its calls yet.
func TestNoMountSetattr(t *testing.T) {
	const none = "function not implemented (this kernel lacks the system call, or the seccomp filter that this process is under hides it)"
	without(t, func(t *testing.T, who testkit.Who) place { return rules(t, who, "mount_setattr=ENOSYS") },
		func(who testkit.Who, r doctor.Report) want {
			w := want{"bind mounts": fails("mount /usr: " + none), "devices": fails("mount /dev/null: " + none), "proc": fails("mount /proc/sys: " + none)}
			if who.IsRoot() {
				w["id-mapped mounts"] = fails("/: mount_setattr: " + none)
			}
			return w
		}, doctor.DoesNot, func(doctor.Report) string { return "init: mount /usr: " + none })
}

// A call that init's process makes before all others: nothing can be tried, and
// the process that ends by itself at once is told by that call, each time.
func TestNoCloseRange(t *testing.T) {
	const none = ": this kernel lacks a system call that sandglass needs, or the seccomp filter that this process is under hides it"
	testkit.Requires(t, "userns")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		p := rules(t, who, "close_range=ENOSYS")
		for range 5 {
			r := p.report(t)
			for _, l := range r.Layers {
				switch {
				case l.Name == "user namespace" || l.Name == "rlimits" || l.Name == "no_new_privs" || l.Name == "seccomp" || l.Name == "time":
					if l.State != doctor.DoesNot || !strings.HasPrefix(l.Cause, "close ") || !strings.HasSuffix(l.Cause, none) {
						t.Errorf("%+v", l)
					}
				case !strings.HasSuffix(l.Name, " limit") && l.State != doctor.NotTried:
					t.Errorf("%+v", l)
				}
			}
			if r.Run.State != doctor.DoesNot || r.Run.Error != layer(t, r, "user namespace").Cause {
				t.Errorf("a run: %+v", r.Run)
			}
			p.agrees(t, r)
		}
	})
}

// A kernel without seccomp filters.
func TestNoSeccomp(t *testing.T) {
	const cause = "start program: seccomp: invalid argument (seccomp filters are not built into this kernel)"
	without(t, func(t *testing.T, who testkit.Who) place { return rules(t, who, "seccomp=EINVAL") },
		func(testkit.Who, doctor.Report) want { return want{"seccomp": fails(cause)} },
		doctor.DoesNot, func(doctor.Report) string { return "init: " + cause })
}

// A filter that keeps a sandbox from being ended: no limit on time would hold.
func TestNoKillByPidfd(t *testing.T) {
	cause := func(r doctor.Report) string {
		return "a process cannot be ended by its pidfd, so no limit on time could be held: operation not permitted; " + refuses(r) + " refuses it"
	}
	without(t, func(t *testing.T, who testkit.Who) place { return rules(t, who, "pidfd_send_signal=EPERM") },
		func(_ testkit.Who, r doctor.Report) want { return want{"time": fails(cause(r))} },
		doctor.DoesNot, cause)
}

// An outer container masks parts of /proc: the kernel then allows no new one.
func TestMaskedProc(t *testing.T) {
	const cause = "mount /proc: operation not permitted (an outer container masks parts of /proc, so a new one may not be mounted)"
	poor := func(t *testing.T, who testkit.Who) place {
		return script(t, who, "mount -t tmpfs -o ro tmpfs /proc/fs")
	}
	without(t, poor, func(testkit.Who, doctor.Report) want { return want{"proc": fails(cause)} },
		doctor.DoesNot, func(doctor.Report) string { return "init: " + cause })
	// The hint's flag helps.
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		p := poor(t, who)
		if o := p.do(t, "run", append(who.Flags(), "--proc", "none", "--", "echo", "ran")...); o.Exit != 0 || o.Stdout != "ran\n" {
			t.Errorf("exit %d, %q%s", o.Exit, o.Stdout, o.Stderr)
		}
	})
}

// As in most containers: /proc/sys cannot be written, which also forbids a new
// /proc.
func TestReadOnlyProcSys(t *testing.T) {
	const quotas = "open /proc/sys/user: /proc/sys is read-only on this host, so the caller's inotify instances and watches could not be kept from the program"
	const proc = "mount /proc: operation not permitted (an outer container masks parts of /proc, so a new one may not be mounted)"
	without(t, func(t *testing.T, who testkit.Who) place {
		return script(t, who, "mount --bind /proc/sys /proc/sys\nmount -o remount,bind,ro /proc/sys")
	}, func(testkit.Who, doctor.Report) want {
		return want{"proc": fails(proc), "kernel quotas": fails(quotas)}
	},
		doctor.DoesNot, func(doctor.Report) string { return "init: " + quotas })
}
