package policy

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/refusal"
)

// An image's settings are obeyed as docker has it, and each of them can be replaced.
func TestImageSettings(t *testing.T) {
	const set = "sha256:5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e"
	const bare = "sha256:babababababababababababababababababababababababababababababababa"
	own := []string{"PATH=/opt/bin", "A=image", "B=image"}
	for _, c := range []struct {
		line, image, dir string
		command, env     []string
	}{
		{"set", set, "/app", []string{"/entry", "-x", "cmd", "arg"}, own},
		{"set other", set, "/app", []string{"/entry", "-x", "other"}, own},
		{"set -- other", set, "/app", []string{"/entry", "-x", "other"}, own},
		{"-w /work set", set, "/work", []string{"/entry", "-x", "cmd", "arg"}, own},
		{"-e A=mine -e C=3 set", set, "/app", []string{"/entry", "-x", "cmd", "arg"}, []string{"PATH=/opt/bin", "A=mine", "B=image", "C=3"}},
		{"--entrypoint /e set", set, "/app", []string{"/e"}, own},
		{"--entrypoint /e set w", set, "/app", []string{"/e", "w"}, own},
		{"--entrypoint= set w x", set, "/app", []string{"w", "x"}, own},
		{"--image set -- w", set, "/app", []string{"/entry", "-x", "w"}, own},
		{"--image set", set, "/app", []string{"/entry", "-x", "cmd", "arg"}, own},
		{"bare sh -c x", bare, "/work", []string{"sh", "-c", "x"}, nil},
		{"python3 main.py", bare, "/work", []string{"main.py"}, nil}, // an image goes before a command of its name
		{"-- python3 main.py", "host", "/work", []string{"python3", "main.py"}, nil},
		{"host python3", "host", "/work", []string{"python3"}, nil},
		{"--entrypoint /e host w", "host", "/work", []string{"/e", "w"}, nil},
		{"--entrypoint /e ./root w", "/w/root", "/work", []string{"/e", "w"}, nil},
	} {
		p, err := testHost().Parse("run", words(c.line))
		if err != nil {
			t.Errorf("%s: %v", c.line, err)
			continue
		}
		s := &p.Spec
		if s.Image != c.image || s.Workdir != c.dir || !slices.Equal(s.Program.Command, c.command) || !slices.Equal(s.Env, c.env) || s.User != (User{65534, 65534}) {
			t.Errorf("%s: %s in %s, %q with %q as %v", c.line, s.Image, s.Workdir, s.Program.Command, s.Env, s.User)
		}
	}
	for line, want := range map[string]string{
		"bare":                "nothing to run: the image has no command of its own, and none follows",
		"--entrypoint= set":   "nothing to run: --entrypoint takes the place of the image's own command, and none follows",
		"--image none true":   `--image: "none" is neither host, a directory nor an image that was imported`,
		"broken true":         "image store /s: images/x: broken",
		"--image sha256:12 t": `--image: "sha256:12" is neither host, a directory nor an image that was imported`,
	} {
		_, err := testHost().Parse("run", words(line))
		var r *refusal.Error
		if !errors.As(err, &r) || r.What != want {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}

// A Spec of the API's must name a whole digest.
func TestImageOfASpec(t *testing.T) {
	s := Default()
	s.Program.Command = []string{"true"}
	s.Image = "sha256:" + strings.Repeat("a", 64)
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
	s.Image = "sha256:" + strings.Repeat("a", 63) + "/"
	if err := s.Validate(); err == nil {
		t.Error("a digest with a slash is taken")
	}
}
