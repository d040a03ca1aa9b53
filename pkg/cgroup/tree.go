package cgroup

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sandglass/internal/refusal"
	"sandglass/pkg/doctor/causes"
)

// v1Names are the hierarchies that are used, in the order in which their
// directories are made. cpuacct counts what the whole box used.
var v1Names = [...]string{"memory", "pids", "cpu", "cpuacct", "blkio", cpuset}

// mount is a cgroup file system. root is the group that shows at its top.
type mount struct {
	point, root string
	ctrls       string // v1: the super block's options, e.g. "rw,cpu,cpuacct"
	v2          bool
}

// self is /proc/self/cgroup.
type self struct {
	v2    string // "" when there is no v2 line
	lines []selfLine
}

type selfLine struct{ ctrls, path string }

// tree is what this host mounts and where the caller is in it.
type tree struct {
	version int    // whose controllers are used: 2, 1, or 0
	name    string // "v2", "hybrid", "v1", "none"
	root    string
	v2      *mount
	v1      []mount
	self    self
}

const maxMountinfo = 4 << 20

func findTree(o Options) (*tree, error) {
	s, err := findSelf(o)
	if err != nil {
		return nil, err
	}
	if o.Mountinfo == "" && o.ProcSelfCgroup == "" {
		if t := standardTree(o.root(), s); t != nil {
			return t, nil
		}
	}
	return fullTree(o, s)
}

func findSelf(o Options) (self, error) {
	name := o.ProcSelfCgroup
	if name == "" {
		name = "/proc/self/cgroup"
	}
	text, err := readPath(name, maxMountinfo)
	if err != nil && err != unix.ENOENT { // a kernel without cgroups has none
		return self{}, refusal.Newf("cannot read %s: %v", name, err)
	}
	return parseSelf(text), nil
}

// fullTree looks at every mount.
func fullTree(o Options, s self) (*tree, error) {
	name := o.Mountinfo
	if name == "" {
		name = "/proc/self/mountinfo"
	}
	text, err := readPath(name, maxMountinfo)
	if err != nil {
		return nil, refusal.Newf("cannot read %s: %v", name, err)
	}
	return newTree(o.root(), text, s), nil
}

func newTree(root, mountinfo string, s self) *tree {
	t := &tree{root: root, self: s}
	for _, m := range parseMountinfo(mountinfo, root) {
		if m.v2 {
			t.v2 = &m
		} else {
			t.v1 = append(t.v1, m)
		}
	}
	return t.classify()
}

// classify says whose controllers are used. A v2 mount beside v1 hierarchies
// has at most the controllers that nobody needs here.
func (t *tree) classify() *tree {
	switch {
	case t.v1Mount("memory") != nil || t.v1Mount("pids") != nil || t.v1Mount("cpu") != nil:
		t.version, t.name = 1, "v1"
		if t.v2 != nil {
			t.name = "hybrid"
		}
	case t.v2 != nil:
		t.version, t.name = 2, "v2"
	default:
		t.version, t.name = 0, "none"
	}
	return t
}

// v1Mount finds the hierarchy of a controller.
func (t *tree) v1Mount(ctrl string) *mount {
	for i := range t.v1 {
		if hasItem(t.v1[i].ctrls, ctrl) {
			return &t.v1[i]
		}
	}
	return nil
}

func hasItem(list, item string) bool {
	for w := range strings.SplitSeq(list, ",") {
		if w == item {
			return true
		}
	}
	return false
}

// parseMountinfo finds the cgroup mounts at root and below it that can be
// reached. A later mount hides what lies at or below its mount point.
func parseMountinfo(text, root string) []mount {
	var found []mount
	for line := range strings.Lines(text) {
		// Cheap test first: hosts with containers have thousands of lines.
		at := strings.Index(line, root)
		if at < 0 {
			continue
		}
		left, right, ok := strings.Cut(line, " - ")
		f := strings.Fields(left)
		if !ok || len(f) < 6 {
			continue
		}
		point := unescape(f[4])
		if point != root && !strings.HasPrefix(point, root+"/") {
			continue
		}
		kept := found[:0]
		for _, m := range found {
			if m.point != point && !strings.HasPrefix(m.point, point+"/") {
				kept = append(kept, m)
			}
		}
		found = kept
		r := strings.Fields(right)
		if len(r) < 1 || r[0] != "cgroup" && r[0] != "cgroup2" {
			continue
		}
		m := mount{point: point, root: unescape(f[3]), v2: r[0] == "cgroup2"}
		if len(r) > 2 {
			m.ctrls = r[len(r)-1]
		}
		found = append(found, m)
	}
	return found
}

