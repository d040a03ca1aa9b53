package cgroup

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandglass/internal/refusal"
	"sandglass/pkg/result"
)

// The tests here hold on every tree; they run on the host's own.

func TestMemoryLimitKills(t *testing.T) {
	needGroups(t)
	g := create(t, Limits{MemoryMax: 64 << 20, PidsMax: 40})
	err := childCommand(g, "alloc:"+strconv.Itoa(300<<20)).Run()
	if killedBy(err) != unix.SIGKILL {
		t.Fatalf("allocating 300 MiB below 64 MiB: %v, want SIGKILL", err)
	}
	s, err := g.Stats()
	if err != nil {
		t.Fatal(err)
	}
	if s.OOMKills < 1 {
		t.Errorf("OOMKills = %d, want at least 1", s.OOMKills)
	}
	// A dying process may be charged some pages above the limit.
	if s.MemoryPeak < 60<<20 || s.MemoryPeak > 65<<20 {
		t.Errorf("MemoryPeak = %d, want close to %d", s.MemoryPeak, 64<<20)
	}
}

func TestMemoryBelowLimitLives(t *testing.T) {
	needGroups(t)
	g := create(t, Limits{MemoryMax: 256 << 20})
	out, err := childCommand(g, "alloc:"+strconv.Itoa(64<<20)).CombinedOutput()
	if err != nil || string(out) != "allocated 67108864\n" {
		t.Fatalf("%q, %v", out, err)
	}
	if s, _ := g.Stats(); s.OOMKills != 0 || s.MemoryPeak < 64<<20 {
		t.Errorf("OOMKills = %d, MemoryPeak = %d", s.OOMKills, s.MemoryPeak)
	}
}

func TestPidsLimitIsExact(t *testing.T) {
	needGroups(t)
	g := create(t, Limits{PidsMax: 40})
	p := start(t, childCommand(g, "fork"))
	if n := p.line(t); n != "40" {
		t.Errorf("tasks = %s, want 40", n)
	}
	s, _ := g.Stats()
	if s.PidsCurrent != 40 || s.PidsMaxHits < 1 {
		t.Errorf("PidsCurrent = %d, PidsMaxHits = %d", s.PidsCurrent, s.PidsMaxHits)
	}
	if s.PidsPeak != 40 && s.PidsPeak != -1 {
		t.Errorf("PidsPeak = %d", s.PidsPeak)
	}
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	if sig := killedBy(p.Wait()); sig != unix.SIGKILL {
		t.Errorf("ended by %v", sig)
	}
}

func TestCPUUsageCounts(t *testing.T) {
	needGroups(t)
	g := create(t, Limits{PidsMax: 40, CPUQuotaUS: 5000})
	if d, err := g.CPUUsage(); err != nil || d != 0 {
		t.Fatalf("empty box: %v, %v", d, err)
	}
	if err := childCommand(g, "burn:60").Run(); err != nil {
		t.Fatal(err)
	}
	d, err := g.CPUUsage()
	if err != nil || d < 50*time.Millisecond {
		t.Fatalf("after 60 ms: %v, %v", d, err)
	}
	s, _ := g.Stats()
	if s.CPUUsec < 50_000 {
		t.Errorf("CPUUsec = %d", s.CPUUsec)
	}
	if g.EnforcedBy(CPU) != result.ByNone && s.ThrottledPeriods < 1 {
		t.Errorf("60 ms at a twentieth of a CPU were never throttled")
	}
}

func TestReadBack(t *testing.T) {
	needGroups(t)
	needRoot(t)
	g := create(t, Limits{MemoryMax: 64<<20 + 1, PidsMax: 40, CPUQuotaUS: 5000, CPUPeriodUS: 50_000})
	want := map[string]string{"pids.max": "40"}
	by := result.ByCgroup1
	if g.v2 {
		by = result.ByCgroup2
		want["memory.max"], want["memory.oom.group"], want["cpu.max"] = "67108864", "1", "5000 50000"
		want["memory.swap.max"] = "0"
	} else {
		want["memory.limit_in_bytes"], want["memory.memsw.limit_in_bytes"] = "67108864", "67108864"
		want["cpu.cfs_quota_us"], want["cpu.cfs_period_us"] = "5000", "50000"
		if textAt(g.at("memory"), socketsFile) != "" {
			want[socketsFile] = "16777216"
		}
	}
	back := g.ReadBack()
	for k, v := range want {
		if back[k] != v {
			t.Errorf("%s = %q, want %q", k, back[k], v)
		}
	}
	for _, l := range []string{Memory, Pids, CPU} {
		if g.EnforcedBy(l) != by {
			t.Errorf("EnforcedBy(%s) = %s, want %s", l, g.EnforcedBy(l), by)
		}
	}
	if g.EnforcedBy(IO) != result.ByNone {
		t.Errorf("io was not asked for and is enforced by %s", g.EnforcedBy(IO))
	}
}

