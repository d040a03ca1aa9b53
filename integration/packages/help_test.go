// Package packages tests what is installed beside the binary: manual pages and
// completions against --help, the packages' contents, and an installed package
// in a machine of its own.
package packages

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/packaging/manual"
)

func TestMain(m *testing.M) { testkit.Main(m) }

var (
	helpFlag = regexp.MustCompile(`^ +(-[a-z]|--[a-z-]+)(, (--[a-z-]+))?( |$)`)
	helpVerb = regexp.MustCompile(`^  ([a-z][a-z-]*)( +[^ ]|\n?$)`)
)

// subs are the verbs of a verb.
var subs = map[string][]string{
	"profile": {"list", "show", "diff", "compile", "learn"},
	"image":   {"import", "build", "from-host", "list", "show", "verify", "rm", "prune", "export"},
}

// said are the verbs and the flags that the binary's own --help lists: by verb,
// and by "profile VERB" and "image VERB".
func said(t *testing.T) (verbs []string, flags map[string][]string) {
	t.Helper()
	flags = map[string][]string{}
	for line := range strings.Lines(help(t, "--help")) {
		if m := helpVerb.FindStringSubmatch(line); m != nil && m[1] != "sandglass" {
			verbs = append(verbs, m[1])
		}
	}
	for _, verb := range verbs {
		at := verb
		text, _, _ := strings.Cut(help(t, verb, "--help"), "\nRefused, ")
		for line := range strings.Lines(text) {
			if m := helpVerb.FindStringSubmatch(line); m != nil && subs[verb] != nil && slices.Contains(subs[verb], m[1]) {
				at = verb + " " + m[1]
				flags[at] = nil
			}
			if m := helpFlag.FindStringSubmatch(line); m != nil {
				flags[at] = append(flags[at], m[1])
				if m[3] != "" {
					flags[at] = append(flags[at], m[3])
				}
			}
		}
	}
	return verbs, flags
}

func help(t *testing.T, args ...string) string {
	t.Helper()
	text, err := exec.Command(testkit.Binary(t), args...).Output()
	if err != nil {
		t.Fatalf("sandglass %v: %v", args, err)
	}
	return string(text)
}

// Where flags may stand, and that all of them are found at all.
func TestHelpIsUnderstood(t *testing.T) {
	verbs, flags := said(t)
	if want := []string{"run", "session", "mcp", "check", "doctor", "plan", "profile", "image", "sweep", "version"}; !slices.Equal(verbs, want) {
		t.Fatalf("verbs %q", verbs)
	}
	for at, want := range map[string][]string{
		"check":           {"--json", "--allow-degraded"},
		"doctor":          {"--json"},
		"plan":            {"--json", "--oci", "--bundle"},
		"sweep":           {"--json"},
		"profile list":    nil,
		"profile compile": {"-o", "--force"},
		"profile learn":   {"-o", "--output", "--merge"},
	} {
		if got, ok := flags[at]; !slices.Equal(got, want) || !ok && at != "version" {
			t.Errorf("%s: %q, want %q", at, got, want)
		}
	}
	for _, f := range []string{"-c", "--code", "--memory", "-m", "--result-fd", "--cap-drop", "--device-write-iops"} {
		if !slices.Contains(flags["run"], f) {
			t.Errorf("run's help has no %s: %q", f, flags["run"])
		}
	}
}

// Each flag of the help is one that the command takes.
func TestHelpIsTrue(t *testing.T) {
	_, flags := said(t)
	for _, verb := range []string{"check", "doctor", "sweep"} {
		for _, f := range flags[verb] {
			args := []string{verb, f}
			if f == "--allow-degraded" {
				args = append(args, "memory")
			}
			help(t, append(args, "--help")...)
		}
	}
}

var tag = regexp.MustCompile(`(?m)^\.TP\n(.*)$`)

// tags are the words before the paragraphs of a manual page.
func tags(page string) (list []string) {
	for _, m := range tag.FindAllStringSubmatch(page, -1) {
		text := strings.NewReplacer(`\fB`, "", `\fR`, "", `\fI`, "", `\-`, "-").Replace(m[1])
		for _, w := range strings.Split(text, ", ") {
			list = append(list, strings.Fields(w)[0])
		}
	}
	return list
}

