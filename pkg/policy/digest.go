package policy

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"

	"sandglass/pkg/egress/hosts"
)

// digestVersion changes when a field is added, so that two versions of
// sandglass never give one hash to two meanings.
const digestVersion = "sandglass policy 8"

// Digest is the SHA-256 of the whole policy in hex: two runs with the same
// digest were asked for the same, code and arguments included. A script's path
// counts and not its bytes; Home does not count, it only judges, and ImageName is for messages. What is a set
// is sorted first, so the order of flags does not matter where it means nothing.
func (s Spec) Digest() string {
	c := &canon{make([]byte, 0, 2<<10+len(s.Program.Code))}
	c.text("version", digestVersion)
	c.text("image", s.Image)
	c.list("command", s.Program.Command)
	c.text("code", string(s.Program.Code))
	c.text("file", s.Program.File)
	c.text("lang", s.Program.Lang)
	c.list("args", s.Program.Args)
	c.set("env", s.Env)
	c.text("workdir", s.Workdir)
	c.num("uid", int64(s.User.UID))
	c.num("gid", int64(s.User.GID))
	c.mounts(s.Mounts)
	c.text("venv", s.Venv)
	c.limits(&s.Limits)
	c.text("on-output-limit", string(s.OutputLimit))
	c.text("seccomp", s.Seccomp)
	c.set("allow-degraded", s.AllowDegraded)
	c.set("allow-mount", s.AllowMounts)
	c.text("proc", s.Proc)
	c.text("host-id", string(s.HostID))
	c.hosts(&s)
	c.flag("pty", s.Pty)
	c.text("cgroup-parent", s.CgroupParent)
	c.files(s.Files)
	c.text("out", s.Out)
	c.flag("keep", s.Keep)
	c.flag("force", s.Force)
	c.flag("stdin", s.Stdin)
	c.flag("explain-denials", s.ExplainDenials)
	c.flag("tty", s.TTY)
	sum := sha256.Sum256(c.b)
	return hex.EncodeToString(sum[:])
}

// Frame is the digest of the policy without what a sandbox can be given after it
// was made: the program with its environment, files and stdin, and what the
// supervisor alone holds. Two specs with the same Frame want the same sandbox, as
// far as a Spec tells; what is on the host counts as well, see plan. It leaves
// things out of the digest, so that a field that is added counts.
func (s Spec) Frame() string {
	s.Program, s.Env, s.Files, s.Stdin = Program{}, nil, nil, false
	s.Out, s.Keep, s.Force = "", false, false
	l := &s.Limits
	l.Timeout, l.CPUTime, l.Output, l.OutFiles, l.OutBytes = 0, 0, 0, 0, 0
	s.OutputLimit = ""
	return s.Digest()
}

// hosts counts as the list is meant.
func (c *canon) hosts(s *Spec) {
	words := s.Hosts
	if list, err := hosts.Parse(words); err == nil {
		words = list.Strings()
	}
	c.set("hosts", words)
	n := &s.Limits.Net
	c.text("tls-sni-check", string(s.ServerNames))
	c.num("net-open", n.Open)
	c.num("net-total", n.Total)
	c.num("net-upload", n.Upload)
	c.num("net-download", n.Download)
	c.num("net-rate", n.Rate)
	c.num("net-idle", int64(n.Idle))
}

// canon writes name, length and bytes of every field: no field can be read as
// the end of the one before. The hash is taken of all at once, for each request of
// a session has two of them.
type canon struct{ b []byte }

func (c *canon) text(name, v string) {
	c.head(name, len(v))
	c.b = append(c.b, v...)
}

func (c *canon) num(name string, v int64) {
	c.head(name, 8)
	c.b = binary.LittleEndian.AppendUint64(c.b, uint64(v))
}

func (c *canon) head(name string, length int) {
	c.b = append(append(c.b, name...), 0)
	c.b = binary.LittleEndian.AppendUint64(c.b, uint64(length))
}

func (c *canon) flag(name string, v bool) {
	n := int64(0)
	if v {
		n = 1
	}
	c.num(name, n)
}

func (c *canon) list(name string, v []string) {
	c.num(name, int64(len(v)))
	for _, e := range v {
		c.text(name, e)
	}
}

func (c *canon) set(name string, v []string) {
	sorted := slices.Clone(v)
	slices.Sort(sorted)
	c.list(name, sorted)
}

func (c *canon) mounts(v []Mount) {
	sorted := slices.Clone(v)
	slices.SortFunc(sorted, func(a, b Mount) int { return strings.Compare(a.Target, b.Target) })
	c.num("mounts", int64(len(sorted)))
	for _, m := range sorted {
		c.text("source", m.Source)
		c.text("target", m.Target)
		c.flag("write", m.Write)
	}
}

func (c *canon) files(v []File) {
	sorted := slices.Clone(v)
	slices.SortFunc(sorted, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	c.num("files", int64(len(sorted)))
	for _, f := range sorted {
		c.text("name", f.Name)
		c.text("content", string(f.Content))
		c.text("source", f.Source)
		c.flag("exec", f.Exec)
	}
}

func (c *canon) limits(l *Limits) {
	c.num("timeout", int64(l.Timeout))
	c.num("cpu-time", int64(l.CPUTime))
	c.num("memory", l.Memory)
	c.num("millicpu", l.MilliCPU)
	c.num("pids", l.Pids)
	c.num("disk", l.Disk)
	c.num("disk-inodes", l.DiskInodes)
	c.num("output", l.Output)
	c.num("open-files", l.OpenFiles)
	c.num("file-size", l.FileSize)
	c.num("stack", l.Stack)
	c.num("out-files", l.OutFiles)
	c.num("out-bytes", l.OutBytes)
	sorted := slices.Clone(l.IO)
	slices.SortFunc(sorted, func(a, b IOLimit) int { return strings.Compare(a.Device, b.Device) })
	c.num("io", int64(len(sorted)))
	for _, d := range sorted {
		c.text("device", d.Device)
		c.num("read-bps", d.ReadBPS)
		c.num("write-bps", d.WriteBPS)
		c.num("read-iops", d.ReadIOPS)
		c.num("write-iops", d.WriteIOP)
	}
}
