package compat

import (
	"testing"

	"sandglass/internal/testkit"
)

var graphics = []program{
	{file: "imagemagick.sh", needs: "bash /usr/bin/convert", want: "PNG 32 32\nJPEG 32 32\n"},
	{file: "chromium.sh", needs: "bash chromium python3:PIL", flags: "--memory 512m --pids-limit 256", start: withArg("--no-sandbox"),
		want: "exit 0\n(64, 64) (0, 255, 0)\n"},
}

func TestGraphics(t *testing.T) { each(t, graphics) }

func withArg(arg string) func(*testing.T, testkit.Who, string) []string {
	return func(_ *testing.T, _ testkit.Who, file string) []string { return []string{file, arg} }
}

// TestChromiumOwnSandbox: it is made of what the filter refuses, user
// namespaces or a set-uid program, and Chromium does not start without one
// unless it is told to.
func TestChromiumOwnSandbox(t *testing.T) {
	testkit.Requires(t, "bash", "chromium")
	p := named(t, graphics, "chromium.sh")
	p.start = nil
	o := p.run(t, testkit.AsUser(t))
	if want := "exit 1\nNo usable sandbox\n"; o.Stdout != want {
		t.Errorf("stdout %q, want %q\nstderr: %s", o.Stdout, want, o.Stderr)
	}
}
