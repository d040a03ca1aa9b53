package check

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandglass/pkg/check/probes"
	"sandglass/pkg/result"
)

// outside runs a probe as a plain child of this process, where it does no harm.
func outside(t *testing.T, probe string, args ...string) *saw {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", append([]string{probe}, args...)...)
	cmd.Env = append(os.Environ(), envOutside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	w := &saw{out: out, answers: probes.Parse(out)}
	w.res.Outcome = result.Exited
	if err != nil {
		w.res.ExitCode = cmd.ProcessState.ExitCode()
	}
	if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		w.res.Outcome, w.res.Signal = result.Signaled, int(s.Signal())
	}
	return w
}

// onHost is a control whose probe is tried outside.
type onHost struct {
	id   string
	args func([]string) []string
	seen string // part of what the line then says
	root bool   // an ordinary user is refused even outside
}

func outsideCases(b *bait) []onHost {
	only := func(prefix string) func([]string) []string { // one door on loopback
		return func(args []string) []string {
			return slices.DeleteFunc(args, func(a string) bool { return !strings.HasPrefix(a, prefix) })
		}
	}
	cases := []onHost{
		{id: "c01", seen: "the secret of the host: env " + secretName},
		{id: "c02"},
		{id: "c03", args: only("connect 127.0.0.1"), seen: "a connection arrived at the host"},
		{id: "c03", args: only("connect [0:0:0:0:0:0:0:1]"), seen: "a connection arrived at the host"},
		{id: "c03", args: only("server 127.0.0.1"), seen: "a query arrived at the host's name server"},
		{id: "c48", args: only("connect 127.0.0.1"), seen: "a connection arrived at the host"},
		{id: "c48", args: only("send 127.0.0.1"), seen: "a query arrived at the host's name server"},
		{id: "c05", seen: "the secret of the host: content 70"},
		{id: "c07", seen: "others, such as process "},
		{id: "c09", seen: "process of the host was killed"},
		{id: "c11", seen: "a connection arrived at the host's abstract socket"},
		{id: "c12"},
		{id: "c24", root: true},
		{id: "c31"},
		{id: "c33", seen: "clone NEWUSER: \"done\""},
		{id: "c34"}, {id: "c35"}, {id: "c36"}, {id: "c37"}, {id: "c38"}, {id: "c39"}, {id: "c40", root: true},
		{id: "c43"},
		{id: "c46", root: true},
	}
	if runtime.GOARCH == "amd64" {
		cases = append(cases, onHost{id: "c42", args: func([]string) []string { return []string{b.dir} }, seen: "exit code 7"})
	}
	if b.key != 0 {
		cases = append(cases, onHost{id: "c10", seen: "the secret of the host: key in "})
	}
	if b.shmID >= 0 {
		cases = append(cases, onHost{id: "c13", seen: "the secret of the host: content"})
	}
	// Last, because it changes the canaries.
	return append(cases, onHost{id: "c06", seen: "the secret of the host: read "})
}

func testBait(t *testing.T) *bait {
	t.Helper()
	b, err := layOut()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.remove)
	if err := b.startPrey(); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestProbesSeeTheHost: a probe that finds nothing inside must find it outside,
// where it is. Left out are those that would change the host: mounts that are
// written to, devices, cgroups, init.
func TestProbesSeeTheHost(t *testing.T) {
	b := testBait(t)
	s := &suite{bait: b}
	for _, c := range outsideCases(b) {
		if c.root && os.Geteuid() != 0 {
			continue
		}
		ctl := find(t, c.id)
		var args []string
		if ctl.args != nil {
			args = ctl.args(b)
		}
		if c.args != nil {
			if args = c.args(args); len(args) == 0 {
				continue // a host without IPv6
			}
		}
		w := outside(t, ctl.probe, args...)
		v := s.judge(ctl, w)
		if v.held || !strings.Contains(v.seen, c.seen) {
			t.Errorf("%s outside: held %v, seen %q\n%s", c.id, v.held, v.seen, w.out)
		}
	}
	if b.touched() == "" {
		t.Error("the probe of host files changed none outside")
	}
}

func find(t *testing.T, id string) *control {
	t.Helper()
	for _, c := range controls() {
		if c.id == id {
			return &c
		}
	}
	t.Fatalf("no control %s", id)
	return nil
}

// TestEveryAnswerCounts runs each control as it is, and then tells its judge
// that one attempt was let through, one after the other: each must be noticed.
// And a probe that says nothing proves nothing.
func TestEveryAnswerCounts(t *testing.T) {
	b := testBait(t)
	s := &suite{opt: Options{AllowDegraded: degraded()}, bait: b}
	// c06 is decided by the host's files, the others by the outcome.
	decided := map[string]bool{"c06": true, "c17": true, "c18": true, "c19": true, "c20": true, "c25": true, "c30": true, "c41": true}
	for _, c := range controls() {
		if c.whole != nil {
			continue
		}
		w := s.sandbox(context.Background(), &c)
		if v := s.judge(&c, w); !v.held {
			t.Errorf("%s as it is: %s", c.id, v.seen)
			continue
		}
		silent := *w
		silent.out, silent.answers = nil, probes.Answers{}
		if v := s.judge(&c, &silent); v.held && (!decided[c.id] || c.id == "c06") {
			t.Errorf("%s: a silent probe is enough", c.id)
		}
		told := *w
		told.out = append([]byte("x"+b.secret), w.out...)
		if v := s.judge(&c, &told); v.held {
			t.Errorf("%s: the secret in the output is not seen", c.id)
		}
		for key, value := range w.answers {
			if decided[c.id] || !isErrno(value) {
				continue
			}
			w.answers[key] = probes.Done
			if v := s.judge(&c, w); v.held {
				t.Errorf("%s: %q may be let through", c.id, key)
			}
			w.answers[key] = value
		}
	}
}

