package cgroup

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// PID 1 is cloned into init and, as another host uid, clones the program into box.
func TestV2Shape(t *testing.T) {
	tr := needTree(t, 2)
	needGroups(t)
	uid := os.Geteuid()
	if uid == 0 {
		uid = 100_001
	}
	g, err := Create(Options{ID: testID(), HostUID: uid, Allow: allowed()}, testLimits)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if v := g.ViewPaths(); len(v) != 1 || v[0] != (View{HostPath: g.run.path + "/box"}) {
		t.Errorf("views %v", v)
	}
	if len(g.TaskFDs()) != 0 {
		t.Errorf("tasks descriptors %v on v2", g.TaskFDs())
	}
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), modeVar+"=init")
	c.SysProcAttr = &unix.SysProcAttr{UseCgroupFD: true, CgroupFD: g.InitFD()}
	if os.Geteuid() == 0 {
		c.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid), NoSetGroups: true}
	}
	box, err := unix.FcntlInt(uintptr(g.BoxFD()), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		t.Fatal(err)
	}
	c.ExtraFiles = []*os.File{os.NewFile(uintptr(box), "box")}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	rel := strings.TrimPrefix(g.run.path, tr.v2.point)
	if want := "0::" + rel + "/init\n0::" + rel + "/box\n"; string(out) != want {
		t.Errorf("groups %q, want %q", out, want)
	}
}

// Without the chown PID 1 could not start the program: the test above proves
// something only if this one fails.
func TestV2OtherUidIsKeptOut(t *testing.T) {
	needTree(t, 2)
	needRoot(t)
	g := create(t, testLimits)
	box, err := unix.FcntlInt(uintptr(g.BoxFD()), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), modeVar+"=init")
	c.SysProcAttr = &unix.SysProcAttr{UseCgroupFD: true, CgroupFD: g.InitFD(),
		Credential: &syscall.Credential{Uid: 100_001, Gid: 100_001, NoSetGroups: true}}
	c.ExtraFiles = []*os.File{os.NewFile(uintptr(box), "box")}
	if out, err := c.CombinedOutput(); err == nil || !strings.Contains(string(out), "permission denied") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestV2OOMKillsTheWholeBox(t *testing.T) {
	needTree(t, 2)
	needGroups(t)
	g := create(t, Limits{MemoryMax: 64 << 20, PidsMax: 40})
	bystander := start(t, childCommand(g, "pause"))
	bystander.line(t)
	if sig := killedBy(childCommand(g, "alloc:314572800").Run()); sig != unix.SIGKILL {
		t.Errorf("ended by %v", sig)
	}
	if sig := killedBy(bystander.Wait()); sig != unix.SIGKILL {
		t.Errorf("bystander ended by %v", sig)
	}
	s, _ := g.Stats()
	if s.OOMKills < 2 || s.OOMEvents < 1 || s.OOMGroupKills != 1 {
		t.Errorf("OOMKills %d, OOMEvents %d, OOMGroupKills %d", s.OOMKills, s.OOMEvents, s.OOMGroupKills)
	}
}

