package rootfs

import (
	"os"
	"slices"
	"strings"
	"testing"

	"sandglass/pkg/wire"
)

func sized(t *testing.T, s Size, name string) string {
	t.Helper()
	for _, f := range Sized(s) {
		if f.Name == name {
			return f.Text
		}
	}
	t.Fatalf("no file %s", name)
	return ""
}

func TestMeminfo(t *testing.T) {
	text := sized(t, Size{Memory: 256 << 20, CPUs: 1}, "meminfo")
	want := "MemTotal:         262144 kB\nMemFree:          262144 kB\nMemAvailable:     262144 kB\nBuffers:               0 kB\n"
	if !strings.HasPrefix(text, want) {
		t.Errorf("%.200q, want %q", text, want)
	}
}

func TestCPUs(t *testing.T) {
	host := firstCPU()
	for n, want := range map[int]int{0: 1, 1: 1, 3: 3} {
		info := sized(t, Size{Memory: 1 << 20, CPUs: n}, "cpuinfo")
		if got := strings.Count(info, "processor\t: "); got != want {
			t.Errorf("%d CPUs: %d in cpuinfo, want %d", n, got, want)
		}
		if got := strings.Count(sized(t, Size{CPUs: n}, "stat"), "\ncpu"); got != want {
			t.Errorf("%d CPUs: %d in stat, want %d", n, got, want)
		}
		for _, line := range []string{"microcode", "cpu MHz", "bugs"} {
			if strings.Contains(info, line) {
				t.Errorf("cpuinfo has %q", line)
			}
		}
		for _, line := range host {
			if strings.HasPrefix(line, "flags") && strings.Count(info, line+"\n") != want {
				t.Errorf("%d CPUs: the features are not those of the host's first", n)
			}
		}
	}
}

// TestCgroups: every controller and its hierarchy, and no number of groups.
func TestCgroups(t *testing.T) {
	text := sized(t, Size{}, "cgroups")
	host, err := os.ReadFile("/proc/cgroups")
	if err != nil {
		t.Skip("SKIP(want /proc/cgroups, have " + err.Error() + ")")
	}
	var want strings.Builder
	for line := range strings.Lines(string(host)) {
		if f := strings.Fields(line); f[0] != "#subsys_name" {
			line = f[0] + "\t" + f[1] + "\t1\t" + f[3] + "\n"
		}
		want.WriteString(line)
	}
	if text != want.String() {
		t.Errorf("%q, want %q", text, want.String())
	}
}

// TestProcIsCovered: each file that tells a size is bound over the host's and is
// not masked again as one of the rest, and what is bound was written before the
// root was frozen.
func TestProcIsCovered(t *testing.T) {
	in := input()
	in.Size = Size{Memory: 1 << 20, CPUs: 1}
	items := mustPlan(t, in)
	freeze, rest := index(items, wire.OpFreeze, ""), index(items, wire.OpRest, "/proc")
	if rest < 0 {
		t.Fatal("the rest of /proc is not masked")
	}
	known := strings.Fields(string(items[rest].Data))
	masks := 0
	for _, it := range items {
		if it.Kind != wire.OpMask {
			continue
		}
		masks++
		if i := index(items, wire.OpFile, it.Source); i < 0 || i > freeze {
			t.Errorf("%s is covered by %q, which is not a file of the frozen root", it.Target, it.Source)
		}
		if name := strings.TrimPrefix(it.Target, "/proc/"); !strings.Contains(name, "/") && !slices.Contains(known, name) {
			t.Errorf("%s is masked twice", it.Target)
		}
	}
	if want := len(Masked) + len(Sized(in.Size)); masks != want {
		t.Errorf("%d masks, want %d", masks, want)
	}
}
