package cli

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

// What a new user types first works, or is refused in words that help.
func TestNewcomer(t *testing.T) {
	testkit.Requires(t, "python3")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir := own(t, who)
		put(t, who, 0o644, "import helper\n", dir, "main.py")
		put(t, who, 0o644, "print('helper', __file__)\n", dir, "helper.py")
		o := testkit.Opts{Who: who, Dir: dir}
		for _, c := range []struct {
			name string
			o    testkit.Opts
			args []string
			want string
		}{
			{"modules beside a mounted script", o, []string{"-v", dir + ":/task", "--", "python3", "/task/main.py"}, "helper /task/helper.py\n"},
			{"a script of a mounted directory", o, []string{"-v", dir + ":/task", "main.py"}, "helper /task/helper.py\n"},
			{"a mount on /work", o, []string{"-v", ".:/work", "--", "python3", "main.py"}, "helper /work/helper.py\n"},
			{"a mount on /work is read-only", o, []string{"-v", ".:/work", "--", "sh", "-c", "pwd; touch x 2>/dev/null || echo no; touch /tmp/x && echo yes"}, "/work\nno\nyes\n"},
			{"the same mount twice", o, []string{"-v", ".:/task", "-v", dir + ":/task:ro", "--", "ls", "/task"}, "helper.py\nmain.py\n"},
			{"-- after the image", o, []string{"host", "--", "echo", "42"}, "42\n"},
			{"spaces in a list", o, []string{"--allow-degraded", "memory, cpu, pids", "--", "echo", "42"}, "42\n"},
			{"an empty PATH", testkit.Opts{Who: who, Dir: dir, Env: []string{"PATH="}}, []string{"-c", "print(42)", "--lang", "python"}, "42\n"},
		} {
			out := testkit.Run(t, c.o, c.args...)
			if out.Exit != 0 || out.Stdout != c.want || out.Stderr != "" {
				t.Errorf("%s: exit %d, stdout %q, stderr %q, want %q", c.name, out.Exit, out.Stdout, out.Stderr, c.want)
			}
		}
		// Without the mount the module is not there: the mount made the difference.
		if out := testkit.Run(t, o, "main.py"); out.Exit != 1 || !strings.Contains(out.Stderr, "No module named 'helper'") {
			t.Errorf("alone: exit %d, %q", out.Exit, out.Stderr)
		}
	})
}

// Each command has its help, by both ways to ask, and the version too.
func TestHelp(t *testing.T) {
	who := testkit.AsUser(t)
	say := func(args ...string) testkit.Output {
		return testkit.Run(t, testkit.Opts{Who: who, Verb: args[0]}, args[1:]...)
	}
	for _, verb := range []string{"run", "check", "plan", "version"} {
		a, b := say("help", verb), say(verb, "--help")
		if a.Exit != 0 || a.Stdout != b.Stdout || !strings.HasPrefix(a.Stdout, "usage: sandglass "+verb) || a.Stderr+b.Stderr != "" {
			t.Errorf("%s: exit %d, %q\n%q", verb, a.Exit, a.Stdout, b.Stdout)
		}
	}
	version := say("version")
	for _, flag := range []string{"--version", "-v"} {
		if out := say(flag); out.Exit != 0 || out.Stdout != version.Stdout || !strings.HasPrefix(out.Stdout, "sandglass ") {
			t.Errorf("%s: exit %d, %q", flag, out.Exit, out.Stdout)
		}
	}
	for _, c := range []struct {
		args, hints []string
		want        string
	}{
		{[]string{"ls", "-l"}, []string{"sandglass run -- ls -l   # to run it in a sandbox", "sandglass --help"}, `unknown command "ls"`},
		{[]string{"--memory", "1g"}, []string{"sandglass run --memory 1g", "sandglass run --help", "sandglass --help"}, `unknown flag "--memory": the flags of a run follow the word run`},
		{[]string{"-m", "1g", "run", "sh", "-c", "a b"}, []string{"sandglass run -m 1g sh -c 'a b'", "sandglass run --help", "sandglass --help"}, `unknown flag "-m": the flags of a run follow the word run`},
		{[]string{"sh", "-c", "a b"}, []string{"sandglass run -- sh -c 'a b'   # to run it in a sandbox", "sandglass --help"}, `unknown command "sh"`},
		{[]string{"/etc/passwd", "a b"}, []string{"sandglass run /etc/passwd 'a b'   # to run it in a sandbox", "sandglass --help"}, `unknown command "/etc/passwd"`},
		{[]string{"help", "nope"}, []string{"sandglass --help"}, `help: unknown command "nope"`},
		{[]string{"version", "x"}, []string{"sandglass version"}, `version: unknown argument "x"`},
	} {
		out := say(c.args...)
		if what, hints := complaint(t, out); out.Exit != 125 || what != c.want || !slices.Equal(hints, c.hints) {
			t.Errorf("%q: exit %d, %q, hints %q", c.args, out.Exit, what, hints)
		}
	}
}

