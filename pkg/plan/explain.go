package plan

import (
	"encoding/json"
	"strconv"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/boxinit"
	"sandglass/pkg/launch"
	"sandglass/pkg/policy"
	"sandglass/pkg/rootfs"
	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// Explanation is a plan for people and for diffing: two runs with the same
// flags on the same host give the same bytes. Nothing in it is a time, a PID or
// a host id.
type Explanation struct {
	Schema       int               `json:"schema"`
	PolicySHA256 string            `json:"policy_sha256"`
	Image        string            `json:"image"` // host, a directory, or the digest of an imported image
	Identity     Identity          `json:"identity"`
	Namespaces   []string          `json:"namespaces"`
	Steps        []string          `json:"steps"`  // init's, in order
	Mounts       []Mount           `json:"mounts"` // the step "mounts", in order
	Child        []string          `json:"child"`  // the program's own process, in order
	Program      Program           `json:"program"`
	Seccomp      Seccomp           `json:"seccomp"`
	Network      *Network          `json:"network,omitempty"` // none but loopback without it
	Limits       map[string]string `json:"limits"`
	Cgroup       Cgroup            `json:"cgroup"`
	Rlimits      []string          `json:"rlimits"`
	// Refused is why a run on this host would be refused although the policy is
	// good, "" for no reason that is known before one tries.
	Refused string `json:"refused,omitempty"`
}

// Identity says who the program is.
type Identity struct {
	Inside string `json:"inside"`
	Host   string `json:"host"`
}

// Mount is one operation on the root.
type Mount struct {
	Op     string `json:"op"`
	Target string `json:"target"`
	Source string `json:"source,omitempty"`
	Flags  string `json:"flags,omitempty"`
}

// Seccomp names the filter.
type Seccomp struct {
	Name         string `json:"name"`
	SHA256       string `json:"sha256"`
	Instructions int    `json:"instructions"`
}

// Cgroup is the host's tree and what of it holds each limit.
type Cgroup struct {
	Tree   string            `json:"tree"`
	Limits map[string]string `json:"limits"` // parent directory, or why there is none
	Lacks  string            `json:"-"`      // the limits that the host cannot hold and the policy asks for, in the words of a refusal
}

// Host is who the sandbox is on the host.
type Host struct {
	Own    bool   // an id of its own
	Mapped bool   // and its sources are mapped to it, which root can have
	Why    string // why the id is the caller's, "" where nothing else was asked for
}

// Explain describes the plan: host is who the sandbox is, tree what the host's
// cgroups are.
func (p *Plan) Explain(host Host, tree Cgroup) (*Explanation, error) {
	items, err := p.Items(nil)
	if err != nil {
		return nil, err
	}
	e := &Explanation{
		Schema: 1, PolicySHA256: p.Spec.Digest(), Image: p.Spec.Image,
		Identity:   Identity{Inside: id(p.Spec.User), Host: "the caller's own id"},
		Namespaces: append(namespaceNames(), "cgroup"),
		Program:    p.Program,
		Seccomp:    Seccomp{Name: p.Filter.Name, SHA256: p.Filter.SHA256, Instructions: len(p.Filter.BPF) / 8},
		Limits:     limitTexts(&p.Spec), Cgroup: tree, Refused: tree.Lacks, Network: p.explainNetwork(),
	}
	if host.Own {
		e.Identity.Host = "an unprivileged id of this run's own"
	} else if host.Why != "" {
		e.Identity.Host += " (" + host.Why + ")"
	}
	for _, s := range boxinit.Steps() {
		e.Steps = append(e.Steps, s.Name)
	}
	for i := range items {
		items[i].IDMap = items[i].IDMap && host.Mapped
		e.Mounts = append(e.Mounts, explainItem(&items[i]))
	}
	cfg := &wire.Config{CgroupNS: true, Terminal: p.Spec.TTY, Tasks: []int32{0}, CPUs: []byte{1}, Rlimits: p.Rlimits, Seccomp: p.Filter.BPF}
	e.Child = append(boxinit.Child(cfg, 0, 0).Names(), "execve")
	for _, r := range p.Rlimits {
		e.Rlimits = append(e.Rlimits, RlimitName(r.Resource)+"="+strconv.FormatUint(r.Soft, 10))
	}
	return e, nil
}

func id(u policy.User) string {
	return strconv.FormatUint(uint64(u.UID), 10) + ":" + strconv.FormatUint(uint64(u.GID), 10)
}

func namespaceNames() []string {
	var names []string
	for _, n := range [...]struct {
		flag int
		name string
	}{
		{unix.CLONE_NEWUSER, "user"}, {unix.CLONE_NEWNS, "mount"}, {unix.CLONE_NEWPID, "pid"},
		{unix.CLONE_NEWNET, "net"}, {unix.CLONE_NEWIPC, "ipc"}, {unix.CLONE_NEWUTS, "uts"},
	} {
		if launch.Namespaces&n.flag != 0 {
			names = append(names, n.name)
		}
	}
	return names
}

func explainItem(it *rootfs.Item) Mount {
	m := Mount{Op: it.Kind.String(), Target: it.Target, Source: it.Source, Flags: flags(it)}
	switch it.Kind {
	case wire.OpRoot, wire.OpFreeze, wire.OpPivot:
		m.Target = "/"
	case wire.OpCopy:
		m.Source = it.CopyFrom
	}
	return m
}

func flags(it *rootfs.Item) string {
	var f []string
	for _, a := range [...]struct {
		bit  wire.Attr
		name string
	}{{wire.ReadOnly, "ro"}, {wire.NoSuid, "nosuid"}, {wire.NoDev, "nodev"}, {wire.NoExec, "noexec"}} {
		if it.Attr&a.bit != 0 {
			f = append(f, a.name)
		}
	}
	if it.IDMap {
		f = append(f, "idmap")
	}
	if it.Kind == wire.OpTmpfs || it.Kind == wire.OpRoot {
		f = append(f, "size="+strconv.FormatUint(it.Size, 10), "nr_inodes="+strconv.FormatUint(it.Inodes, 10))
	}
	if len(it.Data) > 0 && (it.Kind == wire.OpProc || it.Kind == wire.OpDevpts) {
		f = append(f, string(it.Data))
	}
	return strings.Join(f, ",")
}

func limitTexts(s *policy.Spec) map[string]string {
	l := &s.Limits
	m := map[string]string{
		"timeout": l.Timeout.String(), "memory": policy.FormatSize(l.Memory),
		"cpus": strconv.FormatFloat(float64(l.MilliCPU)/1000, 'f', -1, 64),
		"pids": strconv.FormatInt(l.Pids, 10), "disk": policy.FormatSize(l.Disk),
		"disk_inodes": strconv.FormatInt(l.DiskInodes, 10),
		"output":      policy.FormatSize(l.Output) + " each, then " + string(s.OutputLimit),
	}
	if s.Out != "" {
		m["out"] = strconv.FormatInt(l.OutFiles, 10) + " entries, " + policy.FormatSize(l.OutBytes) + ", to " + words([]string{s.Out})
	}
	if s.Keep {
		m["out"] = strconv.FormatInt(l.OutFiles, 10) + " entries, " + policy.FormatSize(l.OutBytes) + ", in the result"
	}
	if l.CPUTime > 0 {
		m["cpu_time"] = l.CPUTime.String()
	}
	for _, io := range l.IO {
		m["io "+io.Device] = ioText(io)
	}
	return m
}

func ioText(io policy.IOLimit) string {
	var f []string
	for _, v := range [...]struct {
		name  string
		value int64
	}{{"read-bps", io.ReadBPS}, {"write-bps", io.WriteBPS}, {"read-iops", io.ReadIOPS}, {"write-iops", io.WriteIOP}} {
		if v.value > 0 {
			f = append(f, v.name+"="+strconv.FormatInt(v.value, 10))
		}
	}
	return strings.Join(f, " ")
}

// RlimitName is the name of a resource of setrlimit(2), in lower case and without
// RLIMIT_, or its number.
func RlimitName(resource int32) string {
	switch resource {
	case unix.RLIMIT_CORE:
		return "core"
	case unix.RLIMIT_NOFILE:
		return "nofile"
	case unix.RLIMIT_FSIZE:
		return "fsize"
	case unix.RLIMIT_NPROC:
		return "nproc"
	case unix.RLIMIT_STACK:
		return "stack"
	case unix.RLIMIT_SIGPENDING:
		return "sigpending"
	case unix.RLIMIT_MSGQUEUE:
		return "msgqueue"
	case unix.RLIMIT_MEMLOCK:
		return "memlock"
	case unix.RLIMIT_RTPRIO:
		return "rtprio"
	case unix.RLIMIT_NICE:
		return "nice"
	}
	return strconv.Itoa(int(resource))
}

// JSON is the stable form.
func (e *Explanation) JSON() ([]byte, error) {
	b, err := json.MarshalIndent(e, "", "  ")
	return append(b, '\n'), err
}

// Text is the form for people.
func (e *Explanation) Text() string {
	var b strings.Builder
	line := func(s ...string) { b.WriteString(strings.Join(s, "") + "\n") }
	list := func(title string, items []string) {
		line(title)
		for i, s := range items {
			line("  ", pad(strconv.Itoa(i+1)+".", 4), s)
		}
	}
	line("program     ", words(e.Program.Argv))
	line("in          ", shown(e.Program.Dir))
	line("image       ", shown(e.Image))
	line("user        ", e.Identity.Inside, " inside; on the host ", e.Identity.Host)
	line("namespaces  ", strings.Join(e.Namespaces, " "))
	line("seccomp     ", e.Seccomp.Name, " (", strconv.Itoa(e.Seccomp.Instructions), " instructions, sha256 ", e.Seccomp.SHA256, ")")
	line("policy      sha256 ", e.PolicySHA256)
	list("environment", quoteAll(e.Program.Env))
	line("limits")
	for _, k := range sorted(e.Limits) {
		line("  ", pad(k, 12), e.Limits[k])
	}
	e.Network.text(line)
	line("  ", pad("rlimits", 12), strings.Join(e.Rlimits, " "))
	line("cgroup      ", e.Cgroup.Tree)
	for _, k := range sorted(e.Cgroup.Limits) {
		line("  ", pad(k, 12), e.Cgroup.Limits[k])
	}
	list("steps of init, in order", e.Steps)
	line("the step \"mounts\", in order")
	for i, m := range e.Mounts {
		line("  ", pad(strconv.Itoa(i+1)+".", 4), pad(m.Op, 7), strings.TrimRight(pad(shown(m.Target), 30)+pad(shown(m.Source), 24)+m.Flags, " "))
	}
	list("the program's own process, in order", e.Child)
	if e.Refused != "" {
		line("a run here would be refused: ", e.Refused)
	}
	return b.String()
}

// shown is a path of an image's or of the host's on a line of ours.
func shown(path string) string {
	if path == "" {
		return ""
	}
	return refusal.Word(path)
}

// words quotes what could steer a terminal or hide where a word ends.
func words(argv []string) string {
	out := make([]string, len(argv))
	for i, w := range argv {
		out[i] = w
		if q := strconv.Quote(w); q != `"`+w+`"` || w == "" || strings.Contains(w, " ") {
			out[i] = q
		}
	}
	return strings.Join(out, " ")
}

func quoteAll(list []string) []string {
	out := make([]string, len(list))
	for i := range list {
		out[i] = words(list[i : i+1])
	}
	return out
}

func pad(s string, n int) string {
	if len(s) >= n {
		return s + " "
	}
	return s + strings.Repeat(" ", n-len(s))
}
