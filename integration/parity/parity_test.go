package parity

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/seccomp/bpfvm"
	"sandglass/pkg/seccomp/edges"
	"sandglass/pkg/seccomp/profile"
	"sandglass/pkg/seccomp/sysnum"
	profiles "sandglass/seccomp-profiles"

	"golang.org/x/sys/unix"
)

var show = flag.Bool("differences", false, "print the differences")

// seen is what one engine's program saw.
type seen struct {
	facts  map[string]string
	filter []bpfvm.Insn
}

// both runs the probe by both engines with the same flags.
func both(t *testing.T, flags ...string) (ours, theirs seen) {
	t.Helper()
	engine := runc(t)
	args := append([]string{"-i", "-v", probe(t) + ":" + testkit.Inside}, flags...)
	args = append(args, "--", testkit.Inside)
	who := testkit.AsRoot(t)

	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	p := testkit.Start(t, testkit.Opts{Who: who, Stdin: r}, args...)
	r.Close()
	p.WaitLine("ready")
	pid := program(t, p.PID(), path.Base(testkit.Inside))
	ours.filter = filter(t, pid)
	groups := map[string]string{}
	outside(t, pid, groups)
	w.Close()
	o := p.Wait()
	if o.Exit != 0 {
		t.Fatalf("sandglass: exit %d\n%s", o.Exit, o.Stderr)
	}
	ours.facts = parse(t, o.Stdout)
	settle(t, ours.facts, groups)

	c := start(t, engine, plan(t, who, args...))
	text := c.until(t, "ready")
	theirs.filter, theirs.facts = filter(t, c.state()), parse(t, text)
	groups = map[string]string{}
	outside(t, c.state(), groups)
	settle(t, theirs.facts, groups)
	return ours, theirs
}

// settle joins what was seen from outside, and turns inodes of namespaces into
// whether they are the host's.
func settle(t *testing.T, facts, groups map[string]string) {
	maps.Copy(facts, groups)
	for name, inside := range facts {
		if kind, ok := strings.CutPrefix(name, "ns "); ok {
			own, err := os.Readlink("/proc/self/ns/" + kind)
			if err != nil {
				t.Fatal(err)
			}
			facts[name] = map[bool]string{true: "the host's", false: "its own"}[own == inside]
		}
	}
}

// parse reads "KEY: VALUE" lines. Of two mounts at one place the later is seen.
func parse(t *testing.T, text string) map[string]string {
	t.Helper()
	facts := map[string]string{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "ready" {
			break
		}
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			t.Fatalf("the probe printed %q", line)
		}
		facts[key] = strings.TrimSpace(value)
	}
	if len(facts) < 700 {
		t.Fatalf("the probe saw only %d things\n%s", len(facts), text)
	}
	return facts
}

// table is testdata/differences.txt: for each difference a pattern, in which *
// stands for anything, and why it is right.
type table struct {
	lines []*row
}

type row struct {
	text    string
	pattern *regexp.Regexp
	maybe   bool // only on some machines
	used    bool
}

func readTable(t *testing.T) *table {
	t.Helper()
	text, err := os.ReadFile("testdata/differences.txt")
	if err != nil {
		t.Fatal(err)
	}
	list := &table{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		what, why, ok := strings.Cut(line, " ## ")
		kind, reason, _ := strings.Cut(why, ": ")
		if !ok || reason == "" || !slices.Contains([]string{"stricter", "other", "looser"}, kind) {
			t.Fatalf("not DIFFERENCE ## stricter|other|looser: REASON: %q", line)
		}
		what, maybe := strings.CutPrefix(what, "? ")
		quoted := strings.ReplaceAll(regexp.QuoteMeta(what), `\*`, ".*")
		quoted = strings.ReplaceAll(quoted, `\\.*`, `\*`) // a star that was quoted stands for itself
		list.lines = append(list.lines, &row{text: what, pattern: regexp.MustCompile("^" + quoted + "$"), maybe: maybe})
	}
	return list
}

// judge fails the test for each difference that is not in the table, and for each
// row of these kinds that no difference needs.
func (l *table) judge(t *testing.T, differences []string, kinds string) {
	t.Helper()
	for _, d := range differences {
		if *show {
			fmt.Println(d)
		}
		i := slices.IndexFunc(l.lines, func(r *row) bool { return r.pattern.MatchString(d) })
		if i < 0 {
			t.Errorf("not in testdata/differences.txt: %s", d)
			continue
		}
		l.lines[i].used = true
	}
	of := regexp.MustCompile("^(" + kinds + ") ")
	for _, r := range l.lines {
		if !r.used && !r.maybe && of.MatchString(r.text) {
			t.Errorf("testdata/differences.txt lists what is no difference: %s", r.text)
		}
	}
}

