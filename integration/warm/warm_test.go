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

// suites are the packages and which of their tests: one for each layer. All of
// them run that way with SANDGLASS_TEST_MODE=warm by hand.
var suites = []struct{ pkg, run string }{
	{"escape", "^Test(RootIsReadOnly|MountAttributes|HostFilesAreNotThere|EtcIsSynthetic|ReadOnlyMountStaysSo|NetworkIsLoopbackAlone|LoopbackWorksInside|" +
		"SocketFamilies|SystemCallsAreRefused|NoNewNamespaces|ProcIsMasked|ProcessesOfTheHostAreUnseen|InitCannotBeTakenOver|NoSignalFromInsideReachesInit|" +
		"EveryThreadOfInitIsConfined|HostBinaryCannotBeWritten|CallersEnvironmentIsNotPassed|CallersDescriptorsAreClosed|WorkingDirectoryStaysInside|" +
		"NeighboursAreApart|LandlockIsReported|HostileArtefacts|ForkBombIsStopped|MemoryOfTheTreeIsStopped|ResultsAreOutOfTheProgramsReach)$"},
}

func TestSuites(t *testing.T) {
	testkit.Requires(t, "go")
	if testing.Short() || testkit.Warm() || os.Getenv(testkit.EnvBinary) != "" {
		testkit.Skip(t, "a build of its own", "another binary")
	}
	for _, s := range suites {
		t.Run(s.pkg, func(t *testing.T) {
			cmd := exec.Command("go", "test", "-count=1", "-v", "-run", s.run, "./integration/"+s.pkg)
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
