package cli

import (
	"os"
	"os/exec"
	"syscall"
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

// Under nohup(1), and in the background of a script, the signals that do not
// count there end no run; others do.
func TestIgnoredSignalsStayIgnored(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		defer w.Close()
		p := testkit.Start(t, testkit.Opts{Who: who, Stdin: r, Setup: func(cmd *exec.Cmd) {
			cmd.Args = append([]string{"sh", "-c", `trap "" HUP INT; exec "$@"`, "sh"}, cmd.Args...)
			cmd.Path = "/bin/sh"
		}}, "-i", "--timeout", "60s", "--", "sh", "-c", `trap "echo own" HUP; kill -HUP $$; echo up; read x; echo $x; sleep 1000`)
		p.WaitLine("own") // the program's are its own
		p.WaitLine("up")
		p.Signal(syscall.SIGHUP)
		p.Signal(syscall.SIGINT)
		if _, err := w.WriteString("still here\n"); err != nil {
			t.Fatal(err)
		}
		p.WaitLine("still here")
		p.Signal(syscall.SIGTERM)
		if o := p.Wait(); o.Exit != 143 || o.Result.Outcome != result.Canceled {
			t.Errorf("exit %d, %q", o.Exit, o.Result.Outcome)
		}
	})
}
