package cli

import (
	_ "embed"
	"os/exec"
	"testing"

	"sandglass/internal/testkit"
)

//go:embed testdata/listened.c
var listenedSource string

// Where an outer container has a listener already, a run that explains is
// refused by name, and any other one works.
func TestOuterListener(t *testing.T) {
	testkit.Requires(t, "userns")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		outer := testkit.C(t, listenedSource)
		o := testkit.Opts{Who: who, Setup: func(cmd *exec.Cmd) {
			cmd.Args = append([]string{outer, cmd.Path}, cmd.Args[1:]...)
			cmd.Path = outer
		}}
		got := testkit.Run(t, o, "--explain-denials", "--", "true")
		want := "sandglass: error: init: start program: seccomp: device or resource busy (an outer container listens to system calls already, " +
			"and the kernel has one listener for a process)\nhint: leave --explain-denials out\n"
		if got.Exit != 125 || got.Stderr != want {
			t.Errorf("exit %d, %q, want 125 and %q", got.Exit, got.Stderr, want)
		}
		if got := testkit.Run(t, o, "--", "echo", "hi"); got.Exit != 0 || got.Stdout != "hi\n" {
			t.Errorf("without the flag: exit %d, %q, %q", got.Exit, got.Stdout, got.Stderr)
		}
	})
}
