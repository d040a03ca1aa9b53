package doctor

import (
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/doctor"
)

// nested is this host from inside a user namespace in which the caller is uid 0
// and owns the settings below /proc/sys/user, like root of a rootless container.
func nested(t *testing.T, who testkit.Who, text string) place {
	t.Helper()
	testkit.Requires(t, "unshare", "userns")
	return place{who: who, prefix: []string{"unshare", "--user", "--map-root-user", "sh", "-ec", text + "\n" + `exec "$@"`, "sh"}}
}

// A limit on namespaces is named by its setting, whichever it is; what can be
// tried without that namespace is.
func TestNamespacesUsedUp(t *testing.T) {
	testkit.Requires(t, "userns")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		base := nested(t, who, ":").report(t)
		for _, ns := range []struct{ setting, name, layer string }{
			{"user", "user", "user namespace"}, {"net", "network", "network namespace"}, {"uts", "UTS", "uts namespace"},
			{"ipc", "IPC", "ipc namespace"}, {"mnt", "mount", "mount namespace"}, {"pid", "PID", "pid namespace"},
		} {
			p := nested(t, who, "echo 0 >/proc/sys/user/max_"+ns.setting+"_namespaces")
			r := p.report(t)
			cause := ns.name + " namespaces cannot be made: user.max_" + ns.setting + "_namespaces is 0"
			w := want{}.all(inNamespaces, untried("it needs all of the namespaces"))
			if ns.setting == "user" {
				w = want{}.all(inNamespaces, untried("it needs the user namespace")).all(otherNamespaces, untried("it needs the user namespace"))
			}
			w[ns.layer] = fails(cause)
			w.compare(t, base, r)
			remedy := "sysctl -w user.max_" + ns.setting + "_namespaces=15000   # "
			if l := layer(t, r, ns.layer); len(l.Remedies) != 1 || !strings.HasPrefix(l.Remedies[0], remedy) {
				t.Errorf("remedies %q", l.Remedies)
			}
			if r.Run.State != doctor.DoesNot || r.Run.Error != cause {
				t.Errorf("a run: %+v", r.Run)
			}
			p.agrees(t, r)
		}
	})
}

// Root whose capabilities an outer container has taken: what is missing is
// named, and each sandbox is told to have root's own id.
func TestRootWithoutCapabilities(t *testing.T) {
	testkit.Requires(t, "root", "setpriv", "userns")
	who := testkit.AsRoot(t)
	without := func(caps string) place {
		return place{who: who, prefix: []string{"setpriv", "--bounding-set", caps, "--inh-caps", "-all"}}
	}
	p := without("-all")
	r := p.report(t)
	const cause = "user namespaces cannot be made or mapped: map ids: operation not permitted; root lacks CAP_SETFCAP"
	l := layer(t, r, "user namespace")
	if l.State != doctor.DoesNot || l.Cause != cause || len(l.Remedies) != 2 {
		t.Errorf("%+v", l)
	}
	if r.Run.State != doctor.DoesNot || r.Run.Error != l.Cause || !slices.Equal(r.Run.Hints, l.Remedies) {
		t.Errorf("a run: %+v", r.Run)
	}
	p.agrees(t, r)

	// Securebits take them too.
	p = place{who: who, prefix: []string{"setpriv", "--securebits", "+noroot,+no_setuid_fixup"}}
	if r := p.report(t); r.Run.State != doctor.DoesNot || r.Run.Error != cause {
		t.Errorf("with securebits: %+v", r.Run)
	} else {
		p.agrees(t, r)
	}

	// The one that is named is enough.
	p = without("-all,+setfcap")
	r = p.report(t)
	if l := layer(t, r, "user namespace"); l.State != doctor.Less || r.Run.State == doctor.DoesNot {
		t.Errorf("%+v, a run: %+v", l, r.Run)
	}
	p.agrees(t, r)

	p = without("-sys_admin")
	r = p.report(t)
	l = layer(t, r, "user namespace")
	if l.State != doctor.Less || l.Cause != "root's sandboxes have root's own id on this host: root lacks CAP_SYS_ADMIN" || len(l.Remedies) == 0 {
		t.Errorf("%+v", l)
	}
	p.agrees(t, r)
}

// A user whom no file names: nothing looks one up.
func TestUserWithoutAnEntry(t *testing.T) {
	testkit.Requires(t, "root", "setpriv", "userns")
	const uid = 4242
	user := testkit.AsUser(t)
	base := place{who: user}.report(t)
	p := place{who: testkit.AsRoot(t), prefix: []string{"setpriv", "--reuid", number(uid), "--regid", number(uid), "--clear-groups"}}
	r := p.report(t)
	own := layer(t, r, "own host id") // told with the user's name or number
	if own.State != doctor.Less {
		t.Errorf("%+v", own)
	}
	want{"user namespace": {State: doctor.Works, Detail: "the caller's own host id, 4242"}, "own host id": own}.compare(t, base, r)
	if r.Host.UID != uid || r.Run.State != base.Run.State {
		t.Errorf("uid %d, %s", r.Host.UID, r.Run.State)
	}
	p.agrees(t, r)
}

// Root of a container with a few ids: they are not those that sandboxes get.
func TestRootOfAUserNamespace(t *testing.T) {
	testkit.Requires(t, "root", "userns")
	p := nested(t, testkit.AsRoot(t), ":")
	r := p.report(t)
	l := layer(t, r, "user namespace")
	if l.State != doctor.Less || l.Cause != "root's sandboxes have root's own id on this host: the ids of sandboxes are not mapped in this user namespace" {
		t.Errorf("%+v", l)
	}
	p.agrees(t, r)
}

// Root for whose sandboxes no id can be held: a directory of somebody else's is
// where the locks would be.
func TestNoHostID(t *testing.T) {
	who := testkit.AsRoot(t)
	base := place{who: who}.report(t)
	p := script(t, who, "mount --bind /proc/sys/kernel /proc/sys/kernel\nmount -o remount,bind,ro /proc/sys/kernel\n"+
		"mount -t tmpfs tmpfs /run\nmkdir -m 0777 /run/sandglass")
	r := p.report(t)
	const cause = "no host id for the sandbox: open /run/sandglass: not a private directory of root's"
	const proc = "mount /proc: operation not permitted (an outer container masks parts of /proc, so a new one may not be mounted)"
	w := want{"user namespace": fails(cause), "proc": fails(proc)}
	base.Layers = slices.DeleteFunc(base.Layers, func(l doctor.Layer) bool { return l.Name == "id-mapped mounts" })
	w.compare(t, base, r)
	if r.Run.State != doctor.DoesNot || r.Run.Error != cause {
		t.Errorf("a run: %+v", r.Run)
	}
	p.agrees(t, r)
}