// TestParity compares everything that the probe sees but the filter.
func TestParity(t *testing.T) {
	testkit.Requires(t, "cgroup")
	ours, theirs := both(t, "--memory", "64m", "--cpus", "0.5", "--pids-limit", "17", "--disk", "8m", "-e", "A=b c", "--ulimit", "nofile=64")
	names := slices.Sorted(maps.Keys(ours.facts))
	for name := range theirs.facts {
		if _, ok := ours.facts[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var differences []string
	for _, name := range names {
		a, b := or(ours.facts, name), or(theirs.facts, name)
		if a != b && !strings.HasPrefix(name, "call ") && !strings.HasPrefix(name, "x32 call ") {
			differences = append(differences, fmt.Sprintf("%s: sandglass %q, runc %q", name, a, b))
		}
	}
	readTable(t).judge(t, differences, "cgroup|dev|env|fd|ids|mount|ns|proc|process|rlimit|size|status|uts|write")
}

func or(facts map[string]string, name string) string {
	if v, ok := facts[name]; ok {
		return v
	}
	return "-"
}

// TestSeccompParity asks both engines' filters, as the kernel has them, for every
// number of a call and argument values at each condition's edge; and the kernel
// itself, in both sandboxes, with three patterns.
func TestSeccompParity(t *testing.T) {
	ours, theirs := both(t)
	p, err := profile.Parse([]byte(profiles.Source("default")))
	if err != nil {
		t.Fatal(err)
	}
	token := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
	found, tried := map[string]bool{}, 0
	for nr := range uint32(601) {
		name, ok := sysnum.Name(runtime.GOARCH, nr)
		if !ok {
			name = "of no name"
		}
		for _, args := range edges.Calls(p, runtime.GOARCH, nr) {
			tried++
			d := &bpfvm.Data{Nr: nr, Arch: token, Args: args}
			if a, b := verdict(t, ours.filter, d), verdict(t, theirs.filter, d); a != b {
				found[fmt.Sprintf("call %s: sandglass %s, runc %s", name, a, b)] = true
			}
		}
	}
	if tried < 5000 {
		t.Errorf("only %d calls were tried", tried)
	}
	readTable(t).judge(t, slices.Sorted(maps.Keys(found)), "call")
	for name, s := range map[string]seen{"sandglass": ours, "runc": theirs} {
		s.agrees(t, name, "call", 0, 512, token)
		if runtime.GOARCH == "amd64" {
			s.agrees(t, name, "x32 call", 1<<30, 32, token)
		}
	}
	// The doors of other architectures, which a static program cannot all try.
	for _, arch := range []uint32{unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_ARM, unix.AUDIT_ARCH_RISCV64} {
		d := &bpfvm.Data{Nr: 1, Arch: arch}
		if a := verdict(t, ours.filter, d); a != "kill_process" {
			t.Errorf("architecture %#x: sandglass %s", arch, a)
		}
		if b := verdict(t, theirs.filter, d); !strings.HasPrefix(b, "kill") {
			t.Errorf("architecture %#x: runc %s", arch, b)
		}
	}
}

// verdict is a filter's answer in words.
func verdict(t *testing.T, prog []bpfvm.Insn, d *bpfvm.Data) string {
	t.Helper()
	ret, err := bpfvm.Run(prog, d)
	if err != nil {
		t.Fatal(err)
	}
	switch ret & unix.SECCOMP_RET_ACTION_FULL {
	case unix.SECCOMP_RET_ALLOW:
		return "allow"
	case unix.SECCOMP_RET_ERRNO:
		return fmt.Sprintf("errno %d", ret&unix.SECCOMP_RET_DATA)
	case unix.SECCOMP_RET_KILL_PROCESS:
		return "kill_process"
	case unix.SECCOMP_RET_KILL_THREAD:
		return "kill_thread"
	}
	return fmt.Sprintf("%#x", ret)
}

// unasked are calls that the probe needs itself, and those that the kernel makes
// without asking a filter (seccomp_uprobe_exception in kernel/seccomp.c).
var unasked = []string{"exit_group", "uprobe", "uretprobe"}

// agrees compares the kernel's own answers inside with those that the filter
// read from outside gives. The probe cannot tell ENOSYS from allowed.
func (s seen) agrees(t *testing.T, engine, kind string, base uint32, count int, token uint32) {
	t.Helper()
	for i := range count {
		nr := base + uint32(i)
		if name, _ := sysnum.Name(runtime.GOARCH, nr); slices.Contains(unasked, name) {
			continue
		}
		var want []string
		for _, v := range []uint64{0, ^uint64(0), 1<<32 | 1} {
			answer := verdict(t, s.filter, &bpfvm.Data{Nr: nr, Arch: token, Args: [6]uint64{v, v, v, v, v, v}})
			var errno unix.Errno
			switch {
			case answer == "allow":
				want = append(want, "ENOSYS")
			case strings.HasPrefix(answer, "kill"):
				want = append(want, fmt.Sprintf("killed-%d", int(unix.SIGSYS)))
			case answer == "errno 0":
				want = append(want, "ok")
			default:
				fmt.Sscanf(answer, "errno %d", (*uintptr)(&errno))
				want = append(want, strings.Replace(unix.ErrnoName(errno), "ENOTSUP", "EOPNOTSUPP", 1)) // two names of one number
			}
		}
		key := fmt.Sprintf("%s %d", kind, i)
		if got := s.facts[key]; got != strings.Join(want, " ") {
			t.Errorf("%s, %s: the kernel inside says %q, the filter %q", engine, key, got, want)
		}
	}
}
