package sandbox

import (
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/hostid"
	"sandglass/pkg/launch"
	"sandglass/pkg/plan"
)

// TestIDOfWhatLivesIsKept: the id of a sandbox that does not end is no other's.
func TestIDOfWhatLivesIsKept(t *testing.T) {
	testkit.Requires(t, "root")
	for name, release := range map[string]func(r *runner, end *launch.Ending){
		"run": func(r *runner, end *launch.Ending) { r.end = end; r.release() },
		"one that waited": func(r *runner, end *launch.Ending) {
			(&Held{runner: r, plan: &plan.Plan{}, stop: func() {}, end: end}).Close()
		},
	} {
		for _, lives := range []bool{true, false} {
			id, err := hostid.Take(hostid.Count/2 - 97) // where no run begins to look
			if err != nil {
				t.Fatal(err)
			}
			release(&runner{id: id}, &launch.Ending{Lives: lives})
			next, err := hostid.Take(id.N - hostid.First)
			if err != nil {
				t.Fatal(err)
			}
			if kept := next.N != id.N; kept != lives {
				t.Errorf("%s: it lives %v, its id is kept %v", name, lives, kept)
			}
			next.Release()
			if lives {
				id.Release()
			}
		}
	}
}
