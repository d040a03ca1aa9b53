package cgroup

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sandglass/pkg/doctor/causes"
)

// parentV2 is the v2 group below which a run's group is made.
type parentV2 struct {
	mount string // top of the v2 mount
	path  string
	chain bool // controllers may be enabled from the mount down to it
	ours  bool // the default of root: made and removed on demand
	leave bool // the caller is in it and must go to a leaf first
}

// planV2 chooses the parent and checks what can be checked without a change.
func (t *tree) planV2(override string) (parentV2, *cause) {
	m := t.v2
	p := parentV2{mount: m.point}
	switch {
	case override != "":
		p.path, p.chain = strings.TrimSuffix(m.point+override, "/"), true
		if !exists(p.path) {
			return p, because("cgroup parent "+p.path+" does not exist", "mkdir "+p.path)
		}
	// Only the real root of the hierarchy has no cgroup.events.
	case os.Geteuid() == 0 && !exists(m.point+"/cgroup.events"):
		p.path, p.chain, p.ours = m.point+defaultParent, true, true
	default:
		own, c := m.below(t.self.v2)
		if c != nil {
			return p, c
		}
		parent, inLeaf := strings.CutSuffix(own, "/"+supervisorLeaf)
		p.path, p.leave = parent, !inLeaf
		if c := delegated(p.path); c != nil {
			return p, c
		}
	}
	return p, usable(p.path)
}

// delegated is nil when the caller may make groups below path and move into
// them; these are the three that systemd gives away with Delegate=.
func delegated(path string) *cause {
	for _, f := range []string{"", "/cgroup.procs", "/cgroup.subtree_control"} {
		err := unix.Faccessat(unix.AT_FDCWD, path+f, unix.W_OK, unix.AT_EACCESS)
		if err == unix.EROFS {
			return explain("write to", path+f, err)
		}
		if err != nil {
			return because("own cgroup "+path+" is not delegated to uid "+strconv.Itoa(os.Geteuid())+
				" ("+path+f+": "+err.Error()+")", causes.OwnGroup()...)
		}
	}
	return nil
}

// usable refuses parents in which no group of ours could work.
func usable(path string) *cause {
	if s, err := readPath(path+"/cgroup.type", 64); err == nil {
		if s = strings.TrimSpace(s); s != "domain" {
			return because("cgroup " + path + " is threaded (cgroup.type is \"" + s + "\"): no memory limit can be set below it")
		}
	}
	if s, err := readPath(path+"/cgroup.events", 256); err == nil && field(s, "frozen") == 1 {
		return because("cgroup "+path+" is frozen", "echo 0 > "+path+"/cgroup.freeze")
	}
	return nil
}

// prepare makes the parent and enables the asked limits' controllers below
// it. have is what can be set, lacks says why the rest cannot. A *cause as the
// error says why there can be no group at all.
func (p parentV2) prepare(asked []string) (have []string, lacks map[string]*cause, err error) {
	if p.ours {
		if err := mkdir(p.path); err != nil && err != unix.EEXIST {
			return nil, nil, explain("mkdir", p.path, err)
		}
	}
	lacks = map[string]*cause{}
	ctrls, err := readPath(p.path+"/cgroup.controllers", maxSmall)
	if err == nil && p.chain && !hasAll(ctrls, asked) {
		lacks = p.enableChain(asked)
		ctrls, err = readPath(p.path+"/cgroup.controllers", maxSmall)
	}
	if err != nil {
		if p.ours && gone(err) {
			return nil, nil, errParentGone
		}
		return nil, all(asked, explain("read", p.path+"/cgroup.controllers", err)), nil
	}
	for _, limit := range asked {
		if hasWord(ctrls, limit) {
			have = append(have, limit)
			delete(lacks, limit)
		} else if lacks[limit] == nil {
			lacks[limit] = noController(limit, p.path, ctrls, p.chain)
		}
	}
	failed, err := p.enable(have)
	if err != nil {
		return nil, nil, err
	}
	left := have[:0]
	for _, limit := range have {
		if c := failed[limit]; c != nil {
			lacks[limit] = c
		} else {
			left = append(left, limit)
		}
	}
	return left, lacks, nil
}

func all(limits []string, c *cause) map[string]*cause {
	m := map[string]*cause{}
	for _, l := range limits {
		m[l] = c
	}
	return m
}

func each(limits []string, why func(string) *cause) map[string]*cause {
	m := map[string]*cause{}
	for _, l := range limits {
		m[l] = why(l)
	}
	return m
}

// occupied says whether processes are in a group itself. Only in the real root,
// which has no cgroup.events, they are in nobody's way.
func occupied(path string) bool {
	if !exists(path + "/cgroup.events") {
		return false
	}
	list, err := readPath(path+"/cgroup.procs", 64)
	return err == nil && list != ""
}

func hasAll(list string, words []string) bool {
	for _, w := range words {
		if !hasWord(list, w) {
			return false
		}
	}
	return true
}

func noController(limit, path, ctrls string, chain bool) *cause {
	offers := strings.Join(strings.Fields(ctrls), " ")
	if offers == "" {
		offers = "none"
	}
	what := "the " + limit + " controller is not available in " + path + " (available: " + offers + ")"
	if chain {
		return because(what, "boot with cgroup_enable="+limit+" and without cgroup_disable="+limit+", cgroup_no_v1=all for hybrid hosts")
	}
	return because(what, causes.Delegate()...)
}

