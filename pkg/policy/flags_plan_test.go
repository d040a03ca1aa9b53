package policy

import (
	"strings"
	"testing"
)

// The flags that only plan has: run refuses them, for it writes no bundle.
func TestPlanFlags(t *testing.T) {
	h := OSHost()
	h.Getwd = func() (string, error) { return "/w", nil }
	p, err := h.Parse("plan", []string{"--oci", "--bundle", "b/../c", "--", "true"})
	if err != nil || !p.OCI || p.Bundle != "/w/c" {
		t.Errorf("got %t %q %v", p.OCI, p.Bundle, err)
	}
	for want, c := range map[string]struct {
		command string
		args    []string
	}{
		`unknown flag "--oci"`:                       {"run", []string{"--oci", "--", "true"}},
		`unknown flag "--bundle"`:                    {"run", []string{"--bundle=b", "--", "true"}},
		"--json and --oci are two forms of one plan": {"plan", []string{"--json", "--bundle", "b", "--", "true"}},
		"--bundle: the value is empty":               {"plan", []string{"--bundle=", "--", "true"}},
	} {
		if _, err := h.Parse(c.command, c.args); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v: %v, want %q", c.args, err, want)
		}
	}
}
