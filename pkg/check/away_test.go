package check

import (
	"context"
	"encoding/binary"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"sandglass/pkg/policy"
	"sandglass/pkg/result"
	"sandglass/pkg/sandbox"

	"golang.org/x/sys/unix"
)

// openFilter writes a filter that lets every call of this architecture through
// and refuses others with ENOSYS: it passes validation and confines nothing.
func openFilter(t *testing.T) string {
	t.Helper()
	const ldAbs, jeq, jge, ret = 0x20, 0x15, 0x35, 0x06
	const allow, enosys = 0x7fff0000, 0x00050000 | uint32(unix.ENOSYS)
	insns := []unix.SockFilter{
		{Code: ldAbs, K: 4}, // arch
		{Code: jeq, K: auditArch, Jf: 3},
		{Code: ldAbs, K: 0}, // number
		{Code: jge, K: 512, Jt: 1},
		{Code: ret, K: allow},
		{Code: ret, K: enosys},
	}
	var raw []byte
	for _, i := range insns {
		raw = binary.NativeEndian.AppendUint16(raw, i.Code)
		raw = append(raw, i.Jt, i.Jf)
		raw = binary.NativeEndian.AppendUint32(raw, i.K)
	}
	path := filepath.Join(t.TempDir(), "open.bpf")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestControlTakenAway takes one control away from each of many sandboxes:
// their lines fail, the others hold.
func TestControlTakenAway(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skipf("SKIP(want root, have uid %d)", os.Geteuid())
	}
	filter := openFilter(t)
	unfiltered := func(s *sandbox.Spec) { s.Seccomp = filter }
	away := map[string]func(*sandbox.Spec){
		"c01": func(s *sandbox.Spec) { s.Env = append(s.Env, "TOKEN="+os.Getenv(secretName)) },
		"c04": func(s *sandbox.Spec) { s.Program.Args = []string{"hello"} },
		"c06": func(s *sandbox.Spec) { // the directory with a canary, really mounted
			dir := filepath.Dir(s.Program.File)
			s.Mounts = append(s.Mounts, policy.Mount{Source: dir, Target: dir})
		},
		"c08": unfiltered, "c10": unfiltered, "c32": unfiltered, "c33": unfiltered, "c34": unfiltered, "c35": unfiltered,
		"c36": unfiltered, "c37": unfiltered, "c38": unfiltered, "c39": unfiltered, "c40": unfiltered, "c43": unfiltered,
		"c41": unfiltered, "c42": unfiltered,
		"c17": func(s *sandbox.Spec) { s.Limits.Memory = 1 << 30 },
		"c18": func(s *sandbox.Spec) { s.Limits.Memory = 1 << 30 },
		"c19": func(s *sandbox.Spec) { s.Limits.Pids = 4096 },
		"c20": func(s *sandbox.Spec) { s.Limits.MilliCPU = 4000 },
		"c21": func(s *sandbox.Spec) { s.Limits.Disk = 1 << 30 },
		"c22": func(s *sandbox.Spec) { s.Limits.DiskInodes = 1 << 16 },
		"c23": func(s *sandbox.Spec) { s.Limits.Output = 16 << 20 },
		"c45": func(s *sandbox.Spec) {
			dir := t.TempDir()
			s.Mounts = append(s.Mounts, policy.Mount{Source: dir, Target: "/shared", Write: true})
		},
	}
	if runtime.GOARCH != "amd64" { // there is no second interface to the kernel to be opened
		delete(away, "c41")
		delete(away, "c42")
	}
	doors := map[string]func(*sandbox.Spec){
		// Another host in place of the listed one, and one more beside it.
		"c47": func(s *sandbox.Spec) { s.Hosts = []string{"192.0.2.1:443"} },
		"c48": func(s *sandbox.Spec) {
			_, port, _ := strings.Cut(s.Program.Args[1], "127.0.0.1:")
			s.Hosts = append(s.Hosts, "127.0.0.1:"+port)
		},
	}
	maps.Copy(away, doors)
	lines, err := Run(context.Background(), Options{mutate: func(id string, s *sandbox.Spec) {
		if f := away[id]; f != nil {
			f(s)
		}
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if Held(lines) {
		t.Error("the check as a whole held")
	}
	for _, l := range lines {
		if taken := away[l.ID] != nil; l.Held == taken {
			t.Errorf("taken away: %v, but %s (%s)", taken, l, l.Seen)
		}
		if away[l.ID] != nil {
			t.Logf("%s", l)
		}
	}
}

// TestWeakIsAskedFor: what a host holds by less is a failure unless it is
// allowed by name.
func TestWeakIsAskedFor(t *testing.T) {
	c := control{id: "c17", limit: "memory", whole: func(context.Context, *suite, *control) verdict { return weak("less") }}
	for _, allow := range [][]string{nil, {"cpu"}, {"memory"}} {
		s := &suite{opt: Options{AllowDegraded: allow}}
		l := s.one(context.Background(), &c)
		want := slices.Contains(allow, "memory")
		if l.Held != want || l.Weak != want {
			t.Errorf("allowed %v: held %v, weak %v", allow, l.Held, l.Weak)
		}
	}
}

// TestLoopHasToBegin: a program that was stopped before its first word is tried again
// with more time, and proves nothing by itself.
func TestLoopHasToBegin(t *testing.T) {
	var given []time.Duration
	s := &suite{bait: testBait(t), opt: Options{AllowDegraded: degraded(), mutate: func(_ string, s *sandbox.Spec) {
		if given = append(given, s.Limits.Timeout); len(given) == 1 {
			s.Program.Args = []string{"hold"} // as slow as can be
		}
	}}}
	v := loopStopped(context.Background(), s, find(t, "c04"))
	if !v.held || len(given) < 2 || given[0] != loopTimes[0] || given[1] != loopTimes[1] {
		t.Errorf("held %v (%s) with the limits %v", v.held, v.seen, given)
	}
	w := &saw{res: sandbox.Result{Outcome: result.Timeout, ExitCode: result.ExitTimeout}}
	if v := judgeLoop(nil, w); v.held {
		t.Errorf("no word of it, but %s", v.seen)
	}
}
