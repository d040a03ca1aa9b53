package compat

import (
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

// refused are commands that do not work, with what they say. They end by
// themselves and at once: a refusal is no hang and no kill.
var refused = []struct {
	name, needs, command string
	exit                 int
	says                 string
}{
	{"strace", "strace", "strace -f true", 1, "PTRACE_TRACEME, ...): Operation not permitted"},
	{"unshare", "unshare", "unshare -Ur true", 1, "unshare: unshare failed: Operation not permitted"},
	{"mount", "mount", "mount -t tmpfs x /work", 32, "must be superuser to use mount"},
	{"curl", "curl", "curl -sS http://example.invalid", 6, "Could not resolve host: example.invalid"},
}

func TestRefused(t *testing.T) {
	for _, c := range refused {
		t.Run(c.name, func(t *testing.T) {
			testkit.Requires(t, c.needs)
			testkit.Each(t, func(t *testing.T, who testkit.Who) {
				o := testkit.Run(t, testkit.Opts{Who: who}, append([]string{"--timeout", "60s", "--"}, strings.Fields(c.command)...)...)
				if o.Exit != c.exit || o.Result.Outcome != result.Exited || !strings.Contains(o.Stderr, c.says) {
					t.Errorf("exit %d, outcome %q, want %d\nstderr %q, want %q", o.Exit, o.Result.Outcome, c.exit, o.Stderr, c.says)
				}
			})
		})
	}
}