// plan ends with what a run here would be refused for, every limit by its name, and
// with nothing where the run would go.
func TestPlanSaysWhatIsRefused(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := testkit.Opts{Who: who, Verb: "plan"}
		last := func(args ...string) string {
			out := testkit.Run(t, o, args...)
			if out.Exit != 0 || out.Stderr != "" {
				t.Errorf("exit %d, stderr %q", out.Exit, out.Stderr)
			}
			lines := strings.Split(strings.TrimSpace(out.Stdout), "\n")
			return strings.TrimSpace(lines[len(lines)-1])
		}
		for _, flags := range [][]string{{}, {"--allow-degraded", "memory"}, {"--allow-degraded", "cpu,memory"}} {
			flags = append(flags, "--", "true")
			run := testkit.Run(t, testkit.Opts{Who: who, Strict: true}, flags...)
			line := last(flags...)
			if refused := strings.HasPrefix(line, "a run here would be refused: "); refused != (run.Exit == 125) {
				t.Errorf("%q: the run ends with %d, the plan %q", flags, run.Exit, line)
			}
			if run.Exit != 125 {
				continue
			}
			_, hints := complaint(t, run)
			lacks := regexp.MustCompile(`--allow-degraded [a-z,]+`).FindAllString(hints[len(hints)-1], -1)
			if len(lacks) == 0 {
				t.Fatalf("the hints are %q", hints)
			}
			if want := " (" + lacks[len(lacks)-1] + " accepts weaker means)"; !strings.HasSuffix(line, want) {
				t.Errorf("%q: the plan ends %q, want %q", flags, line, want)
			}
		}
		if line := last("--allow-degraded", "memory,cpu,pids", "--", "true"); !strings.HasSuffix(line, " execve") {
			t.Errorf("the plan ends %q", line)
		}
	})
}

// The refusal of an ordinary user says first what they lack, and its hints can
// be pasted: they hold the caller's own words.
func TestHintsHoldTheCallersWords(t *testing.T) {
	who := testkit.AsUser(t)
	if !who.Limited() {
		out := testkit.Run(t, testkit.Opts{Who: who, Verb: "run"}, "--", "echo", "a b", "c")
		what, hints := complaint(t, out)
		// On v1 there can be none, on v2 it must be handed over.
		none, foreign := strings.HasPrefix(what, "memory limit: no control group of your own: "), strings.Contains(what, " limits: own cgroup ") && strings.Contains(what, " is not delegated to uid ")
		if out.Exit != 125 || !none && !foreign {
			t.Errorf("exit %d, %q", out.Exit, what)
		}
		if !slices.ContainsFunc(hints, func(h string) bool { return strings.HasSuffix(h, " sandglass run -- echo 'a b' c") }) {
			t.Errorf("hints %q", hints)
		}
		return
	}
	testkit.Skip(t, "a user without a control group", "one with a delegated group")
}
