package sandbox

import (
	"testing"

	"sandglass/pkg/policy"
	"sandglass/pkg/runtimes"
)

// TestWarmLanguages: what may be asked for is what can wait, and nothing that is
// bound to one run can.
func TestWarmLanguages(t *testing.T) {
	for _, l := range policy.WarmLanguages {
		if !runtimes.Waits(l) {
			t.Errorf("%s cannot wait", l)
		}
	}
	for i := range runtimes.Languages {
		l := runtimes.Languages[i].Name
		if s := Default(); (mayWait(&s, l) == nil) != runtimes.Waits(l) {
			t.Errorf("%s: %v", l, mayWait(&s, l))
		}
	}
	for name, change := range map[string]func(*Spec){
		"terminal": func(s *Spec) { s.TTY = true }, "hosts": func(s *Spec) { s.Hosts = []string{"a.example"} },
		"denials": func(s *Spec) { s.ExplainDenials = true }, "observed": func(s *Spec) { s.Observe = func(uint32, [6]uint64, bool) {} },
	} {
		s := Default()
		if change(&s); mayWait(&s, "") == nil {
			t.Errorf("%s can wait", name)
		}
	}
}
