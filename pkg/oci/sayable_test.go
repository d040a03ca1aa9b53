package oci

import (
	"strings"
	"testing"

	"sandglass/pkg/plan"
	"sandglass/pkg/policy"
)

// A byte that is no UTF-8 would become another character, and with it another
// program, argument or mount.
func TestWordsThatJSONCannotSay(t *testing.T) {
	for _, change := range []func(*policy.Spec){
		func(s *policy.Spec) { s.Program.Command = []string{"true", "a\xff"} },
		func(s *policy.Spec) { s.Env = []string{"A=\xff"} },
	} {
		s := policy.Default()
		s.Program.Command = []string{"true"}
		change(&s)
		p, err := plan.Build(s)
		if err != nil {
			t.Fatal(err)
		}
		b, err := New(p)
		if err == nil {
			b.Close()
			t.Error("it is said")
		} else if p.Close(); !strings.Contains(err.Error(), "is not UTF-8, which JSON cannot say") {
			t.Error(err)
		}
	}
}
