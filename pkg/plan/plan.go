// Package plan turns a Spec into everything that a run will do, before any of
// it is done: the root's operations, the program's argv, the filter, the
// limits. It looks at the host (is there a python, what is behind this path)
// and changes nothing. `sandglass plan` prints it.
package plan

import (
	"os"
	"path/filepath"
	"strconv"

	"sandglass/internal/refusal"
	"sandglass/pkg/artifacts"
	"sandglass/pkg/cgroup"
	"sandglass/pkg/cpus"
	"sandglass/pkg/egress/hosts"
	"sandglass/pkg/policy"
	"sandglass/pkg/rootfs"
	"sandglass/pkg/runtimes"
	"sandglass/pkg/seccomp"
	"sandglass/pkg/wire"
)

// Plan is one run, decided but not begun.
type Plan struct {
	Spec    policy.Spec
	Input   rootfs.Input // what the root is made of
	Program Program
	Filter  seccomp.Filter
	Rlimits []wire.Rlimit
	Cgroup  cgroup.Limits
	Hosts   *hosts.List // nil for no network
	// Out is where the artefacts go, open since it was judged; nil for nowhere.
	Out *artifacts.Dest

	// Entrypoint: the image has one, which takes any words for its arguments.
	Entrypoint bool

	complete bool
	files    []*os.File
}

// Program is what init executes.
type Program struct {
	Paths []string // candidates for execve, in order
	Argv  []string
	Env   []string
	Dir   string
}

// Hostname inside, always the same.
const Hostname = "sandglass"

// Build decides everything. Close the plan. The errors are *refusal.Error.
func Build(s policy.Spec) (*Plan, error) {
	p, err := Begin(s)
	if err != nil {
		return nil, err
	}
	if err := p.Complete(); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Begin decides what needs no long look at the host: whether the Spec is valid,
// the filter, the limits. It is what a run starts init with.
func Begin(s policy.Spec) (*Plan, error) {
	if s.Home == "" {
		s.Home, _ = os.UserHomeDir()
	}
	s.Home = resolved(s.Home)
	if err := s.Validate(); err != nil {
		return nil, s.Hinted(err, false)
	}
	b := &builder{plan: &Plan{Spec: s}}
	for _, step := range []func() error{b.filter, b.limits, b.hosts} {
		if err := step(); err != nil {
			return nil, s.Hinted(err, false)
		}
	}
	return b.plan, nil
}

// Complete decides the rest, and opens the host's files that it decides on:
// Close the plan, also after an error. A plan that is complete stays as it is.
func (p *Plan) Complete() error {
	if p.complete {
		return nil
	}
	b := &builder{plan: p, finder: finder()}
	for _, step := range []func() error{b.mounts, b.trusted, b.out, b.image, b.runtimes, b.program, b.copied, b.environment} {
		if err := step(); err != nil {
			return p.Spec.Hinted(err, p.Entrypoint)
		}
	}
	b.input()
	p.complete = true
	return nil
}

// Items lists the root's operations. The cgroup's directories are known only
// once the group exists, so they come as an argument.
func (p *Plan) Items(views []rootfs.View) ([]rootfs.Item, error) {
	in := p.Input
	in.Cgroup = views
	items, err := rootfs.Plan(in)
	return items, p.Spec.Hinted(err, p.Entrypoint)
}

type builder struct {
	plan   *Plan
	finder runtimes.Finder

	binds  []rootfs.Bind // interpreters
	links  []rootfs.Link
	dirs   []string // for PATH, before the standard ones
	code   *rootfs.Code
	files  []rootfs.Code
	venv   string
	mapped []rootfs.Bind
	root   rootfs.Source // the image, unless it is the host
	lang   string        // what an image is for, "" where nothing says it
}

// resolved is the caller's home directory without links, for what is judged by
// it has none.
func resolved(home string) string {
	if real, err := filepath.EvalSymlinks(home); home != "" && err == nil {
		return real
	}
	return home
}

func finder() runtimes.Finder {
	cwd, _ := os.Getwd()
	home, _ := os.UserHomeDir()
	path := os.Getenv("PATH")
	if path == "" {
		path = standardPath // as a shell has it where none is set
	}
	return runtimes.Finder{Path: path, Home: resolved(home), Getenv: os.Getenv, Cwd: cwd}
}

// filter loads the filter, a file's by its path without links: see trusted.
func (b *builder) filter() (err error) {
	name := b.plan.Spec.Seccomp
	if filepath.IsAbs(name) {
		if real, err := filepath.EvalSymlinks(name); err == nil {
			if err := b.plan.Spec.CheckLink("--seccomp: "+strconv.Quote(name), name, real, filepath.EvalSymlinks); err != nil {
				return err
			}
			name = real
		}
	}
	b.plan.Filter, err = seccomp.Load(name)
	return err
}

func (b *builder) host() bool { return b.plan.Spec.Image == "host" }

func (b *builder) input() {
	s := &b.plan.Spec
	b.plan.Input = rootfs.Input{
		Image: s.Image, Imported: policy.Imported(s.Image), Root: b.root, UID: s.User.UID, GID: s.User.GID,
		Interpret: b.binds, Names: b.links, Mounts: b.mapped, Code: b.code, Files: b.files,
		Disk: s.Limits.Disk, DiskInodes: s.Limits.DiskInodes,
		Proc: s.Proc != "none", Pty: s.Pty, Network: b.plan.Hosts != nil, Terminal: s.TTY, Workdir: s.Workdir,
		Size: rootfs.Size{Memory: s.Limits.Memory, CPUs: cpus.Count(s.Limits.MilliCPU)},
	}
}

// refused keeps a lookup's own error text and gives it one exit code.
func refused(err error) error {
	if _, ok := err.(*refusal.Error); ok {
		return err
	}
	return refusal.Newf("%v", err)
}
