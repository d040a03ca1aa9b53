package testkit

import (
	"fmt"
	"os"
	"sync/atomic"
)

// EnvMode is warm for tests of runs in sandboxes that were made before their
// program is handed over, as session --warm has them. Everything that a test
// expects of a run is expected of those as well.
const EnvMode = "SANDGLASS_TEST_MODE"

// Warm says whether that is the mode.
func Warm() bool { return os.Getenv(EnvMode) == "warm" }

var warmRuns, allRuns atomic.Int64

func countWarm(warm bool) {
	allRuns.Add(1)
	if warm {
		warmRuns.Add(1)
	}
}

// tellWarm says in that mode how many runs were such: TestSuites of
// integration/warm looks at it.
func tellWarm() {
	if Warm() {
		fmt.Printf("warm: %d of %d runs\n", warmRuns.Load(), allRuns.Load())
	}
}
