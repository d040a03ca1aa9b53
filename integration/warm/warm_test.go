// Package warm runs tests of other packages once more, with each run in a sandbox
// that was made before its program, as session --warm has them.
package warm

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// suites are the packages, without the tests that take more than two seconds each
// or that change the binary themselves. All of them run that way with
// SANDGLASS_TEST_MODE=warm by hand.
var suites = []struct{ pkg, without string }{
	{"escape", "^Test(ReadBackFindsMutants|FloodOfRefusals|LandlockAloneStopsAWrite|SourceSwappedWhileStarting|MountTargetSwappedWhileStarting)$"},
	{"limits", "^Test(ResultCostsNoMemory|StopSignalsOfTheTerminal|StdinIsNeverRead|CPURate|MemoryShared|ThreadWithDescriptorsOfItsOwn|ThreadsInARelay|" +
		"WeakerCPUs|NeighbourKeepsItsShare|CrowdIsNice|MemoryThatNoCgroupCounts|Vfork|KillAll|IOThrottles|OutputFlood|ReaderIsLate|CPUTimeOfChildren|" +
		"TimeoutOfAStoppedSupervisor|CPUTimeWays|TimeoutDaemon|Timeout|WeakerMemory|ReaderOfTheResultIsStuck|ReaderIsStuck|TimeoutOfMany)$"},
}

func TestSuites(t *testing.T) {
	testkit.Requires(t, "go")
	if testing.Short() || testkit.Warm() || os.Getenv(testkit.EnvBinary) != "" {
		testkit.Skip(t, "a build of its own", "another binary")
	}
	for _, s := range suites {
		t.Run(s.pkg, func(t *testing.T) {
			cmd := exec.Command("go", "test", "-count=1", "-v", "-skip", s.without, "./integration/"+s.pkg)
			cmd.Dir, cmd.Env = testkit.Root(t), append(os.Environ(), testkit.EnvMode+"=warm")
			text, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, text)
			}
			_, line, _ := strings.Cut(string(text), "\nwarm: ")
			var warm, all int
			if n, _ := fmt.Sscanf(line, "%d of %d runs", &warm, &all); n != 2 || warm < all/2 || warm == 0 {
				t.Errorf("%d of %d runs were warm\n%s", warm, all, text)
			}
			t.Logf("%d of %d runs were warm", warm, all)
		})
	}
}
