package cgroup

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sandglass/internal/refusal"
	"sandglass/pkg/result"
)

// createV2 makes sandglass-<id> with its two leaves. Another run's Close can
// remove the empty default parent between two of our steps: then it starts
// afresh.
func (g *Group) createV2(t *tree) error {
	p, c := t.planV2(g.opt.Parent)
	if c != nil {
		return g.lackAll(c)
	}
	g.parent, g.removeParent = p.path, p.ours
	for try := 0; ; try++ {
		g.lacks = nil
		err := g.tryV2(p)
		if err != errParentGone || try == 20 {
			return err
		}
	}
}

// errParentGone asks for another try.
var errParentGone = &refusal.Error{What: "the parent cgroup was removed again and again", Exit: refusal.ExitRefused}

// gone are the errors of a group that was removed: ENODEV comes from a file
// that was open or being opened.
func gone(err error) bool { return err == unix.ENOENT || err == unix.ENODEV }

func (g *Group) tryV2(p parentV2) error {
	asked := g.limits.asked()
	have, lacks, err := p.prepare(asked)
	if c, ok := err.(*cause); ok {
		return g.lackAll(c)
	}
	if err != nil {
		return err
	}
	for _, limit := range asked {
		if c := lacks[limit]; c != nil {
			g.lack(limit, c)
		}
	}
	if err := g.refused(); err != nil {
		return err
	}
	g.notes = nil // refused has noted what Create will note again
	path := p.path + "/" + prefix + g.opt.ID
	run, err := makeLocked(path)
	if err != nil {
		if p.ours && gone(err) {
			return errParentGone
		}
		return g.lackAll(explain("mkdir", path, err))
	}
	g.run = run
	if c := g.leavesV2(have); c != nil {
		return c.refuse()
	}
	for _, limit := range have {
		if c := g.setV2(limit); c != nil {
			g.lack(limit, c)
		} else {
			g.by[limit] = result.ByCgroup2
		}
	}
	return nil
}

// leavesV2 makes init and box and lets PID 1 clone into them.
func (g *Group) leavesV2(have []string) *cause {
	if len(have) > 0 {
		if c := g.run.set("cgroup.subtree_control", "+"+strings.Join(have, " +")); c != nil {
			return c
		}
	}
	for _, leaf := range []struct {
		name string
		d    *dir
	}{{"init", &g.init}, {"box", &g.box}} {
		path := g.run.path + "/" + leaf.name
		if err := unix.Mkdirat(g.run.fd, leaf.name, leafMode); err != nil {
			return explain("mkdir", path, err)
		}
		d, err := openDir(path, leafMode)
		if err != nil {
			return explain("open", path, err)
		}
		*leaf.d = d
	}
	if g.opt.HostUID == os.Geteuid() {
		return nil
	}
	for _, d := range []dir{g.run, g.box} {
		if err := g.letIn(d); err != nil {
			return explain("chown", d.path+"/cgroup.procs", err)
		}
	}
	return nil
}

// letIn lets HostUID move processes between the two groups.
//
// An ordinary user can give nothing away, so everybody may then. The kernel also
// wants the same right on the group above both where a process is and where it
// goes (cgroup_procs_write_permission): nobody has that but who is in the run's
// group already, for those above it are not writable.
func (g *Group) letIn(d dir) error {
	if os.Geteuid() != 0 {
		return unix.Fchmodat(d.fd, "cgroup.procs", 0o666, 0)
	}
	return unix.Fchownat(d.fd, "cgroup.procs", g.opt.HostUID, -1, unix.AT_SYMLINK_NOFOLLOW)
}

func (g *Group) setV2(limit string) *cause {
	switch limit {
	case Memory:
		return g.memoryV2()
	case Pids:
		return g.box.set("pids.max", strconv.FormatInt(g.limits.PidsMax, 10))
	case CPU:
		return g.box.set("cpu.max", strconv.FormatInt(g.limits.CPUQuotaUS, 10)+" "+strconv.FormatInt(g.limits.period(), 10))
	}
	for _, l := range g.limits.IO {
		// One device a write: the kernel takes no more.
		line := device(l) + " rbps=" + orMax(l.ReadBPS) + " wbps=" + orMax(l.WriteBPS) +
			" riops=" + orMax(l.ReadIOPS) + " wiops=" + orMax(l.WriteIOPS)
		if c := g.box.set("io.max", line); c != nil {
			return c
		}
	}
	return nil
}

func orMax(n int64) string {
	if n == 0 {
		return "max"
	}
	return strconv.FormatInt(n, 10)
}

func (g *Group) memoryV2() *cause {
	if c := g.box.set("memory.max", strconv.FormatInt(g.limits.MemoryMax, 10)); c != nil {
		return c
	}
	// Without it a survivor of the killer goes on with half of the program.
	if c := g.box.set("memory.oom.group", "1"); c != nil {
		return c
	}
	err := writeAt(g.box.fd, "memory.swap.max", "0")
	if err == unix.ENOENT {
		if hostSwap() {
			g.note("this kernel counts no swap (boot with swapaccount=1): what is swapped out is not limited")
		}
		return nil
	}
	if err != nil {
		return explain("write 0 to", g.box.path+"/memory.swap.max", err)
	}
	return nil
}