// unescape undoes the octal escapes of seq_path: space, tab, newline, backslash.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// parseSelf parses lines of the form "4:memory:/path" and "0::/path".
func parseSelf(text string) self {
	var s self
	for line := range strings.Lines(text) {
		id, rest, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		ctrls, path, ok2 := strings.Cut(rest, ":")
		if !ok || !ok2 {
			continue
		}
		if id == "0" && ctrls == "" {
			s.v2 = path
		} else {
			s.lines = append(s.lines, selfLine{ctrls, path})
		}
	}
	return s
}

// v1 is the caller's group in a controller's hierarchy, "" when it has none.
func (s self) v1(ctrl string) string {
	for _, l := range s.lines {
		if hasItem(l.ctrls, ctrl) {
			return l.path
		}
	}
	return ""
}

// below is the directory of group own in mount m. The mount may show only a
// part of the hierarchy (a container's bind mount), and own counts from the
// cgroup namespace's root; both are then written from the same root.
func (m *mount) below(own string) (string, *cause) {
	rel := own
	if m.root != "/" {
		var ok bool
		if rel, ok = strings.CutPrefix(own, m.root); !ok || rel != "" && rel[0] != '/' {
			return "", because("own group " + own + " is not below " + m.root + ", which is all that " + m.point + " shows")
		}
	}
	// "/.." is a group outside the cgroup namespace, " (deleted)" a removed one.
	if own == "" || strings.HasPrefix(rel, "/..") || strings.HasSuffix(own, " (deleted)") {
		return "", because("own group \"" + own + "\" cannot be reached below " + m.point)
	}
	return strings.TrimSuffix(m.point+rel, "/"), nil
}

// parentV1 is the directory below which the group of a v1 controller is made.
func (t *tree) parentV1(ctrl, override string) (string, *cause) {
	m := t.v1Mount(ctrl)
	if m == nil {
		what := "no v1 hierarchy with the " + ctrl + " controller is mounted below " + t.root
		if t.self.v1(ctrl) == "" {
			what = "the " + ctrl + " controller is not on v1, where this host keeps the others"
		}
		at := t.root + "/" + ctrl
		return "", because(what, append(causes.ToV2(), "mkdir -p "+at+" && mount -t cgroup -o "+ctrl+" cgroup "+at+"   # as root")...)
	}
	if override == "" {
		return m.below(t.self.v1(ctrl))
	}
	p := strings.TrimSuffix(m.point+override, "/")
	if !exists(p) {
		return "", because("cgroup parent "+p+" does not exist", "mkdir -p "+p)
	}
	return p, nil
}

// named is why a parent that the caller names is not there in a hierarchy whose
// controller is asked for.
func (t *tree) named(parent string, asked []string) *cause {
	if parent == "" {
		return nil
	}
	var points []string
	switch t.version {
	case 2:
		points = append(points, t.v2.point)
	case 1:
		for _, ctrl := range v1Names {
			if m := t.v1Mount(ctrl); m != nil && slices.Contains(asked, limitOf(ctrl)) {
				points = append(points, m.point)
			}
		}
	default:
		c := noTree(t.root)
		return because("cgroup parent "+parent+" does not exist: "+c.what, c.hints...)
	}
	var missing []string
	for _, p := range points {
		if p += strings.TrimSuffix(parent, "/"); !isDir(p) && !slices.Contains(missing, p) {
			missing = append(missing, p)
		}
	}
	if missing == nil {
		return nil
	}
	return because("cgroup parent "+missing[0]+" does not exist", "mkdir -p "+strings.Join(missing, " "))
}

func noTree(root string) *cause {
	return because("no cgroup file system is mounted below "+root, causes.NoCgroup(root)...)
}
