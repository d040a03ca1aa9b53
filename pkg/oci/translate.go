package oci

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"sandglass/internal/refusal"
	"sandglass/pkg/hostid"
	"sandglass/pkg/plan"
	"sandglass/pkg/policy"
	"sandglass/pkg/rootfs"

	"golang.org/x/sys/unix"
)

// HostID is the user's id on the host in a bundle, and HostID+1 that of root
// inside, which runtimes need for their own work and the program cannot become.
// No sandbox of sandglass's own has either. A file cannot choose a free id for
// each run: who starts several bundles at once gives each its own.
const HostID = hostid.First + hostid.Count

// Bundle is a plan for another runtime.
type Bundle struct {
	Config Config
	// Notes are what the format cannot say, each for a line.
	Notes []string

	entries []entry // of the root directory
	plan    *plan.Plan
}

// New translates a plan, and closes it with Close.
func New(p *plan.Plan) (*Bundle, error) {
	b := &Bundle{plan: p}
	b.Config.Linux.MaskedPaths, b.Config.Linux.ReadonlyPaths = []string{}, []string{} // null is no list
	items, err := p.Items(nil)
	if err != nil {
		return nil, err
	}
	if err := sayable(p, items); err != nil {
		return nil, err
	}
	t := &tree{bundle: b, spec: &p.Spec, shown: map[string][]byte{}}
	for i := range items {
		if err := t.item(&items[i]); err != nil {
			return nil, err
		}
	}
	b.basics()
	b.resources()
	if b.Config.Linux.Seccomp, err = filter(p.Filter); err != nil {
		return nil, err
	}
	b.Config.Process.Rlimits = rlimits(p)
	b.notes()
	return b, nil
}

// sayable refuses words that JSON has no form for. The encoder would put another
// character in their place, and the runtime mount or run what nobody judged.
func sayable(p *plan.Plan, items []rootfs.Item) error {
	words := slices.Concat(p.Program.Argv, p.Program.Env, p.Program.Paths, []string{p.Program.Dir})
	for i := range items {
		words = append(words, items[i].Source, items[i].Target)
	}
	for _, w := range words {
		if !utf8.ValidString(w) {
			return refusal.Newf("--oci: %s is not UTF-8, which JSON cannot say", refusal.Word(w)).Hint("use a name in UTF-8")
		}
	}
	return nil
}

// Close lets go of the host's files that the plan has open.
func (b *Bundle) Close() { b.plan.Close() }

func (b *Bundle) basics() {
	p, c := b.plan, &b.Config
	none := []string{}
	c.OCIVersion, c.Hostname, c.Domainname = Version, plan.Hostname, "(none)"
	c.Root = Root{Path: rootDir, Readonly: true}
	c.Process = Process{
		Terminal: p.Spec.TTY,
		User:     User{UID: p.Spec.User.UID, GID: p.Spec.User.GID, Umask: 0o022},
		Args:     p.Program.Argv, Env: p.Program.Env, Cwd: p.Program.Dir, NoNewPrivileges: true,
		Capabilities: Capabilities{none, none, none, none, none},
	}
	l := &c.Linux
	l.UIDMappings, l.GIDMappings = mappings(p.Spec.User.UID), mappings(p.Spec.User.GID)
	l.RootfsPropagation = "private"
	for _, kind := range []string{"user", "mount", "pid", "network", "ipc", "uts", "cgroup"} {
		l.Namespaces = append(l.Namespaces, Namespace{kind})
	}
}

func mappings(id uint32) []IDMapping {
	m := []IDMapping{{ContainerID: id, HostID: HostID, Size: 1}}
	if id != 0 {
		m = append(m, IDMapping{ContainerID: 0, HostID: HostID + 1, Size: 1})
	}
	return m
}

