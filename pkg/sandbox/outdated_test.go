package sandbox_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"sandglass/internal/testkit"
	"sandglass/pkg/policy"
	"sandglass/pkg/sandbox"
)

// TestOutdated: a run that has something of its own is no reason to doubt the sandboxes
// that wait; one that has nothing and fits none of them is.
func TestOutdated(t *testing.T) {
	testkit.Requires(t, "python3")
	dir := filepath.Join(t.TempDir(), "dir")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	spec := sandbox.Default()
	spec.Mounts = []policy.Mount{{Source: dir, Target: "/m"}}
	python := policy.Program{Lang: "python", Code: []byte("1\n")}
	shell := policy.Program{Lang: "sh", Code: []byte("true\n")}
	args := python
	args.Args = []string{"x"}
	held := map[string]*sandbox.Held{}
	for _, lang := range []string{"", "python"} {
		h, err := sandbox.Prepare(t.Context(), spec, lang, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		held[lang] = h
	}
	type answer struct{ fits, outdated bool }
	runs := []struct {
		name                                     string
		p                                        policy.Program
		env                                      []string
		files                                    []policy.File
		memory                                   int64
		command, python, commandThen, pythonThen answer
	}{
		{name: "command", p: policy.Program{Command: []string{"true"}}, command: answer{true, false}, commandThen: answer{false, true}},
		{name: "sh", p: shell, command: answer{true, false}, commandThen: answer{false, true}},
		{name: "python", p: python, command: answer{true, false}, python: answer{true, false}, commandThen: answer{false, true}, pythonThen: answer{false, true}},
		{name: "args", p: args, command: answer{true, false}, commandThen: answer{false, true}},
		{name: "env", p: python, env: []string{"A=b"}, command: answer{true, false}, commandThen: answer{false, true}},
		{name: "files", p: python, files: []policy.File{{Name: "f", Content: []byte("x")}}, command: answer{true, false}, commandThen: answer{false, true}},
		{name: "memory", p: python, memory: 1 << 26},
	}
	for replaced := false; ; replaced = true {
		for _, r := range runs {
			s := spec
			s.Program, s.Env, s.Files = r.p, r.env, r.files
			if r.memory > 0 {
				s.Limits.Memory = r.memory
			}
			a, err := sandbox.Plan(s)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]answer{"": r.command, "python": r.python}
			if replaced {
				want = map[string]answer{"": r.commandThen, "python": r.pythonThen}
			}
			for lang, h := range held {
				if got := (answer{h.Fits(a), h.Outdated(a)}); got != want[lang] {
					t.Errorf("%s for %q, source replaced %t: %+v, want %+v", r.name, lang, replaced, got, want[lang])
				}
			}
			a.Close()
		}
		if replaced {
			break
		}
		if err := os.Rename(dir, dir+"-old"); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}
