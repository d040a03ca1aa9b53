package policy

import (
	"slices"
	"testing"

	"sandglass/internal/refusal"
)

// A hint of a layer that knows nothing of the line gets what the line has, once.
func TestHinted(t *testing.T) {
	hints := []string{
		"sandglass run -v \"$PWD:/task:ro\" -- COMMAND /task/FILE", "PATH=DIR:$PATH sandglass run FILE   # in DIR", "sandglass run host COMMAND",
		"sandglass run --allow-degraded memory -- ls", "sandglass run --image y -- ls", "ls -l -- 'sandglass run'", "chmod +x /a",
	}
	s := Default()
	given := func(entrypoint bool) []string {
		e := refusal.Newf("x")
		e.Hints = slices.Clone(hints)
		return s.Hinted(e, entrypoint).(*refusal.Error).Hints
	}
	if got := given(true); got[1] != hints[1] || got[0] != `sandglass run --entrypoint '' -v "$PWD:/task:ro" -- COMMAND /task/FILE` {
		t.Errorf("%q", got)
	}
	s.AllowDegraded, s.Image, s.ImageName = []string{"memory", "cpu"}, "sha256:1", "x"
	const run = "sandglass run --allow-degraded memory,cpu "
	want := []string{
		run + "--image x -v \"$PWD:/task:ro\" -- COMMAND /task/FILE", "PATH=DIR:$PATH " + run + "--image x FILE   # in DIR", run + "host COMMAND",
		hints[3], hints[4], hints[5], hints[6],
	}
	if got := given(false); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if s.Hinted(nil, true) != nil {
		t.Error("no refusal became one")
	}
}
