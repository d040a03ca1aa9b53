package testkit

import (
	"strings"
	"testing"
)

func TestMain(m *testing.M) { Main(m) }

func TestRunBothIdentities(t *testing.T) {
	Requires(t, "userns")
	Each(t, func(t *testing.T, who Who) {
		o := Sh(t, who, "echo out; echo err >&2; exit 7")
		if o.Exit != 7 || o.Stdout != "out\n" || o.Stderr != "err\n" {
			t.Fatalf("exit %d, stdout %q, stderr %q", o.Exit, o.Stdout, o.Stderr)
		}
		if !o.HasResult || o.Result.ExitCode != 7 || o.Result.Outcome != "exited" {
			t.Fatalf("result: %+v", o.Result)
		}
	})
}

func TestWaitLine(t *testing.T) {
	Requires(t, "userns")
	p := Start(t, Opts{Who: AsUser(t)}, "--", "sh", "-c", "echo ready 5; exec sleep 1000")
	if got := p.WaitLine("ready"); got != "ready 5" {
		t.Fatalf("line %q", got)
	}
	p.Kill()
	if o := p.Wait(); o.Exit != 137 {
		t.Fatalf("exit %d", o.Exit)
	}
}

func TestSkipNamesWhatIsMissing(t *testing.T) {
	t.Run("inner", func(t *testing.T) {
		t.Cleanup(func() {
			if !t.Skipped() {
				t.Error("not skipped")
			}
		})
		Requires(t, "no-such-command")
	})
	found := false
	for _, s := range Skips() {
		found = found || strings.HasPrefix(s, "SKIP(want no-such-command, have no no-such-command on PATH) ")
	}
	if !found {
		t.Fatalf("skips: %q", Skips())
	}
	skips.list = skips.list[:len(skips.list)-1] // not one of the host's
}
