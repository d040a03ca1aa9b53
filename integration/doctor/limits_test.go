package doctor

import (
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/doctor"
)

var limits = []string{"memory", "cpu", "pids", "io"}

// less is a limit that is not to be had, with each limit's own path in the cause.
func less(w want, base doctor.Report, cause func(limit string) string) want {
	for _, name := range limits {
		if i := slices.IndexFunc(base.Layers, func(l doctor.Layer) bool { return l.Name == name+" limit" && l.State == doctor.NotTried }); i >= 0 {
			continue // this host has no disk
		}
		w[name+" limit"] = doctor.Layer{State: doctor.Less, Cause: cause(name)}
	}
	return w
}

// everyMount is a shell loop over the cgroup file systems, the outermost last.
const everyMount = `for m in $(awk '$5 ~ "^/sys/fs/cgroup" { print $5 }' /proc/self/mountinfo | sort -r); do `

const noCgroup = everyMount + `umount -l "$m"; done`

// No cgroup file system at all: every limit is refused by name, and each can be
// held by weaker means.
func TestNoCgroup(t *testing.T) {
	testkit.Requires(t, "cgroup", "userns")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		base := place{who: who}.report(t)
		p := script(t, who, noCgroup)
		r := p.report(t)
		less(want{}, base, func(string) string { return "no cgroup file system is mounted below /sys/fs/cgroup" }).compare(t, base, r)
		if r.Host.Cgroup != "none" || r.Run.State != doctor.Less || r.Run.Flags != "--allow-degraded memory,cpu,pids" ||
			r.Run.Error != "memory, pids, cpu limits: no cgroup file system is mounted below /sys/fs/cgroup" {
			t.Errorf("cgroup %s, a run: %+v", r.Host.Cgroup, r.Run)
		}
		p.agrees(t, r)
	})
}

// Cgroup v1 alone, as before systemd had a v2 tree beside it: all is as with both.
func TestCgroupV1Alone(t *testing.T) {
	testkit.Requires(t, "cgroup1", "userns")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		base := place{who: who}.report(t)
		p := script(t, who, `for m in $(awk '/ - cgroup2 / { print $5 }' /proc/self/mountinfo); do umount -l "$m"; done`)
		r := p.report(t)
		w := want{} // a limit that is refused is, by a path of its own
		for _, l := range limits {
			w[l+" limit"] = layer(t, r, l+" limit")
			if got, as := w[l+" limit"].State, layer(t, base, l+" limit").State; got != as {
				t.Errorf("%s limit: %s, with v2 beside it %s", l, got, as)
			}
		}
		w.compare(t, base, r)
		if r.Host.Cgroup != "v1" || r.Run.State != base.Run.State {
			t.Errorf("cgroup %s, a run: %+v", r.Host.Cgroup, r.Run)
		}
		p.agrees(t, r)
	})
}

// As in most containers: the cgroup file systems are there and read-only.
func TestReadOnlyCgroup(t *testing.T) {
	testkit.Requires(t, "cgroup", "userns")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		base := place{who: who}.report(t)
		p := script(t, who, everyMount+`mount -o remount,bind,ro "$m" || true; done`)
		r := p.report(t)
		for _, name := range limits[:3] {
			l := layer(t, r, name+" limit")
			if !who.IsRoot() && r.Host.Cgroup == "v2" { // what comes first is that the group is another's
				if l.State != doctor.Less || !strings.HasPrefix(l.Cause, "own cgroup /sys/fs/cgroup") || !strings.Contains(l.Cause, " is not delegated to uid ") {
					t.Errorf("%+v", l)
				}
				continue
			}
			if !strings.HasPrefix(l.Cause, "the cgroup mount is read-only: ") || l.State != doctor.Less || l.Flag != "--allow-degraded "+name {
				t.Errorf("%+v", l)
			}
			remount := slices.Contains(l.Remedies, "mount -o remount,rw /sys/fs/cgroup")
			if mayMount := who.IsRoot() || !isContainer(r); len(l.Remedies) < 2 || remount != mayMount || !strings.HasPrefix(l.Remedies[len(l.Remedies)-1], l.Flag+"   # ") {
				t.Errorf("%s: %q", name, l.Remedies)
			}
		}
		w := want{}
		for _, name := range limits {
			w[name+" limit"] = layer(t, r, name+" limit")
		}
		w.compare(t, base, r)
		if r.Run.State != doctor.Less || r.Run.Flags != "--allow-degraded memory,cpu,pids" {
			t.Errorf("a run: %+v", r.Run)
		}
		p.agrees(t, r)
	})
}

// Inside a container with no cgroup and no user namespaces: one line for what no
// flag mends and a few hints, not one refusal after the other.
func TestNothingToBeHad(t *testing.T) {
	testkit.Requires(t, "cgroup", "userns")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		filter := rules(t, who, "newns=EPERM", "unshare=EPERM")
		p := script(t, who, noCgroup)
		p.prefix = append(p.prefix, filter.prefix...)
		r := p.report(t)
		cause := "user namespaces cannot be made or mapped: clone: operation not permitted; " + refuses(r) + " refuses it"
		if l := layer(t, r, "user namespace"); l.State != doctor.DoesNot || l.Cause != cause {
			t.Errorf("%+v", l)
		}
		if r.Run.State != doctor.DoesNot || r.Run.Error != cause {
			t.Errorf("a run: %+v", r.Run)
		}
		o := p.do(t, "run", "--", "true")
		if o.Exit != 125 || o.Stdout != "" || !strings.HasPrefix(o.Stderr, "sandglass: error: "+cause+"\nhint: ") || strings.Count(o.Stderr, "\n") > 5 {
			t.Errorf("exit %d: %s", o.Exit, o.Stderr)
		}
		if strings.Contains(o.Stderr, "--allow-degraded") {
			t.Errorf("a flag that does not help: %s", o.Stderr)
		}
		p.agrees(t, r)
		text := p.do(t, "doctor")
		if n := strings.Count(text.Stdout, "\n"); n > 24 {
			t.Errorf("%d lines:\n%s", n, text.Stdout)
		}
	})
}
