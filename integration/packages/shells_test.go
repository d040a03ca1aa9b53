package packages

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sandglass/internal/testkit"
)

// output is what a shell prints; it may complain of nothing.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + testkit.Dir(t), "LANG=C.UTF-8"}
	cmd.Dir = testkit.Dir(t)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	text, err := cmd.Output()
	if err != nil || complaints.Len() > 0 {
		t.Errorf("%s %q: %v\n%s", name, args, err, complaints.String())
	}
	return string(text)
}

func lines(text string) []string {
	return slices.DeleteFunc(strings.Split(text, "\n"), func(s string) bool { return s == "" })
}

// askBash calls the function as bash does for the last of the words.
const askBash = `. "$1"; shift
[ "$(complete -p sandglass)" = 'complete -F _sandglass sandglass' ] || exit 3
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_sandglass
printf '%s\n' "${COMPREPLY[@]}"`

func TestBash(t *testing.T) {
	testkit.Requires(t, "bash")
	file, _, _ := completions(t)
	output(t, "bash", "-n", file)
	ask := func(words ...string) []string {
		return lines(output(t, "bash", append([]string{"--norc", "-uc", askBash, "bash", file, "sandglass"}, words...)...))
	}
	offered(t, ask)
	// A value is no flag and no program, and behind the program nothing is ours.
	for words, want := range map[string][]string{
		"run --mem":                       {"--memory", "--memory-swap"},
		"run -q --mem":                    {"--memory", "--memory-swap"},
		"run --memory 1g --time":          {"--timeout"},
		"run --memory = 1g --time":        {"--timeout"},
		"run -v /a : /b : ro --time":      {"--timeout"},
		"run -e K = V : W --time":         {"--timeout"},
		"run -m1g --time":                 {"--timeout"},
		"run - --la":                      {"--lang"},
		"run --tls-sni-check a":           {"all"},
		"run --tls-sni-check = o":         {"off"},
		"run --image h":                   {"host"},
		"run --memory --":                 nil,
		"run python --":                   nil,
		"run -- --":                       nil,
		"run --memory 1g python --mem":    nil,
		"profile compile --f":             {"--force"},
		"profile learn -o x.json --merge": {"--merge"},
		"nothing --":                      nil,
		"profile nothing --":              nil,
	} {
		if got := ask(strings.Fields(words)...); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", words, got, want)
		}
	}
}

// Where the real function would look at each option, this one prints them.
const askZsh = `compdef() { print -r -- "$@" >compdef }
_describe() { print -rl -- $verbs }
_arguments() { print -rl -- "$@" }
. "$1"; shift
[[ "$(<compdef)" == '_sandglass sandglass' ]] || exit 3
words=("$@") CURRENT=$#
_sandglass`

// zshSpec is an option of _arguments: what it excludes, its name, its help.
var zshSpec = regexp.MustCompile(`^(?:\([^)]*\)|\*)?(-[a-z-]+)[+=]?\[`)

func TestZsh(t *testing.T) {
	testkit.Requires(t, "zsh")
	_, file, _ := completions(t)
	output(t, "zsh", "-f", "-n", file)
	offered(t, func(words ...string) (list []string) {
		for _, line := range lines(output(t, "zsh", append([]string{"-f", "-c", askZsh, "zsh", file, "sandglass"}, words...)...)) {
			if m := zshSpec.FindStringSubmatch(line); m != nil {
				list = append(list, m[1])
			} else if name, _, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(line, "*:") && name != "" {
				list = append(list, name)
			}
		}
		return list
	})
}

func TestFish(t *testing.T) {
	testkit.Requires(t, "fish")
	_, _, file := completions(t)
	output(t, "fish", "--no-config", "-n", file)
	ask := func(words ...string) (list []string) {
		const script = `source $argv[1]; complete -C "$argv[2]"`
		for _, line := range lines(output(t, "fish", "--no-config", "-c", script, file, strings.Join(append([]string{"sandglass"}, words...), " "))) {
			name, _, _ := strings.Cut(line, "\t")
			list = append(list, name)
		}
		return list
	}
	offered(t, ask)
	for words, want := range map[string][]string{
		"run --memory 1g --timeo":      {"--timeout"},
		"run --tls-sni-check a":        {"all"},
		"run python --timeo":           nil,
		"run -- --timeo":               nil,
		"run --memory 1g python --tim": nil,
		"profile compile --fo":         {"--force"},
	} {
		if got := ask(strings.Fields(words)...); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", words, got, want)
		}
	}
}

// The shells as a person meets them: a tabulator, and what comes of it.
func TestTabulator(t *testing.T) {
	bash, zsh, _ := completions(t)
	for shell, c := range map[string]struct {
		args []string
		load string
	}{
		"bash": {[]string{"--norc", "--noprofile", "-i"}, ". " + bash},
		"zsh":  {[]string{"-f", "-i"}, "fpath=(" + filepath.Dir(zsh) + " $fpath); autoload -Uz compinit && compinit -u -D"},
	} {
		t.Run(shell, func(t *testing.T) {
			testkit.Requires(t, shell)
			term := testkit.NewTerminal(t)
			cmd := exec.Command(shell, c.args...)
			cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + testkit.Dir(t), "TERM=dumb", "PS1=$ "}
			cmd.Dir = testkit.Dir(t)
			cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			term.Lead(cmd)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Wait()
			defer cmd.Process.Kill()
			term.Type(c.load + "; sandglass() { echo \"<$*>\"; }; echo load\"\"ed\n")
			term.Expect("loaded")
			for _, x := range [][2]string{
				{"sandglass swe\t\n", "<sweep>"},
				{"sandglass run --tls-sni-check al\t-- --timeo\t\n", "<run --tls-sni-check all -- --timeo>"},
				{"sandglass run --expl\t-- true\n", "<run --explain-denials -- true>"},
				{"sandglass profile com\t--fo\t\n", "<profile compile --force>"},
			} {
				term.Type(x[0])
				term.Expect(x[1])
			}
		})
	}
}
