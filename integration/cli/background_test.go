package cli

import (
	"os/exec"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

// A job in the background cannot read its terminal: that is the end of its
// stdin, and not a supervisor that is stopped, with a program that runs on.
func TestBackgroundJobReadsNoTerminal(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		master, slave := testkit.PTY(t)
		defer master.Close()
		defer slave.Close()
		o := testkit.Run(t, testkit.Opts{Who: who, Setup: func(cmd *exec.Cmd) {
			// The shell leads the session and stays in the foreground.
			cmd.Args = append([]string{"sh", "-mc", `"$@" <&0 & wait $!`, "sh"}, cmd.Args...)
			cmd.Path = "/bin/sh"
			cmd.Stdin = slave
			cmd.SysProcAttr.Setsid, cmd.SysProcAttr.Setctty = true, true
		}}, "-i", "--timeout", "60s", "--", "sh", "-c", "cat; echo read all")
		if o.Result.Outcome != result.Exited || o.Exit != 0 || o.Stdout != "read all\n" {
			t.Errorf("%s, exit %d, stdout %q, stderr %q", o.Result.Outcome, o.Exit, o.Stdout, o.Stderr)
		}
	})
}