// Every verb and every flag of --help is in the manual pages, and nothing else.
func TestManualPages(t *testing.T) {
	verbs, flags := said(t)
	pages := map[string]string{}
	for _, p := range manual.Pages("1.2.3", "2026-01-02") {
		pages[p.Name] = p.Text
	}
	if len(pages) != len(verbs)+1 {
		t.Errorf("%d pages for %d verbs", len(pages), len(verbs))
	}
	overview, _, _ := strings.Cut(pages["sandglass.1"], ".SH FILES")
	if got := tags(overview); !slices.Equal(got, verbs) {
		t.Errorf("sandglass.1 has %q, want %q", got, verbs)
	}
	for _, verb := range verbs {
		text, _, _ := strings.Cut(pages["sandglass-"+verb+".1"], ".SH REFUSED")
		var want []string
		if subs[verb] != nil {
			for _, sub := range subs[verb] {
				want = append(append(want, sub), flags[verb+" "+sub]...)
			}
		} else {
			want = flags[verb]
		}
		if got := tags(text); !slices.Equal(got, want) {
			t.Errorf("sandglass-%s.1 has\n%q, want\n%q", verb, got, want)
		}
	}
}

// The formatter finds nothing to complain of, and shows what can be pasted as it
// is: no typographic dashes and quotes.
func TestManualPagesRender(t *testing.T) {
	testkit.Requires(t, "groff")
	for _, p := range manual.Pages("1.2.3", "2026-01-02") {
		cmd := exec.Command("groff", "-man", "-Tutf8", "-ww", "-P-cbou")
		cmd.Stdin = strings.NewReader(p.Text)
		var complaints strings.Builder
		cmd.Stderr = &complaints
		text, err := cmd.Output()
		if err != nil || complaints.Len() > 0 {
			t.Errorf("%s: %v\n%s", p.Name, err, complaints.String())
		}
		if i := strings.IndexFunc(string(text), func(r rune) bool { return r > '~' }); i >= 0 {
			t.Errorf("%s: not ASCII: %q", p.Name, text[max(0, i-20):min(len(text), i+20)])
		}
		if p.Name == "sandglass-run.1" && !strings.Contains(string(text), `sandglass run -c 'print(1)' --lang python`) {
			t.Errorf("%s: an example cannot be pasted:\n%s", p.Name, text)
		}
	}
}

// What roff makes typographic is escaped everywhere: Debian's own settings hide
// a forgotten one, those of others do not.
func TestManualPagesAreEscaped(t *testing.T) {
	escaped := strings.NewReplacer(`\-`, "", `\(aq`, "", `\(ga`, "", `\(ha`, "", `\(ti`, "", `\(dq`, "", `\e`, "", `\fB`, "", `\fI`, "", `\fR`, "", `\&.`, "")
	for _, p := range manual.Pages("1.2.3", "2026-01-02") {
		for line := range strings.Lines(p.Text) {
			macro := strings.HasPrefix(line, ".")
			if i := strings.IndexAny(escaped.Replace(line), "-'`^~\\"); i >= 0 && !strings.HasPrefix(line, `.\"`) || strings.Contains(line, `"`) && !macro {
				t.Errorf("%s: %s", p.Name, line)
			}
		}
	}
}

// completions writes the files of the three shells.
func completions(t *testing.T) (bash, zsh, fish string) {
	t.Helper()
	dir := testkit.Dir(t)
	bash, zsh, fish = filepath.Join(dir, "sandglass"), filepath.Join(dir, "_sandglass"), filepath.Join(dir, "sandglass.fish")
	for path, text := range map[string]string{bash: manual.Bash(), zsh: manual.Zsh(), fish: manual.Fish()} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return bash, zsh, fish
}

// offered compares what a shell offers, a line each, with what the help says.
func offered(t *testing.T, ask func(words ...string) []string) {
	t.Helper()
	verbs, flags := said(t)
	check := func(want []string, words ...string) {
		t.Helper()
		got := ask(words...)
		slices.Sort(got)
		want = slices.Clone(want)
		slices.Sort(want)
		want = slices.Compact(want)
		if !slices.Equal(got, want) {
			t.Errorf("after %q\n got %q\nwant %q", words, got, want)
		}
	}
	check(verbs, "")
	for verb, names := range subs {
		check(names, verb, "")
	}
	for at, own := range flags {
		if at == "plan" || at == "profile learn" || at == "session" || at == "mcp" {
			own = append(slices.Clone(own), flags["run"]...)
		}
		if len(own) > 0 {
			check(own, append(strings.Fields(at), "-")...)
		}
	}
}
