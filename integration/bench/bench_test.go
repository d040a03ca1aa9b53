package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sandglass/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// tables are what the bench says with some flags. It is built as make bench does.
func tables(t *testing.T, flags ...string) string {
	t.Helper()
	bench := filepath.Join(t.TempDir(), "bench")
	build := exec.Command("go", "build", "-o", bench, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(bench, append([]string{"-sandglass", testkit.Binary(t), "-tool", testkit.ImageTool(t)}, flags...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// TestParts runs the parts once each, as short as they can be: they are measured
// by hand, and would be broken then.
func TestParts(t *testing.T) {
	testkit.Requires(t, "root", "gcc", "python3", "node")
	out := tables(t, "-cold", "-n", "1", "-warmup", "0", "-pause", "0s", "-only", "bare", "-only", "floor", "-only", "sandglass", "-only", "futex",
		"-throughput", "-slice", "100ms", "-parallel", "2", "-memory", "-fill", "1ms", "-overhead", "-loops", "1")
	for _, want := range []string{
		`(?m)^\| sandglass run +\|( +\d+\.\d\d \|){7}$`, // without bwrap: five times, and two by the floor
		`(?m)^\| floor, namespaces alone +\|`,
		`(?m)^\| session +\| +2 \| +\d+ \|`,
		`(?m)^\| node +\| +\d+\.\d\d \| +1 \|`, // one that waits
		`(?m)^\| python +\| +10 \| +\d`,        // ten that run
		`(?m)^\| futex wake, inside +\| +\d+ ns \|`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("no %s", want)
		}
	}
	// The floor is one of the run that it is compared with.
	if m := regexp.MustCompile(`mounts inside: sandglass run (\d+), the floor (\d+)`).FindStringSubmatch(out); m == nil || m[1] != m[2] {
		t.Errorf("%v", m)
	}
	if t.Failed() || strings.Contains(out, "failed") {
		t.Errorf("%s", out)
	}
}

// TestTooMany: what would take the host's memory or too long is not tried.
func TestTooMany(t *testing.T) {
	last := footprint{n: 10, session: 10 << 10, init: 10 << 10, fill: time.Second}
	if why := tooMany(footprint{}, 1, time.Second); why != "" {
		t.Error(why)
	}
	if why := tooMany(last, 50, 5*time.Second); why != "" {
		t.Error(why)
	}
	if why, want := tooMany(last, 50, 4*time.Second), "to fill it would take 5 s, more than -fill 4s"; why != want {
		t.Errorf("%q, want %q", why, want)
	}
	last.host = available()
	if why := tooMany(last, 50, time.Hour); !strings.Contains(why, "MB that are free here") {
		t.Error(why)
	}
}