func isErrno(s string) bool {
	return len(s) > 2 && s[0] == 'E' && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
}

// TestSurvivorIsSeen: a process that outlives the supervisor is not overlooked.
func TestSurvivorIsSeen(t *testing.T) {
	const mark = "survivor-of-this-test"
	survivor := exec.Command("/proc/self/exe")
	survivor.Args = []string{probes.Arg0, "stay", mark}
	survivor.Env = append(os.Environ(), envOutside+"=1")
	survivor.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	ready := &signaler{want: []byte(`"staying"`), seen: make(chan struct{})}
	survivor.Stdout = ready
	if err := survivor.Start(); err != nil {
		t.Fatal(err)
	}
	defer survivor.Wait()
	defer survivor.Process.Kill()
	<-ready.seen
	supervisor := exec.Command("/proc/self/exe", "hold")
	supervisor.Env = survivor.Env
	supervisor.SysProcAttr = survivor.SysProcAttr
	if err := supervisor.Start(); err != nil {
		t.Fatal(err)
	}
	defer supervisor.Wait()
	v := killAndWatch(supervisor.Process, mark, time.Millisecond)
	if v.held || !strings.Contains(v.seen, "lives") {
		t.Errorf("%+v", v)
	}
	if v := killAndWatch(supervisor.Process, "nobody-has-this-mark", time.Millisecond); v.held {
		t.Errorf("without any process: %+v", v)
	}
}

func TestCgroupsOf(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"/a", "/a/sandglass-12-1-x", "/sandglass-123-1-x", "/a/other"} {
		if err := os.Mkdir(root+name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	got := cgroupsOf(root, 12)
	if len(got) != 1 || got[0] != root+"/a/sandglass-12-1-x" {
		t.Errorf("%v", got)
	}
	if left := cgroupsLeft(root, 12, time.Millisecond); !slices.Equal(left, got) {
		t.Errorf("%v stays, not %v", left, got)
	}
	// One of another process with the same PID, which ends.
	time.AfterFunc(20*time.Millisecond, func() { os.Remove(got[0]) })
	if left := cgroupsLeft(root, 12, time.Minute); left != nil {
		t.Errorf("%v", left)
	}
}

// TestSignaler finds its text across writes.
func TestSignaler(t *testing.T) {
	s := &signaler{want: []byte("ready"), seen: make(chan struct{})}
	for _, part := range []string{"xxre", "a", "dyready", "more"} {
		if n, err := s.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
	}
	select {
	case <-s.seen:
	default:
		t.Error("not seen")
	}
}

// TestPlantedArtifacts: what a collector that follows links would leave behind.
func TestPlantedArtifacts(t *testing.T) {
	b := &bait{dir: t.TempDir(), secret: "secret"}
	w := &saw{answers: probes.Answers{"plain": probes.Done}}
	put := func(name, content string) {
		if err := os.WriteFile(b.path("links/"+name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if v := judgeArtifacts(b, w); v.held {
		t.Error("held without a directory")
	}
	if err := os.Mkdir(b.path("links"), 0o700); err != nil {
		t.Fatal(err)
	}
	put("plain", "plain")
	if v := judgeArtifacts(b, w); !v.held {
		t.Errorf("the plain file alone: %s", v.seen)
	}
	put("link", "secret")
	if v := judgeArtifacts(b, w); v.held {
		t.Error("held with what a link led to")
	}
	os.Remove(b.path("links/link"))
	if err := os.Symlink("/etc/passwd", b.path("links/link")); err != nil {
		t.Fatal(err)
	}
	if v := judgeArtifacts(b, w); v.held {
		t.Error("held with a link")
	}
}

// TestReadBackCounts: what the supervisor read of the program decides c30 and
// c31, value by value.
func TestReadBackCounts(t *testing.T) {
	s := &suite{opt: Options{AllowDegraded: degraded()}, bait: testBait(t)}
	fields := map[string]string{
		"c30": "Seccomp NoNewPrivs user mnt pid ipc uts net",
		"c31": "CapInh CapPrm CapEff CapBnd CapAmb Uid",
	}
	for id, list := range fields {
		c := find(t, id)
		w := s.sandbox(context.Background(), c)
		if v := s.judge(c, w); !v.held {
			t.Errorf("%s as it is: %s", id, v.seen)
		}
		for name := range strings.FieldsSeq(list) {
			for _, l := range w.res.Layers {
				good, ok := l.ReadBack[name]
				if !ok {
					continue
				}
				l.ReadBack[name] = "0 0 0 0"
				if name == "user" || name == "mnt" || name == "pid" || name == "ipc" || name == "uts" || name == "net" {
					l.ReadBack[name], _ = os.Readlink("/proc/self/ns/" + name)
				}
				if v := s.judge(c, w); v.held {
					t.Errorf("%s: %s may be %q", id, name, l.ReadBack[name])
				}
				l.ReadBack[name] = good
			}
		}
	}
}

// TestNeighbourSeen: each way to meet another sandbox counts.
func TestNeighbourSeen(t *testing.T) {
	none := func() *saw {
		return &saw{answers: probes.Answers{"look /tmp": "ENOENT", "connect": "ECONNREFUSED", "self": "2"}}
	}
	if v := judgeNeighbour(nil, none()); !v.held {
		t.Errorf("nothing seen: %s", v.seen)
	}
	for key, value := range map[string]string{"look /tmp": "a note", "connect": probes.Done, "process 7": "sh", "self": ""} {
		w := none()
		w.answers[key] = value
		if v := judgeNeighbour(nil, w); v.held {
			t.Errorf("held with %s: %s", key, value)
		}
	}
}