// enableChain enables controllers from the mount's top down to the parent's
// own parent. What fails is found again, and named, by the caller.
func (p parentV2) enableChain(ctrls []string) map[string]*cause {
	lacks := map[string]*cause{}
	at := p.mount
	rest := strings.TrimPrefix(p.path, p.mount)
	for rest != "" {
		offers, err := readPath(at+"/cgroup.controllers", maxSmall)
		if err != nil {
			return lacks
		}
		for _, c := range ctrls {
			if !hasWord(offers, c) && lacks[c] == nil {
				lacks[c] = noController(c, at, offers, true)
			}
		}
		for c, why := range p.enableIn(at, ctrls, lacks) {
			lacks[c] = why
		}
		next, _, _ := strings.Cut(rest[1:], "/")
		at += "/" + next
		rest = rest[1+len(next):]
	}
	return lacks
}

// enable lets the parent's children use the controllers, after the caller has
// left it if it must.
func (p parentV2) enable(ctrls []string) (map[string]*cause, error) {
	now, err := readPath(p.path+"/cgroup.subtree_control", maxSmall)
	if err != nil {
		if p.ours && gone(err) {
			return nil, errParentGone
		}
		return all(ctrls, explain("read", p.path+"/cgroup.subtree_control", err)), nil
	}
	if len(ctrls) == 0 || hasAll(now, ctrls) {
		return nil, nil
	}
	if p.leave {
		if c := p.moveOut(); c != nil {
			return all(ctrls, c), nil
		}
	}
	return p.enableIn(p.path, ctrls, nil), nil
}

// enableIn writes the controllers that are missing in one group's
// subtree_control, all at once, and one by one when that fails, to learn which.
// A group with processes of its own is left as it is: it would take pids and
// cpu, and with them become a threaded one, in which no child can be limited
// and to whose children nothing can be moved any more.
func (p parentV2) enableIn(path string, ctrls []string, skip map[string]*cause) map[string]*cause {
	file := path + "/cgroup.subtree_control"
	now, err := readPath(file, maxSmall)
	var want []string
	for _, c := range ctrls {
		if err != nil || !hasWord(now, c) && skip[c] == nil {
			want = append(want, c)
		}
	}
	if len(want) > 0 && occupied(path) {
		return each(want, func(c string) *cause { return cannotEnable(c, path, p.mount, unix.EBUSY) })
	}
	if len(want) == 0 || writeAt(unix.AT_FDCWD, file, "+"+strings.Join(want, " +")) == nil {
		return nil
	}
	failed := map[string]*cause{}
	for _, c := range want {
		if err := writeAt(unix.AT_FDCWD, file, "+"+c); err != nil {
			failed[c] = cannotEnable(c, path, p.mount, err)
		}
	}
	return failed
}

func cannotEnable(ctrl, path, top string, err error) *cause {
	what := "the " + ctrl + " controller cannot be enabled in " + path + ": " + err.Error()
	switch err {
	case unix.EBUSY:
		return because(what+" (processes are in that group itself)", append(causes.OtherGroup(), hintLeaf(path, top))...)
	case unix.EACCES, unix.EPERM:
		return because(what, causes.OwnGroup()...)
	case unix.EROFS:
		return explain("write +"+ctrl+" to", path+"/cgroup.subtree_control", err)
	case unix.EINVAL:
		return because(what + " (real-time tasks in a group, with CONFIG_RT_GROUP_SCHED?)")
	}
	return because(what)
}

// hintLeaf empties a group, for the entry point of a container, and names it.
func hintLeaf(path, top string) string {
	return "mkdir -p " + path + "/init && for p in $(cat " + path + "/cgroup.procs); do echo $p > " + path +
		"/init/cgroup.procs; done; sandglass run --cgroup-parent /" + strings.TrimPrefix(strings.TrimPrefix(path, top), "/") + " script.py"
}

// moveOut moves the caller from its own group to a leaf below it, because a v2
// group with controllers may hold no process. It moves nobody else: other
// processes there are not ours to move, and it looks for them first, so that
// a refusal changes nothing.
func (p parentV2) moveOut() *cause {
	if c := p.alone(); c != nil {
		return c
	}
	leaf := p.path + "/" + supervisorLeaf
	if err := mkdir(leaf); err != nil && err != unix.EEXIST {
		return explain("mkdir", leaf, err)
	}
	if err := writeAt(unix.AT_FDCWD, leaf+"/cgroup.procs", "0"); err != nil {
		unix.Rmdir(leaf)
		return explain("move to", leaf, err)
	}
	return nil
}

// alone is nil when the caller is the only process in the parent itself.
func (p parentV2) alone() *cause {
	procs, err := readPath(p.path+"/cgroup.procs", maxSmall)
	if err != nil {
		return explain("read", p.path+"/cgroup.procs", err)
	}
	me := strconv.Itoa(os.Getpid())
	for pid := range strings.FieldsSeq(procs) {
		if pid != me {
			return because("other processes are in own cgroup "+p.path+", so no controller can be enabled in it",
				append(causes.OtherGroup(), hintLeaf(p.path, p.mount))...)
		}
	}
	return nil
}
