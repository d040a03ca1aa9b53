package launch

import (
	"testing"

	"sandglass/internal/refusal"
)

// TestLives: what does not end is told, whether the run waited for its end or not.
func TestLives(t *testing.T) {
	s := &session{end: &Ending{}, stuck: true}
	if s.finish(); !s.end.Lives {
		t.Error("a run that is over without its sandbox's end")
	}
	for _, left := range []*refusal.Error{nil, refusal.Newf(livesOn)} {
		gone := make(chan *refusal.Error, 1)
		gone <- left
		e := &Ending{gone: gone}
		if got := e.Wait(); got != left || e.Lives != (left != nil) {
			t.Errorf("%v: %v, lives %v", left, got, e.Lives)
		}
	}
}
