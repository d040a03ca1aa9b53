package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/policy"
	"sandglass/pkg/result"
	"sandglass/pkg/sandbox"
)

// apiSpec is a run of the Go API in this process, with the real binary as init.
func apiSpec(t *testing.T, argv ...string) sandbox.Spec {
	t.Helper()
	s := sandbox.Default()
	s.InitPath = testkit.Binary(t)
	s.Program.Command = argv
	if flags := ownWho(t).Flags(); len(flags) > 0 {
		s.AllowDegraded = strings.Split(flags[1], ",")
	}
	return s
}

func ownWho(t *testing.T) testkit.Who {
	t.Helper()
	if os.Geteuid() == 0 {
		return testkit.AsRoot(t)
	}
	return testkit.AsUser(t)
}

// What no command line can carry: the Go API refuses it as it refuses the rest.
func TestAPIRefusals(t *testing.T) {
	dir := own(t, ownWho(t))
	for _, c := range []struct {
		name   string
		change func(*sandbox.Spec)
		exit   int
		want   string
	}{
		{"NUL in an argument", func(s *sandbox.Spec) { s.Program.Command = []string{"echo", "a\x00b"} }, 125, "argument 1 has a NUL byte"},
		{"NUL in the command", func(s *sandbox.Spec) { s.Program.Command = []string{"ec\x00ho"} }, 125, "argument 0 has a NUL byte"},
		{"NUL in a variable", func(s *sandbox.Spec) { s.Env = []string{"A=b\x00c"} }, 125, `--env: variable "A" has a NUL byte`},
		{"NUL in a mount", func(s *sandbox.Spec) { s.Mounts = []policy.Mount{{Source: dir + "\x00", Target: "/x"}} }, 125,
			`--volume: source "` + dir + `\x00" has a control character`},
		{"one argument of 128 KiB", func(s *sandbox.Spec) { s.Program.Command = []string{"echo", strings.Repeat("x", 128<<10)} }, 126,
			"argument list too long: argument 1 is 131072 bytes, at most 131071"},
		{"nothing", func(s *sandbox.Spec) { s.Program.Command = nil }, 125, "nothing to run"},
		{"empty command", func(s *sandbox.Spec) { s.Program.Command = []string{""} }, 125, "the command's name is empty"},
		{"a command and code", func(s *sandbox.Spec) { s.Program.Code, s.Program.Lang = []byte("x"), "sh" }, 125,
			"a command, code and a file exclude each other"},
		{"zero Spec", func(s *sandbox.Spec) { s.Spec = policy.Spec{} }, 125, ""},
		{"zero memory", func(s *sandbox.Spec) { s.Limits.Memory = 0 }, 125, ""},
		{"no Init", func(s *sandbox.Spec) { s.InitPath = "" }, 125, "sandbox.Init was not called at the start of main, and no InitPath is set"},
	} {
		s := apiSpec(t, "true")
		c.change(&s)
		res, err := sandbox.Run(context.Background(), s)
		var refused *sandbox.Error
		if !errors.As(err, &refused) {
			t.Errorf("%s: %v is no refusal", c.name, err)
			continue
		}
		if c.want != "" && refused.What != c.want || refused.Exit != c.exit {
			t.Errorf("%s: exit %d, %s\nwant %d, %s", c.name, refused.Exit, refused.What, c.exit, c.want)
		}
		if res.Outcome != result.Refused || res.ExitCode != c.exit || res.Error != refused.What {
			t.Errorf("%s: result %s %d %q", c.name, res.Outcome, res.ExitCode, res.Error)
		}
		if left := testkit.CgroupsLeft(t, os.Getpid()); len(left) > 0 {
			t.Errorf("%s: cgroups are left: %q", c.name, left)
		}
	}
}

// Runs of one process at the same time do not mix their output, results or ids.
func TestAPIConcurrentRuns(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			s := apiSpec(t, "sh", "-c", fmt.Sprintf("echo out%d; echo err%d >&2; exit %d", i, i, i))
			res, err := sandbox.Run(context.Background(), s)
			if err != nil || res.ExitCode != i || res.Stdout.Text != fmt.Sprintf("out%d\n", i) || res.Stderr.Text != fmt.Sprintf("err%d\n", i) {
				t.Errorf("%d: %v exit %d %q %q", i, err, res.ExitCode, res.Stdout.Text, res.Stderr.Text)
			}
		})
	}
	wg.Wait()
	if left := testkit.CgroupsLeft(t, os.Getpid()); len(left) > 0 {
		t.Errorf("cgroups are left: %q", left)
	}
}

// The end of ctx brings what was written until then; Abort ends that as well,
// and says so.
func TestAPICanceledCollection(t *testing.T) {
	for _, abort := range []bool{false, true} {
		dir := own(t, ownWho(t))
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		s := apiSpec(t, "sh", "-c", "echo half >/out/log; echo ready; sleep 1000")
		s.Out, s.Stdout = dir, w
		if abort {
			stop := make(chan struct{})
			close(stop)
			s.Abort = stop
		}
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			r.Read(make([]byte, 6)) // "ready"
			cancel()
		}()
		res, err := sandbox.Run(ctx, s)
		cancel()
		w.Close()
		var lost *sandbox.Incomplete
		switch {
		case res.Outcome != result.Canceled || res.ExitCode != 130:
			t.Errorf("abort %v: %s %d", abort, res.Outcome, res.ExitCode)
		case !abort && (err != nil || len(res.Artifacts) != 1 || res.Artifacts[0].SHA256 != sum("half\n")):
			t.Errorf("not aborted: %v, %+v", err, res.Artifacts)
		case abort && (!errors.As(err, &lost) || lost.What != "--out "+dir+": the collection was interrupted" || res.Error != lost.What):
			t.Errorf("aborted: %v, %q", err, res.Error)
		}
	}
}
