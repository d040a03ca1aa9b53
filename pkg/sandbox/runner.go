package sandbox

import (
	"context"
	"os"

	"sandglass/internal/refusal"
	"sandglass/pkg/artifacts"
	"sandglass/pkg/cgroup"
	"sandglass/pkg/cpus"
	"sandglass/pkg/hostid"
	"sandglass/pkg/launch"
	"sandglass/pkg/plan"
	"sandglass/pkg/result"
	"sandglass/pkg/rootfs"
	"sandglass/pkg/seccomp"
	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// runner takes what one run needs from the host, runs it, and gives it back.
type runner struct {
	spec   *Spec
	plan   *plan.Plan
	self   string
	result *Result

	id    *hostid.ID
	why   string // why the sandbox has the caller's id, "" where it has one of its own
	cpus  *cpus.Set
	tree  *cgroup.Tree
	group *cgroup.Group
	lost  *Incomplete // what did not reach the caller, nil for nothing
	init  *launch.Init
	box   *launch.Box
	end   *launch.Ending // nil where nothing was started

	items []rootfs.Item // what the root is made of

	outside Outside // nil without a list of hosts

	hold *launch.Hold // of a sandbox that waits for its program, nil for a run
	host *rootfs.Host // what such a one is made of
}

func (r *runner) do(ctx context.Context) error {
	defer r.release()
	if err := r.prepare(ctx); err != nil {
		return err
	}
	r.end = launch.Run(ctx, r.box)
	err := r.ended(ctx, r.end)
	r.apart()
	return err
}

// apart waits until the kernel has taken the sandbox apart, and removes what of its
// groups nobody is in meanwhile. What the sandbox had of the host's, its id above
// all, is given back when it is gone.
func (r *runner) apart() {
	if !r.end.Pending() {
		return
	}
	r.group.Prune()
	if left := r.end.Wait(); left != nil {
		r.incomplete("left behind: "+left.What, left.Hints...)
	}
}

// prepare takes and makes all that a run needs.
func (r *runner) prepare(ctx context.Context) error {
	group := func() error { return r.cgroup(ctx) }
	for _, step := range []func() error{r.identity, r.find, r.bootFirst, r.sweep, group, r.boot, r.plan.Complete, r.list, r.fits, r.build} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// ended makes the result of what became of a run.
func (r *runner) ended(ctx context.Context, end *launch.Ending) error {
	if end.Owned != nil {
		defer end.Owned.Close()
	}
	r.disconnect(end.Outcome)
	r.denied(end)
	r.fill(end)
	if end.StdoutErr != nil {
		r.incomplete("writing stdout: " + refusal.Cause(end.StdoutErr).Error())
	}
	if end.StderrErr != nil {
		r.incomplete("writing stderr: " + refusal.Cause(end.StderrErr).Error())
	}
	r.collect(ctx, end)
	if end.Outcome == result.Refused {
		ref := refusal.Newf("%s", end.Error).Code(end.ExitCode)
		ref.Hints = end.Hints
		return ref
	}
	if end.Outcome == result.Failed {
		ref := refusal.Newf("%s", end.Error)
		ref.Hints = end.Hints
		return &failure{ref}
	}
	return nil
}

// failure is a failure of ours, not a refusal: the hints are in the result.
type failure struct{ cause *refusal.Error }

func (f *failure) Error() string { return f.cause.What }

func (r *runner) find() (err error) {
	r.tree, err = cgroup.Find(r.cgroupOptions(""))
	return err
}

// sweep removes what a supervisor that was killed has left behind.
func (r *runner) sweep() error {
	r.tree.Sweep(r.cgroupOptions("sweep")) // a failure here is met again, and named, by Create
	return nil
}

func (r *runner) cgroupOptions(id string) cgroup.Options {
	allow := map[string]bool{}
	for _, name := range r.spec.AllowDegraded {
		allow[name] = true
	}
	o := cgroup.Options{ID: id, Parent: r.spec.CgroupParent, Allow: allow, HostUID: os.Geteuid()}
	if r.box != nil {
		o.HostUID = r.box.Identity.HostUID
	}
	return o
}

func (r *runner) cgroup(ctx context.Context) error {
	if r.spec.Guard != nil {
		r.spec.Guard()
	}
	r.cpus = cpus.Take(cpus.Count(r.spec.Limits.MilliCPU), os.Getpid()+int(serial.Load()))
	limits := r.plan.Cgroup
	limits.CPUs = r.cpus.String()
	g, err := r.tree.Create(r.cgroupOptions(cgroup.NewID()), limits)
	if err != nil {
		if e := r.hopeless(err); e != err {
			return e
		}
		return r.beside(ctx, err)
	}
	r.group = g
	return nil
}

// hopeless is the error of a host that lacks a limit or a mount: where init
// cannot be started either, which no flag would mend, only that counts.
func (r *runner) hopeless(err error) error {
	if e := r.boot(); e != nil {
		return e
	}
	if e := r.init.Failed(); e != nil {
		return e
	}
	return err
}

// bootFirst starts init, which needs cgroups and plan only when it is up,
// unless it must be cloned into a group: then boot does.
func (r *runner) bootFirst() error {
	if r.tree.InitGroup() {
		return nil
	}
	return r.boot()
}

func (r *runner) boot() error {
	if r.init == nil {
		r.init = launch.Boot(r.self, r.box.Identity, r.group)
	}
	return nil
}

// list says what the root is made of, now that the groups are known that are shown
// in it.
func (r *runner) list() (err error) {
	if err := r.awaited(); err != nil {
		return err
	}
	r.items, err = r.plan.Items(r.views())
	return err
}

// build fills the box from the plan.
func (r *runner) build() error {
	b, s := r.box, r.spec
	b.Init, b.Group = r.init, r.group
	b.Timeout, b.CPUTime = s.Limits.Timeout, s.Limits.CPUTime
	if r.group.EnforcedBy(cgroup.Memory) == result.ByNone {
		b.MemoryMax = s.Limits.Memory
	} else {
		b.UnchargedMax = s.Limits.Memory
	}
	if r.group.EnforcedBy(cgroup.CPU) == result.ByNone {
		b.FreeCPUs = cpus.Count(s.Limits.MilliCPU)
	}
	if s.Spec.Stdin {
		b.Stdin = s.Stdin
	}
	b.Stdout, b.Stderr = s.Stdout, s.Stderr
	b.Terminal, b.Window, b.Resize = s.TTY, s.Window, s.Resize
	b.OutputLimit, b.OutputKill = s.Limits.Output, s.OutputLimit == "kill"
	p := r.plan
	b.Config = wire.Config{
		Hostname: plan.Hostname, Loopback: true,
		Box: wire.NoFD, CgroupNS: true, CPUs: r.cpus.Mask(),
		Rlimits: p.Rlimits, Seccomp: p.Filter.BPF, SmallPages: b.MemoryMax > 0,
		Paths: p.Program.Paths, Argv: p.Program.Argv, Env: p.Program.Env, Dir: p.Program.Dir,
	}
	if r.group.EnforcedBy(cgroup.Pids) == result.ByNone {
		b.Config.Rlimits = p.WithoutCgroup()
	}
	if err := r.watchDenials(); err != nil {
		return err
	}
	if err := r.initFilter(); err != nil {
		return err
	}
	b.Around = launch.Around{Again: s.Again(p.Entrypoint), Bare: s.Flags(), Image: s.ImageWord(), Root: p.Input.Root.Path}
	b.Config.Writable = rootfs.Writable(p.Input)
	b.Hold = r.hold
	if s.Out != "" || s.Keep || r.hold != nil { // who asks for it is not known yet
		b.Config.OutDir = rootfs.Out
	}
	if err := r.connect(); err != nil {
		return err
	}
	if err := r.cgroupFDs(); err != nil {
		return err
	}
	if err := b.Realize(r.items); err != nil {
		return r.hopeless(err)
	}
	return nil
}

// initFilter is init's own: one that waits for what to run has to look for that,
// and to make files, when it comes.
func (r *runner) initFilter() error {
	if r.hold == nil || r.hold.Waits() != wire.InitWaits {
		r.box.Config.InitSeccomp = seccomp.ForInit()
		return nil
	}
	own, err := seccomp.Load(seccomp.Default)
	r.box.Config.InitSeccomp = seccomp.And(unix.SYS_OPENAT2, own.BPF)
	return err
}

// cgroupFDs passes init what the program needs to get into its cgroup.
func (r *runner) cgroupFDs() error {
	dup := func(fd int, name string) (int32, error) {
		n, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			return 0, err
		}
		return r.box.AddFD(n, name), nil
	}
	var err error
	if fd := r.group.BoxFD(); fd >= 0 {
		if r.box.Config.Box, err = dup(fd, "box cgroup"); err != nil {
			return err
		}
	}
	for _, fd := range r.group.TaskFDs() {
		n, err := dup(fd, "cgroup tasks")
		if err != nil {
			return err
		}
		r.box.Config.Tasks = append(r.box.Config.Tasks, n)
	}
	return nil
}

func (r *runner) views() []rootfs.View {
	var views []rootfs.View
	for _, v := range r.group.ViewPaths() {
		views = append(views, rootfs.View{HostPath: v.HostPath, Name: v.Name})
	}
	return views
}

// collect takes the artefacts, now that nothing of the sandbox runs.
func (r *runner) collect(ctx context.Context, end *launch.Ending) {
	if end.OutDir == nil {
		return
	}
	defer end.OutDir.Close()
	if r.spec.Out == "" && !r.spec.Keep {
		return
	}
	ctx, stop := r.collecting(ctx)
	defer stop()
	limits := artifacts.Limits{Files: int(r.spec.Limits.OutFiles), Bytes: r.spec.Limits.OutBytes, FileBytes: r.spec.Limits.OutBytes}
	var by artifacts.Opener
	if end.Owned != nil {
		by = end.Owned
	}
	var list []result.Artifact
	var err error
	if r.spec.Keep {
		list, err = artifacts.Keep(ctx, int(end.OutDir.Fd()), by, limits)
	} else {
		list, err = artifacts.CollectOwned(ctx, int(end.OutDir.Fd()), by, r.plan.Out, limits, r.spec.Force)
	}
	r.result.Artifacts = list
	r.notCollected(err)
}

func (r *runner) release() {
	if r.init != nil {
		r.init.Cancel()
	}
	if r.box != nil {
		r.box.Close()
	}
	if r.group != nil {
		if err := r.group.Close(); err != nil {
			r.incomplete("left behind: " + err.Error())
		}
	}
	// The id of what was killed and does not end is nobody else's while this process
	// lives: the kernel may still do for it what another sandbox would take for its own
	// doing (a write that waits for its file system). Its lock goes with this process.
	if r.id != nil && !(r.end != nil && r.end.Lives) {
		r.id.Release()
	}
	if r.cpus != nil {
		r.cpus.Release()
	}
}