func (b *Bundle) resources() {
	g := &b.plan.Cgroup
	b.Config.Linux.Resources = Resources{
		Devices: []Device{{Allow: false, Access: "rwm"}},
		Memory:  Memory{Limit: g.MemoryMax, Swap: g.MemoryMax},
		CPU:     CPU{Quota: g.CPUQuotaUS, Period: g.CPUPeriodUS},
		Pids:    Pids{Limit: g.PidsMax},
	}
	var io BlockIO
	for _, d := range g.IO {
		for _, rate := range [...]struct {
			list  *[]Throttle
			value int64
		}{{&io.ReadBPS, d.ReadBPS}, {&io.WriteBPS, d.WriteBPS}, {&io.ReadIOPS, d.ReadIOPS}, {&io.WriteIOPS, d.WriteIOPS}} {
			if rate.value > 0 {
				*rate.list = append(*rate.list, Throttle{int64(d.Major), int64(d.Minor), uint64(rate.value)})
			}
		}
	}
	if len(g.IO) > 0 {
		b.Config.Linux.Resources.BlockIO = &io
	}
}

func rlimits(p *plan.Plan) []Rlimit {
	var list []Rlimit
	for _, r := range p.Rlimits {
		list = append(list, Rlimit{"RLIMIT_" + strings.ToUpper(plan.RlimitName(r.Resource)), r.Hard, r.Soft})
	}
	return list
}

// annotation is the prefix of what is written down although no runtime does it.
const annotation = "org.sandglass."

// notes lists what is lost, and keeps the figures as annotations.
func (b *Bundle) notes() {
	s, l := &b.plan.Spec, &b.plan.Spec.Limits
	a := map[string]string{annotation + "policy-sha256": s.Digest()}
	b.Config.Annotations = a
	lost := func(key, value, format string, args ...any) {
		if key != "" {
			a[annotation+key] = value
		}
		b.Notes = append(b.Notes, fmt.Sprintf(format, args...))
	}
	lost("timeout", l.Timeout.String(), "the time limit of %v: whoever starts the runtime must stop it", l.Timeout)
	if l.CPUTime > 0 {
		lost("cpu-time", l.CPUTime.String(), "the CPU time limit of %v", l.CPUTime)
	}
	lost("output-limit", strconv.FormatInt(l.Output, 10), "the output limit of %s for each stream, then %s", policy.FormatSize(l.Output), s.OutputLimit)
	lost("disk", strconv.FormatInt(l.Disk, 10), "one scratch for all writable places: here each is a tmpfs of %s of its own", policy.FormatSize(l.Disk))
	if s.Out != "" {
		lost("out", s.Out, "the collection of /out to %s", refusal.Word(s.Out))
	}
	if s.Keep {
		lost("keep", "", "the collection of /out")
	}
	if s.CgroupParent != "" {
		lost("cgroup-parent", s.CgroupParent, "the cgroup below %s: the runtime's own place is used", refusal.Word(s.CgroupParent))
	}
	if len(s.AllowDegraded) > 0 {
		lost("", "", "--allow-degraded: the runtime has all limits by cgroups or fails")
	}
	lost("", "", "a host id for each run: every start of this bundle has %d and %d", HostID, HostID+1)
	lost("", "", "Landlock, an init that is out of the program's reach, and the bounds on what the kernel counts for a user")
	lost("", "", "the conditions of %s: refused altogether", strings.Join(b.Config.Linux.Seccomp.refused, " and "))
	lost("", "", "errnos of calls that are refused for their arguments: ENOSYS here")
	if hostid.Available() {
		return
	}
	lost("", "", "your own id: this bundle is for a runtime that root starts")
}

// owner is who the files of an id-mapped source belong to.
func owner(path string) (uid, gid uint32, dir bool, err error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return 0, 0, false, refusal.Newf("--oci: %s: %v", refusal.Word(path), err)
	}
	return st.Uid, st.Gid, st.Mode&unix.S_IFMT == unix.S_IFDIR, nil
}