func TestKillAndCloseOfEmptyAndTwice(t *testing.T) {
	needGroups(t)
	g := create(t, testLimits)
	if err := g.Kill(); err != nil {
		t.Errorf("Kill of an empty box: %v", err)
	}
	for range 2 {
		if err := g.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	_, e1 := g.Stats()
	_, e2 := g.CPUUsage()
	for _, err := range []error{e1, e2, g.Kill()} {
		if err != ErrClosed {
			t.Errorf("after Close: %v, want ErrClosed", err)
		}
	}
	if n := len(g.ReadBack()); n != 0 {
		t.Errorf("ReadBack after Close has %d entries", n)
	}
}

// Close must end a fork tree that nobody has killed before.
func TestCloseKills(t *testing.T) {
	needGroups(t)
	g := create(t, Limits{PidsMax: 40})
	if empty, err := g.Empty(); !empty || err != nil {
		t.Errorf("a new group is empty: %v, %v", empty, err)
	}
	p := start(t, childCommand(g, "fork"))
	p.line(t)
	if empty, err := g.Empty(); empty || err != nil {
		t.Errorf("a group with processes is empty: %v, %v", empty, err)
	}
	done := make(chan error, 1)
	go func() { done <- p.Wait() }()
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if empty, err := g.Empty(); empty || err != ErrClosed {
		t.Errorf("a closed group is empty: %v, %v", empty, err)
	}
	if sig := killedBy(<-done); sig != unix.SIGKILL {
		t.Errorf("ended by %v", sig)
	}
}

// Prune takes what is empty, and nothing that somebody is in.
func TestPrune(t *testing.T) {
	needGroups(t)
	g := create(t, testLimits)
	p := start(t, childCommand(g, "pause"))
	p.line(t)
	before := leftovers(g.opt.ID)
	g.Prune()
	if now := leftovers(g.opt.ID); !slices.Equal(now, before) || g.box.fd >= 0 && !exists(g.box.path) {
		t.Errorf("with a process in it: %v is left of %v", now, before)
	}
	p.in.Close()
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	g.Prune()
	if now := leftovers(g.opt.ID); !g.v2 && len(now) > 0 || g.box.fd >= 0 && exists(g.box.path) {
		t.Errorf("when it has ended %v is left", now)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

// A stopped process still ends.
func TestKillStopped(t *testing.T) {
	needGroups(t)
	g := create(t, Limits{PidsMax: 40})
	p := start(t, childCommand(g, "pause"))
	p.line(t)
	p.Process.Signal(unix.SIGSTOP)
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	if sig := killedBy(p.Wait()); sig != unix.SIGKILL {
		t.Errorf("ended by %v", sig)
	}
}

func TestSameIDIsRefused(t *testing.T) {
	needGroups(t)
	g := create(t, testLimits)
	_, err := Create(g.opt, testLimits)
	var r *refusal.Error
	if !errors.As(err, &r) || !strings.Contains(r.What, "file exists") {
		t.Fatalf("second group of one id: %v", err)
	}
	if len(leftovers(g.opt.ID)) == 0 {
		t.Fatal("the failed Create has removed the living group")
	}
}

func TestSweep(t *testing.T) {
	needGroups(t)
	live := create(t, testLimits)
	id := testID()
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), modeVar+"=creator:"+id)
	p := start(t, c)
	p.line(t) // from the process inside
	if _, err := Sweep(Options{}); err != nil {
		t.Fatal(err)
	}
	before := leftovers(id)
	if len(before) == 0 {
		t.Fatal("Sweep has removed the group of a living creator")
	}
	p.Process.Kill()
	p.Process.Wait()
	swept, err := Sweep(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range before {
		if !slices.Contains(swept.Removed, path) || slices.Contains(swept.Live, path) {
			t.Errorf("Sweep says %+v, without %s", swept, path)
		}
	}
	for _, path := range leftovers(live.opt.ID) {
		if !slices.Contains(swept.Live, path) {
			t.Errorf("Sweep says %+v, without the living %s", swept, path)
		}
	}
	if left := leftovers(id); len(left) > 0 {
		t.Errorf("not swept: %v", left)
	}
	if p.out.Scan() { // the pipe ends when the process inside is dead
		t.Errorf("unexpected line %q", p.out.Text())
	}
	if len(leftovers(live.opt.ID)) != len(before) {
		t.Error("Sweep has removed a living group")
	}
}

// Sweepers run while groups are made: no creator may lose its group or fail.
func TestSweepRace(t *testing.T) {
	needGroups(t)
	// The caller leaves its own v2 group before two goroutines try at once.
	create(t, testLimits)
	stop := make(chan struct{})
	var sweepers, creators sync.WaitGroup
	for range 2 {
		sweepers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					if _, err := Sweep(Options{}); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	for range 4 {
		creators.Go(func() {
			for range 25 {
				g, err := Create(Options{ID: testID(), HostUID: os.Geteuid(), Allow: allowed()}, testLimits)
				if err != nil {
					t.Error(err)
					return
				}
				if len(leftovers(g.opt.ID)) == 0 {
					t.Error("group was swept away")
				}
				if err := g.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	creators.Wait()
	close(stop)
	sweepers.Wait()
}

func TestLockIsNotForOthers(t *testing.T) {
	needGroups(t)
	g := create(t, testLimits)
	for _, path := range leftovers(g.opt.ID) {
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil {
			t.Fatal(err)
		}
		if st.Mode&0o777 != 0o711 {
			t.Errorf("%s has mode %o: others could lock it", path, st.Mode&0o777)
		}
	}
}

func TestUnknownDeviceIsRefused(t *testing.T) {
	needRoot(t)
	needGroups(t)
	id := testID()
	_, err := Create(Options{ID: id}, Limits{MemoryMax: 64 << 20, IO: []IOLimit{{Major: 511, Minor: 77, ReadBPS: 1 << 20}}})
	var r *refusal.Error
	if !errors.As(err, &r) || !strings.HasPrefix(r.What, "io limit: write 511:77 ") {
		t.Fatalf("got %v", err)
	}
	if last := r.Hints[len(r.Hints)-1]; last != "--allow-degraded io" {
		t.Errorf("last hint = %q", last)
	}
	if left := leftovers(id); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func BenchmarkStats(b *testing.B) {
	g, err := Create(Options{ID: testID(), HostUID: os.Geteuid()}, testLimits)
	if err != nil {
		b.Skip(err)
	}
	defer g.Close()
	for b.Loop() {
		g.Stats()
	}
}

func BenchmarkCPUUsage(b *testing.B) {
	g, err := Create(Options{ID: testID(), HostUID: os.Geteuid()}, testLimits)
	if err != nil {
		b.Skip(err)
	}
	defer g.Close()
	for b.Loop() {
		g.CPUUsage()
	}
}

func BenchmarkFindTree(b *testing.B) {
	for b.Loop() {
		findTree(Options{})
	}
}

func BenchmarkSweepNothing(b *testing.B) {
	for b.Loop() {
		Sweep(Options{})
	}
}

// BenchmarkCreate reports creation and removal apart, as medians: the machine
// that it was written on was never quiet.
func BenchmarkCreate(b *testing.B) {
	var made, closed []time.Duration
	for b.Loop() {
		t0 := time.Now()
		g, err := Create(Options{ID: testID(), HostUID: os.Geteuid()}, testLimits)
		if err != nil {
			b.Skip(err)
		}
		t1 := time.Now()
		if err := g.Close(); err != nil {
			b.Fatal(err)
		}
		made, closed = append(made, t1.Sub(t0)), append(closed, time.Since(t1))
	}
	for name, d := range map[string][]time.Duration{"create-µs": made, "close-µs": closed} {
		slices.Sort(d)
		b.ReportMetric(float64(d[len(d)/2].Nanoseconds())/1000, name)
	}
}
