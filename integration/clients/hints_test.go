package clients

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

// aboutFlags is text that a hint in the words of the command line has.
var aboutFlags = regexp.MustCompile(`^--?[a-z-]+[ =]\S|^X -- |^X --entrypoint |sandglass run |: --?[a-z-]+ \S|^leave --|did you mean --|^"(output|artifacts|options)": `)

// otherText is what has such text and is no hint of a session's.
var otherText = []string{
	// of other commands and of flags that a session has not
	`--bundle .*-2   # a directory that is made anew`, `--bundle names a directory that does not exist, in one that does`,
	`--json and --oci are two forms of one plan`, `--name .*`, `--name my-image`, `--name my-image:1`,
	`--output-limit .*, or --result FILE instead of --json`, `--result FILE`, `--result result\.json`, `--result-fd 3 3>result\.json`,
	`-i and - both want stdin`, `sandglass run -i -c "\$\(cat FILE\)" --lang python`,
	// errors
	`--cgroup-parent .* is not a clean absolute path below the cgroup mount`, `--host-id caller: root's own id would be the program's on the host`,
	`--host-id own: .*`, `file .*: --workdir is there`,
	`nothing to run: --entrypoint takes the place of the image's own command, and none follows`,
	// names of flags, and parts of what is there whole
	`--cpus \(thousandths\)`, `--file=.*`, `--ulimit fsize`, `--ulimit stack`, `sandglass run `, `-v .*:/task -- sh -c`,
	`--memory 1g --disk 512m --pids-limit 256 --cpus 2 --timeout 120s`,
}

// literal is a string as the source has it, with .* for what is put into it.
func literal(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		if err != nil || e.Kind != token.STRING {
			return ".*"
		}
		parts := regexp.MustCompile(`%[-+#]?[sdvq]`).Split(text, -1)
		for i, p := range parts {
			parts[i] = regexp.QuoteMeta(p)
		}
		return strings.Join(parts, ".*")
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return literal(e.X) + literal(e.Y)
		}
	}
	return ".*"
}

// inSource are the strings about flags in the packages that the binary links.
func inSource(t *testing.T) []string {
	cmd := exec.Command("go", "list", "-deps", "-f", "{{.Dir}}", "./cmd/sandglass")
	cmd.Dir = testkit.Root(t)
	text, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for dir := range strings.Lines(string(text)) {
		dir = strings.TrimSpace(dir)
		if below, _ := filepath.Rel(testkit.Root(t), dir); !strings.HasPrefix(below, "pkg/") && !strings.HasPrefix(below, "internal/") {
			continue
		}
		list, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range list {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				e, ok := n.(ast.Expr)
				if !ok {
					return true
				}
				p := literal(e)
				plain := strings.ReplaceAll(strings.ReplaceAll(p, ".*", "X"), `\`, "")
				if strings.Trim(p, ".*") == "" || strings.Contains(plain, "\n") || !aboutFlags.MatchString(plain) {
					return true
				}
				found = append(found, p)
				return false
			})
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// TestHints: clients/hints.json, by which the tests of both libraries say hints in their
// own words, has every hint about flags that the source has.
func TestHints(t *testing.T) {
	testkit.Requires(t, "go")
	text, err := os.ReadFile(filepath.Join(testkit.Root(t), "clients/hints.json"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct{ Hint, Python, Node string }
	if err := json.Unmarshal(text, &rows); err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, p := range inSource(t) {
		is := regexp.MustCompile("^" + p + "$")
		known := slices.Contains(otherText, p) || strings.HasPrefix(p, "run COMMAND, with the flags of run, ") // a page of help
		used[p] = true
		for _, r := range rows {
			known = known || is.MatchString(r.Hint)
		}
		if !known {
			t.Errorf("not in clients/hints.json: %s", p)
		}
	}
	for _, p := range otherText {
		if !used[p] {
			t.Errorf("nowhere in the source: %s", p)
		}
	}
	for _, r := range rows {
		for _, said := range []string{r.Python, r.Node} {
			if said != r.Hint && aboutFlags.MatchString(said) {
				t.Errorf("%q is %q there", r.Hint, said)
			}
		}
	}
}
