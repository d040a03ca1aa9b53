package cli

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/policy"
)

var update = flag.Bool("update", false, "rewrite the flags table of README.md")

// block is one fenced block of a Markdown file.
type block struct{ kind, text string }

func blocks(markdown string) []block {
	var list []block
	parts := strings.Split(markdown, "```")
	for i := 1; i < len(parts); i += 2 {
		kind, text, _ := strings.Cut(parts[i], "\n")
		list = append(list, block{kind, text})
	}
	return list
}

// TestREADME runs every sh block of README.md, one after the other in one
// folder, and compares stdout with the text block that follows. What builds
// this repository is left out: the binary is there already.
func TestREADME(t *testing.T) {
	testkit.Requires(t, "python3", "node", "bash")
	list := blocks(read(t, filepath.Join(testkit.Root(t), "README.md")))
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir, bin := checkout(t, who), onPath(t, who)
		put(t, who, 0o644, read(t, filepath.Join(testkit.Root(t), "README.md")), dir, "README.md")
		ran, compared := 0, 0
		for i, b := range list {
			if b.kind != "sh" {
				continue
			}
			var script strings.Builder
			for line := range strings.Lines(b.text) {
				if strings.HasPrefix(line, "make ") || strings.HasPrefix(line, "PATH=") {
					continue
				}
				script.WriteString(line)
			}
			if script.Len() == 0 {
				continue
			}
			ran++
			got := hostRun(t, who, bin, dir, "bash", "-eu", "-c", script.String())
			if got.exit != 0 || got.stderr != "" {
				t.Errorf("exit %d, stderr %q of\n%s\nstdout:\n%s", got.exit, got.stderr, b.text, got.stdout)
			}
			if i+1 < len(list) && list[i+1].kind == "text" {
				compared++
				if got.stdout != list[i+1].text {
					t.Errorf("README says\n%s\nbut it prints\n%s", list[i+1].text, got.stdout)
				}
			}
		}
		if ran < 7 || compared < 5 {
			t.Errorf("only %d blocks ran and %d were compared", ran, compared)
		}
	})
}

// TestREADMEFromGo builds what the README has for Go, by the commands that it has,
// with the modules that are here, and runs it.
func TestREADMEFromGo(t *testing.T) {
	testkit.Requires(t, "root", "python3") // an ordinary user's policy may have to be weaker
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("SKIP(want go, have none)")
	}
	var program, script string
	for _, b := range blocks(read(t, filepath.Join(testkit.Root(t), "README.md"))) {
		switch b.kind {
		case "go":
			program += b.text
		case "bash":
			script += b.text
		}
	}
	dir := testkit.Dir(t)
	if err := os.Symlink(testkit.Root(t), filepath.Join(dir, "sandglass")); err != nil {
		t.Fatal(err)
	}
	put(t, testkit.AsRoot(t), 0o644, program, dir, "hello", "main.go")
	cmd := exec.Command("bash", "-euc", script)
	cmd.Dir = filepath.Join(dir, "hello")
	cmd.Env = append(os.Environ(), "PWD="+cmd.Dir, "GOPROXY=off", "GOSUMDB=off", "GOFLAGS=")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if out, err := cmd.Output(); err != nil || string(out) != "exited 0: 42\n" {
		t.Errorf("%v, %q, %s", err, out, stderr.String())
	}
}

// TestREADMEFlags keeps the table of flags that of the code.
func TestREADMEFlags(t *testing.T) {
	path := filepath.Join(testkit.Root(t), "README.md")
	text := read(t, path)
	const begin, end = "-update` -->\n", "<!-- end of flags -->"
	i, j := strings.Index(text, begin), strings.Index(text, end)
	if i < 0 || j < i {
		t.Fatal("README.md has no markers for the flags")
	}
	i += len(begin)
	if text[i:j] == flagTable() {
		return
	}
	if !*update {
		t.Fatal("the flags of README.md are not those of the code: go test ./integration/cli -run README -update")
	}
	if err := os.WriteFile(path, []byte(text[:i]+flagTable()+text[j:]), 0o644); err != nil {
		t.Fatal(err)
	}
}

func flagTable() string {
	var b strings.Builder
	for _, g := range policy.Groups() {
		fmt.Fprintf(&b, "\n| %s | default | |\n| --- | --- | --- |\n", g.Name)
		for _, f := range g.Flags {
			name := "`--" + f.Name
			if f.Short != "" {
				name = "`-" + f.Short + "`, " + name
			}
			if f.Arg != "" {
				name += " " + f.Arg
			}
			fmt.Fprintf(&b, "| %s` | %s | %s |\n", escape(name), f.Default, escape(f.Help))
		}
	}
	return b.String() + "\n"
}

func escape(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// The credit stands once, with its link and licence.
func TestREADMECredit(t *testing.T) {
	text := read(t, filepath.Join(testkit.Root(t), "README.md"))
	const credit = `<a href="https://agentwranglers.se/playbook/application-security/ai-features-and-agents/sandbox-model-code">Agent Wranglers application security playbook</a>`
	if n := strings.Count(text, credit); n != 1 {
		t.Errorf("the credit stands %d times, want once", n)
	}
	if n := strings.Count(text, "Agent Wranglers"); n != 1 {
		t.Errorf("the name stands %d times, want once", n)
	}
	if !strings.Contains(text, "(CC BY 4.0)") {
		t.Error("no licence with the credit")
	}
}

// Every file that a document of the project names is there.
func TestDocumentsNameRealFiles(t *testing.T) {
	root := testkit.Root(t)
	docs, err := filepath.Glob(root + "/docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	docs = append(docs, root+"/README.md", root+"/SECURITY.md", root+"/examples/README.md", root+"/clients/README.md", root+"/CHANGELOG.md")
	for _, doc := range docs {
		for i, word := range strings.Split(read(t, doc), "`") {
			if i%2 == 0 || strings.ContainsAny(word, " *<>$\n=:") || strings.HasPrefix(word, "/") || strings.HasPrefix(word, "-") {
				continue
			}
			known := false
			for _, dir := range []string{"docs/", "examples/", "integration/", "pkg/", "cmd/", "internal/", "hack/", "packaging/", "rootfs/", "seccomp-profiles/", "clients/"} {
				known = known || strings.HasPrefix(word, dir)
			}
			if !known && !strings.HasSuffix(word, ".md") {
				continue
			}
			_, errRoot := os.Stat(filepath.Join(root, word))
			_, errNear := os.Stat(filepath.Join(filepath.Dir(doc), word))
			if errRoot != nil && errNear != nil {
				t.Errorf("%s names %s, which is not there", filepath.Base(doc), word)
			}
		}
	}
}
