package escape

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	profiles "sandglass/seccomp-profiles"
)

// learning runs "profile learn" for a C program.
func learning(t *testing.T, who testkit.Who, out string, flags []string, source string, args ...string) testkit.Output {
	t.Helper()
	list := slices.Concat([]string{"learn"}, who.Flags(), []string{"--timeout", "60s", "-o", out}, flags,
		[]string{"-v", testkit.C(t, source) + ":" + testkit.Inside, "--", testkit.Inside}, args)
	return testkit.Run(t, testkit.Opts{Who: who, Verb: "profile"}, list...)
}

// While sandglass learns, what the default profile refuses is refused with the
// same errno, and the profile that comes out allows none of it.
func TestLearningRefusesTheSame(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir := ownDir(t, who)
		calls := refusedCalls()
		var ops []string
		var want strings.Builder
		for _, c := range calls {
			ops = append(ops, c.op)
			want.WriteString(c.op + " " + c.want + "\n")
		}
		o := learning(t, who, filepath.Join(dir, "p.json"), nil, trySource, ops...)
		if o.Exit != 0 || o.Stdout != want.String() {
			t.Fatalf("exit %d\n%s\nwant\n%s\nstderr: %s", o.Exit, o.Stdout, want.String(), o.Stderr)
		}
		compiled(t, who, dir)
		attempt(t, who, []string{"--seccomp", dir + "/p.bpf"}, calls)
	})
}

// What was learned of a program runs that program and nothing that it did not
// do; learning it again gives the same bytes; a file is never replaced unasked;
// --merge adds.
func TestLearnedProfileRunsTheProgram(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir := ownDir(t, who)
		out := filepath.Join(dir, "p.json")
		did := []string{"mkdir:/tmp/a", "socket:1:1:0"}
		answers := "mkdir:/tmp/a OK\nsocket:1:1:0 OK\n"
		if o := learning(t, who, out, nil, trySource, did...); o.Exit != 0 || o.Stdout != answers {
			t.Fatalf("exit %d, %q, %s", o.Exit, o.Stdout, o.Stderr)
		}
		first := content(t, out)
		o := learning(t, who, out, nil, trySource, did...)
		if want := "sandglass: error: --output: \"" + out + "\" is there already\nhint: --merge " + out + "   # to add to it\n"; o.Exit != 125 || o.Stderr != want {
			t.Errorf("a file that is there: exit %d, %q, want 125 and %q", o.Exit, o.Stderr, want)
		}
		other := filepath.Join(dir, "q.json")
		if o := learning(t, who, other, nil, trySource, did...); o.Exit != 0 || content(t, other) != first {
			t.Errorf("learned again: exit %d\n%s\nwant\n%s", o.Exit, content(t, other), first)
		}
		compiled(t, who, dir)
		tries := []try{{"mkdir:/tmp/a", "OK"}, {"socket:1:1:0", "OK"}, {"socket:2:1:0", "EAFNOSUPPORT"}, {"unlink:/tmp/x", "ENOSYS"}, {"socket:1:2:0", "EAFNOSUPPORT"}}
		attempt(t, who, []string{"--seccomp", dir + "/p.bpf"}, tries)

		if o := learning(t, who, out, []string{"--merge", out}, trySource, "unlink:/tmp/x", "socket:2:1:0"); o.Exit != 0 {
			t.Fatalf("--merge: exit %d, %s", o.Exit, o.Stderr)
		}
		os.Remove(dir + "/p.bpf")
		compiled(t, who, dir)
		tries[2].want, tries[3].want = "OK", "ENOENT"
		attempt(t, who, []string{"--seccomp", dir + "/p.bpf"}, tries)
	})
}

// What is added to a profile of somebody else's is never more than the default
// one allows either: an earlier program could have written it.
func TestLearningAddsToNothingWider(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir := ownDir(t, who)
		wide, out := filepath.Join(dir, "wide.json"), filepath.Join(dir, "out.json")
		if err := os.WriteFile(wide, []byte(profiles.Source("debug")), 0o644); err != nil {
			t.Fatal(err)
		}
		o := learning(t, who, out, []string{"--merge", wide}, trySource, "mkdir:/tmp/a")
		want := "sandglass: error: --merge: " + wide + " allows more than the default profile, and so would what is learned\nhint: sandglass profile diff default " + wide + "   # what it is\n"
		if o.Exit != 125 || o.Stderr != want || o.Stdout != "" {
			t.Errorf("exit %d, %q, stdout %q", o.Exit, o.Stderr, o.Stdout)
		}
		if _, err := os.Lstat(out); err == nil {
			t.Error("a profile was written")
		}
	})
}

// ownDir is a directory of that user's.
func ownDir(t *testing.T, who testkit.Who) string {
	t.Helper()
	dir := testkit.Dir(t)
	if who.UID != 0 {
		if err := os.Chown(dir, who.UID, who.GID); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// compiled makes p.bpf of p.json.
func compiled(t *testing.T, who testkit.Who, dir string) {
	t.Helper()
	o := testkit.Run(t, testkit.Opts{Who: who, Verb: "profile", Dir: dir}, "compile", "p.json")
	if o.Exit != 0 {
		t.Fatalf("profile compile: exit %d, %s", o.Exit, o.Stderr)
	}
}

func content(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
