//go:build cgo

package parity

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandglass/internal/testkit"

	"github.com/opencontainers/runc/libcontainer/configs/validate"
	"github.com/opencontainers/runc/libcontainer/specconv"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// spec reads a bundle's config.json into the specification's own types. A key
// that they do not have is a misspelt one.
func spec(t *testing.T, bundle string) *specs.Spec {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(bundle, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	s := &specs.Spec{}
	if err := d.Decode(s); err != nil {
		t.Fatal(err)
	}
	return s
}

// valid is the judgement of runc's own translation and validator.
func valid(s *specs.Spec) error {
	config, err := specconv.CreateLibcontainerConfig(&specconv.CreateOpts{CgroupName: "parity", Spec: s})
	if err != nil {
		return err
	}
	return validate.Validate(config)
}

func TestRuncValidates(t *testing.T) {
	testkit.Requires(t, "root") // another user's runtime maps other ids
	for name, args := range flags {
		t.Run(name, func(t *testing.T) {
			dir := plan(t, testkit.AsRoot(t), args...)
			t.Chdir(dir) // where runc is when it looks
			if err := valid(spec(t, dir)); err != nil {
				t.Error(err)
			}
		})
	}
}

// The validator refuses what is wrong, so that its silence above means something.
func TestRuncValidatorRefuses(t *testing.T) {
	testkit.Requires(t, "root")
	dir := plan(t, testkit.AsRoot(t), flags["default"]...)
	t.Chdir(dir)
	for want, spoil := range map[string]func(*specs.Spec){
		"no such file":  func(s *specs.Spec) { s.Root.Path = "nowhere" },
		"UTS":           func(s *specs.Spec) { s.Linux.Namespaces = s.Linux.Namespaces[:5] },
		"MNT namespace": func(s *specs.Spec) { s.Linux.Namespaces = s.Linux.Namespaces[2:] },
		"valid action":  func(s *specs.Spec) { s.Linux.Seccomp.DefaultAction = "SCMP_ACT_FORGIVE" },
	} {
		s := spec(t, dir)
		spoil(s)
		if err := valid(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want one with %q", err, want)
		}
	}
}