// Kill is for the box: PID 1 must live to give its report. Close takes both.
func TestV2KillSparesInit(t *testing.T) {
	needTree(t, 2)
	needGroups(t)
	g := create(t, testLimits)
	box := start(t, childCommand(g, "pause"))
	c := childCommand(g, "pause")
	c.SysProcAttr.CgroupFD = g.InitFD()
	init := start(t, c)
	box.line(t)
	init.line(t)
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	if sig := killedBy(box.Wait()); sig != unix.SIGKILL {
		t.Errorf("box ended by %v", sig)
	}
	if err := init.Process.Signal(unix.Signal(0)); err != nil {
		t.Errorf("init: %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- init.Wait() }()
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if sig := killedBy(<-done); sig != unix.SIGKILL {
		t.Errorf("init ended by %v", sig)
	}
}

func TestV2DefaultParentIsRemoved(t *testing.T) {
	tr := needTree(t, 2)
	needRoot(t)
	p, c := tr.planV2("")
	if c != nil || !p.ours {
		t.Skip("SKIP(want the real root of the v2 tree)")
	}
	a, b := create(t, testLimits), create(t, Limits{})
	a.Close()
	if !exists(p.path) {
		t.Error("parent was removed below a living group")
	}
	b.Close()
	if exists(p.path) {
		t.Error("empty parent stays")
	}
}

func TestV2Parent(t *testing.T) {
	tr := needTree(t, 2)
	needRoot(t)
	top := tr.v2.point + "/outer"
	for _, p := range []string{top, top + "/ci"} {
		if err := unix.Mkdir(p, 0o755); err != nil {
			t.Fatal(err)
		}
		defer unix.Rmdir(p)
	}
	o := Options{ID: testID(), Parent: "/outer/ci"}
	g, err := Create(o, testLimits)
	if err != nil {
		t.Fatal(err)
	}
	if want := top + "/ci/" + prefix + o.ID; g.run.path != want {
		t.Errorf("made at %s, want %s", g.run.path, want)
	}
	if err := g.Close(); err != nil || !exists(top+"/ci") {
		t.Errorf("%v; a parent that was named must stay", err)
	}
	// A process in the parent itself forbids controllers for its children.
	fd, err := openAt(unix.AT_FDCWD, top, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	busy := top + "/busy"
	if err := unix.Mkdir(busy, 0o755); err != nil {
		t.Fatal(err)
	}
	bfd, _ := openAt(unix.AT_FDCWD, busy, unix.O_RDONLY|unix.O_DIRECTORY)
	defer unix.Close(bfd)
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), modeVar+"=pause")
	c.SysProcAttr = &unix.SysProcAttr{UseCgroupFD: true, CgroupFD: bfd}
	p := start(t, c)
	p.line(t)
	_, err = Create(Options{ID: testID(), Parent: "/outer/busy"}, Limits{MemoryMax: 64 << 20})
	checkRefusal(t, err, "memory limit: the memory controller cannot be enabled in "+busy+
		": device or resource busy (processes are in that group itself)", "--cgroup-parent /outer/busy")
	p.in.Close()
	p.Wait()
	if err := remove(busy, farFuture()); err != nil {
		t.Error(err)
	}
}

func TestV2Threaded(t *testing.T) {
	tr := needTree(t, 2)
	needRoot(t)
	path := tr.v2.point + "/threads"
	if err := unix.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	defer unix.Rmdir(path)
	if err := writeAt(unix.AT_FDCWD, path+"/cgroup.type", "threaded"); err != nil {
		t.Fatal(err)
	}
	_, err := Create(Options{ID: testID(), Parent: "/threads"}, Limits{MemoryMax: 64 << 20})
	checkRefusal(t, err, "memory limit: cgroup "+path+` is threaded (cgroup.type is "threaded"): no memory limit can be set below it`, "")
}

func TestV2IO(t *testing.T) {
	needTree(t, 2)
	needRoot(t)
	var st unix.Stat_t
	if err := unix.Stat("/dev/vda", &st); err != nil {
		t.Skip("SKIP(want a disk /dev/vda)")
	}
	d := IOLimit{Major: unix.Major(st.Rdev), Minor: unix.Minor(st.Rdev), WriteBPS: 1 << 20, ReadIOPS: 100}
	g := create(t, Limits{IO: []IOLimit{d}})
	if got, want := g.ReadBack()["io.max"], device(d)+" rbps=max wbps=1048576 riops=100 wiops=max"; got != want {
		t.Errorf("io.max = %q, want %q", got, want)
	}
	if g.EnforcedBy(IO) != "cgroup2" {
		t.Errorf("EnforcedBy = %s", g.EnforcedBy(IO))
	}
}

// An ordinary user moves itself, and only itself, to the leaf.
func TestV2UserMoves(t *testing.T) {
	tr := needTree(t, 2)
	needGroups(t)
	if os.Geteuid() == 0 {
		t.Skip("SKIP(want an ordinary user in a delegated group, have root)")
	}
	create(t, testLimits)
	after, err := findTree(Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := tr.self.v2
	if !strings.HasSuffix(want, "/"+supervisorLeaf) {
		want += "/" + supervisorLeaf
	}
	if after.self.v2 != want {
		t.Errorf("own group is %q, want %q", after.self.v2, want)
	}
}
