package limits

import (
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

// writable is every place that can be written in a box of the default policy.
const writable = "places /dev/shm /home/sandbox /out /tmp /var/tmp /work\n"

// All writable places are one file system, so that its limits hold for their sum.
func TestDiskBytes(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := script(t, who, "places.py", "--disk 8m --timeout 60s", "bytes")
		total := last(t, o, writableOf(t, o)+"devices 1 ends ENOSPC\nbytes ")
		// Directories take pages of their own.
		if total > 8<<20 || total < 8<<20-128<<10 {
			t.Errorf("%d bytes fit into 8 MiB", total)
		}
		held(t, o, "disk", 8<<20, result.ByTmpfs)
		held(t, o, "file_size", 9<<20, result.ByRlimit)
	})
}

func TestDiskInodes(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := script(t, who, "places.py", "--disk-inodes 500 --timeout 60s", "inodes")
		total := last(t, o, writableOf(t, o)+"devices 1 ends ENOSPC\ninodes ")
		if total > 500 || total < 480 {
			t.Errorf("%d files fit into 500 inodes", total)
		}
		held(t, o, "disk_inodes", 500, result.ByTmpfs)
	})
}

// writableOf checks the places, and returns their line.
func writableOf(t *testing.T, o testkit.Output) string {
	t.Helper()
	line, _, _ := strings.Cut(o.Stdout, "\n")
	if line += "\n"; line != writable {
		t.Errorf("%q can be written, want %q\n%s", line, writable, o.Stderr)
	}
	return line
}

// last is the number after a known beginning.
func last(t *testing.T, o testkit.Output, before string) int64 {
	t.Helper()
	text, ok := strings.CutPrefix(o.Stdout, before)
	if !ok {
		t.Fatalf("exit %d, %q does not begin with %q\n%s", o.Exit, o.Stdout, before, o.Stderr)
	}
	return number(t, text)
}

// A disk that is larger than the memory: the scratch is memory, and that limit
// ends the run.
func TestDiskAboveMemory(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := testkit.Sh(t, who, "head -c 150m /dev/zero >/tmp/x; sleep 5; echo FAIL", "--memory", "64m", "--disk", "200m", "--timeout", "60s")
		checkMemory(t, who, o, 64<<20)
	})
}

// The case as it was handed: every place, written, allocated and unlinked.
func TestDiskSum(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := script(t, who, "B12.py", "--disk 64m --memory 256m --timeout 60s")
		if !strings.HasSuffix(o.Stdout, "\ntotal 64 MB\nPASS\n") || o.Exit != 0 {
			t.Errorf("exit %d, %s%s", o.Exit, o.Stdout, o.Stderr)
		}
		// A watchdog's peak is sampled, and may miss the last moment of a run.
		if o.Result.Limits["memory"].EnforcedBy != result.ByWatchdog && o.Result.MemoryPeakBytes < 64<<20 {
			t.Errorf("memory_peak_bytes %d is without the scratch", o.Result.MemoryPeakBytes)
		}
	})
}
