package escape

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

// Init has the ordinary personality as well, whatever the caller's is.
func TestPersonalityOfInit(t *testing.T) {
	testkit.Requires(t, "setarch")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		l := hold(t, testkit.Opts{Who: who, Setup: through("setarch", "-R", "-I", "-S")}, "true")
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/personality", l.init))
		if err != nil || string(text) != "00000000\n" {
			t.Errorf("%q, %v", text, err)
		}
	})
}

// A caller that had randomization off, as a shell in a debugger has, does not pass
// it on: the program's addresses are another run's no more than ever.
func TestAddressesAreChosenAtRandom(t *testing.T) {
	testkit.Requires(t, "setarch")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		const show = "cat /proc/self/personality; grep -F '[stack]' /proc/self/maps"
		var seen [2]string
		for i := range seen {
			o := testkit.Run(t, testkit.Opts{Who: who, Setup: through("setarch", "-R")}, "--", "sh", "-c", show)
			personality, stack, _ := strings.Cut(o.Stdout, "\n")
			if o.Exit != 0 || personality != "00000000" || !strings.Contains(stack, " rw-p ") {
				t.Errorf("exit %d, %q, %s", o.Exit, o.Stdout, o.Stderr)
			}
			seen[i], _, _ = strings.Cut(stack, " ")
		}
		if seen[0] == seen[1] {
			t.Errorf("two runs have their stack at %s", seen[0])
		}
	})
}
