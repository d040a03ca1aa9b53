package twohosts

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sandglass/internal/testkit"

	"golang.org/x/sys/unix"
)

// cpus is what a rate gives on this host.
func cpus(t *testing.T, rate int) int {
	t.Helper()
	var own unix.CPUSet
	if err := unix.SchedGetaffinity(0, &own); err != nil {
		t.Fatal(err)
	}
	return min(rate, own.Count())
}

// sized runs a shell script in a sandbox of 300 MiB and a CPU rate.
func sized(t *testing.T, who testkit.Who, rate string, script string, flags ...string) string {
	t.Helper()
	o := testkit.Sh(t, who, script, append([]string{"--memory", "300m", "--cpus", rate, "--timeout", "60s"}, flags...)...)
	if o.Exit != 0 {
		t.Fatalf("exit %d\nstdout: %s\nstderr: %s", o.Exit, o.Stdout, o.Stderr)
	}
	return o.Stdout
}

// What programs size themselves by is the sandbox's, to the byte.
func TestSizes(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for rate, n := range map[string]int{"0.5": 1, "1": 1, "2": cpus(t, 2)} {
			got := sized(t, who, rate, "grep -E '^(MemTotal|MemFree|MemAvailable|SwapTotal):' /proc/meminfo; grep -c ^processor /proc/cpuinfo; "+
				"grep -c '^cpu[0-9]' /proc/stat; cat /proc/loadavg /proc/swaps; env -u OMP_NUM_THREADS nproc; sed -n 's/^Cpus_allowed_list:.//p' /proc/self/status | tr ',-' '  ' | wc -w; "+
				"awk 'NR > 1 && $3 != 1' /proc/cgroups")
			want := "MemTotal:         307200 kB\nMemFree:          307200 kB\nMemAvailable:     307200 kB\nSwapTotal:             0 kB\n" +
				fmt.Sprintf("%d\n%d\n0.00 0.00 0.00 1/1 1\nFilename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n%d\n%d\n", n, n, n, n)
			if got != want {
				t.Errorf("--cpus %s: %q, want %q", rate, got, want)
			}
		}
	})
}

// The files cannot be written, and not be uncovered.
func TestSizesStay(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		got := sized(t, who, "1", "for f in meminfo cpuinfo stat loadavg cmdline; do (echo x >/proc/$f) 2>/dev/null && echo written $f; "+
			"chmod 777 /proc/$f 2>/dev/null && echo chmod $f; rm -f /proc/$f 2>/dev/null && echo removed $f; done; "+
			"umount /proc/meminfo 2>/dev/null && echo uncovered; ls -A /tmp | wc -l; head -n 1 /proc/meminfo")
		if want := "0\nMemTotal:         307200 kB\n"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// Each runtime starts as many threads as there are CPUs for it, and takes the
// memory for the machine's.
func TestRuntimesSizeThemselves(t *testing.T) {
	for _, c := range []struct{ needs, script, one, two string }{
		{"python3", `python3 -c 'import os, multiprocessing; print(os.cpu_count(), len(os.sched_getaffinity(0)), multiprocessing.cpu_count())'`, "1 1 1\n", "2 2 2\n"},
		{"node", `node -p 'const os = require("os"); [os.cpus().length, (os.availableParallelism || (() => os.cpus().length))(), os.totalmem() >> 20].join(" ")'`, "1 1 300\n", "2 2 300\n"},
	} {
		t.Run(c.needs, func(t *testing.T) {
			testkit.Requires(t, c.needs)
			testkit.Each(t, func(t *testing.T, who testkit.Who) {
				if got := sized(t, who, "1", c.script); got != c.one {
					t.Errorf("%q, want %q", got, c.one)
				}
				if cpus(t, 2) < 2 {
					return
				}
				if got := sized(t, who, "1.5", c.script); got != c.two {
					t.Errorf("--cpus 1.5: %q, want %q", got, c.two)
				}
			})
		})
	}
}

const goSource = `package main

import ("fmt"; "runtime")

func main() { fmt.Println(runtime.NumCPU(), runtime.GOMAXPROCS(0)) }
`

func TestGoSizesItself(t *testing.T) {
	testkit.Requires(t, "go")
	dir := testkit.Dir(t)
	source, program := filepath.Join(dir, "size.go"), filepath.Join(dir, "size")
	if err := os.WriteFile(source, []byte(goSource), 0o644); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", program, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		if got := sized(t, who, "1", "/size", "-v", program+":/size:ro"); got != "1 1\n" {
			t.Errorf("%q, want one CPU and one processor", got)
		}
		if n := cpus(t, 2); n == 2 {
			if got := sized(t, who, "2", "/size", "-v", program+":/size:ro"); got != "2 2\n" {
				t.Errorf("--cpus 2: %q, want two", got)
			}
		}
	})
}

const javaSource = "public class Size { public static void main(String[] a) { System.out.println(Runtime.getRuntime().availableProcessors()); } }\n"

func TestJavaSizesItself(t *testing.T) {
	testkit.Requires(t, "java", "javac")
	dir := testkit.Dir(t)
	if err := os.WriteFile(filepath.Join(dir, "Size.java"), []byte(javaSource), 0o644); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command("javac", "-d", dir, filepath.Join(dir, "Size.java")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for rate, n := range map[string]int{"1": 1, "2": cpus(t, 2)} {
			if got := sized(t, who, rate, "java -cp /java Size", "-v", dir+":/java:ro"); strings.TrimSpace(got) != fmt.Sprint(n) {
				t.Errorf("--cpus %s: %q, want %d", rate, got, n)
			}
		}
	})
}
