package limits

import (
	"fmt"
	"strconv"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

// The limit counts the program's own processes and threads, all of them and
// nothing else: not init's threads, not those of a neighbour with the same id.
func TestPidsExact(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for _, n := range []int64{1, 2, 5, 64, 300} {
			for _, op := range []string{"forks", "threads"} {
				o := hog(t, who, fmt.Sprintf("--pids-limit %d --timeout 60s", n), op)
				ended(t, o, result.Exited, 0, fmt.Sprintf("tasks %d\n", n))
				held(t, o, "pids", n, by(who, result.ByRlimit))
				kernelSays(t, who, o, "pids.max", strconv.FormatInt(n, 10))
				if who.Limited() && o.Result.PidsPeak != 0 && o.Result.PidsPeak != n { // 0: before Linux 6.1
					t.Errorf("pids_peak %d, want %d", o.Result.PidsPeak, n)
				}
			}
		}
	})
}

func TestPidsWithoutProc(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := hog(t, who, "--pids-limit 20 --proc none", "forks")
		ended(t, o, result.Exited, 0, "tasks 20\n")
	})
}

// A box at its limit takes nothing from its neighbour.
func TestPidsNeighbour(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		full := startHog(t, who, "--pids-limit 64 --timeout 60s", "hold")
		full.WaitLine("tasks 64")
		ended(t, hog(t, who, "--pids-limit 64", "forks"), result.Exited, 0, "tasks 64\n")
		full.Kill()
	})
}

// What has ended does not count: neither waited for, nor left to init.
func TestPidsOfTheDead(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		ended(t, hog(t, who, "--pids-limit 8 --timeout 60s", "churn 200"), result.Exited, 0, "churned 200\n")
	})
}

func TestForkBomb(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := script(t, who, "B01.py", "--pids-limit 64 --timeout 60s")
		ended(t, o, result.Exited, 0, "fork refused: EAGAIN\nmade 63 PASS\n")
	})
}
