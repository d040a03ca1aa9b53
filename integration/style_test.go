package integration

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

const (
	maxFunction = 60
	maxFile     = 400
)

// longFunctions are the tables written as functions.
var longFunctions = map[string]bool{"pkg/policy/flags_refused.go:refusedFlags": true, "integration/vm/plan.go:plan": true}

// sourceFiles parses every Go file of the module, tests included.
func sourceFiles(t *testing.T) (*token.FileSet, map[string]*ast.File) {
	t.Helper()
	root := testkit.Root(t)
	set, files := token.NewFileSet(), map[string]*ast.File{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "bin") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		f, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		files[rel] = f
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return set, files
}

func TestEachPackageHasOneDoc(t *testing.T) {
	_, files := sourceFiles(t)
	docs, packages := map[string][]string{}, map[string]bool{}
	for path, f := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		dir := filepath.Dir(path)
		packages[dir] = true
		if f.Doc != nil && strings.TrimSpace(f.Doc.Text()) != "" {
			docs[dir] = append(docs[dir], path)
		}
	}
	if len(packages) < 15 {
		t.Fatalf("only %d packages were found", len(packages))
	}
	for dir := range packages {
		if len(docs[dir]) != 1 {
			t.Errorf("%s has %d package docs, want 1: %v", dir, len(docs[dir]), docs[dir])
		}
	}
}

func TestFunctionsAndFilesAreShort(t *testing.T) {
	set, files := sourceFiles(t)
	for path, f := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		if n := set.Position(f.FileEnd).Line; n > maxFile {
			t.Errorf("%s has %d lines, more than %d", path, n, maxFile)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			n := set.Position(fn.End()).Line - set.Position(fn.Pos()).Line + 1
			if n > maxFunction && !longFunctions[path+":"+fn.Name.Name] {
				t.Errorf("%s: %s has %d lines, more than %d", path, fn.Name.Name, n, maxFunction)
			}
		}
	}
}

// A test that waits for a time instead of an event is slow where it passes and
// fails where the machine is busy.
func TestNoTestSleeps(t *testing.T) {
	set, files := sourceFiles(t)
	for path, f := range files {
		if !strings.HasSuffix(path, "_test.go") && !strings.HasPrefix(path, "internal/testkit/") {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Sleep" {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" {
					t.Errorf("%s calls time.Sleep", set.Position(n.Pos()))
				}
			}
			return true
		})
	}
}

// testFunctions are a file's tests and fuzz targets, by name.
func testFunctions(f *ast.File) map[string]bool {
	names := map[string]bool{}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && (strings.HasPrefix(fn.Name.Name, "Test") || strings.HasPrefix(fn.Name.Name, "Fuzz")) {
			names[fn.Name.Name] = true
		}
	}
	return names
}

// A file at the top that nobody put there on purpose is a scratch file, or a
// binary, that came in with "git add -A".
func TestTopLevel(t *testing.T) {
	testkit.Requires(t, "git")
	cmd := exec.Command("git", "-C", testkit.Root(t), "ls-tree", "--name-only", "HEAD")
	text, err := cmd.Output()
	if err != nil {
		t.Skip("SKIP(want a checkout of git, have none)")
	}
	want := []string{
		".ci", ".gitignore", "CHANGELOG.md", "LICENSE", "Makefile", "NOTICE", "README.md", "SECURITY.md", "clients", "cmd", "docs", "examples", "go.mod", "go.sum",
		"hack", "integration", "internal", "packaging", "pkg", "rootfs", "seccomp-profiles",
	}
	if got := strings.Fields(string(text)); !slices.Equal(got, want) {
		t.Errorf("at the top: %q\nwant %q", got, want)
	}
}

// A hint is a command to paste, or says what to leave out: one that leaves
// something open is neither.
func TestHintsLeaveNothingOpen(t *testing.T) {
	set, files := sourceFiles(t)
	hints := 0
	for path, f := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if method, ok := call.Fun.(*ast.SelectorExpr); !ok || method.Sel.Name != "Hint" {
				return true
			}
			hints++
			for _, arg := range call.Args {
				if text, ok := arg.(*ast.BasicLit); ok && (strings.Contains(text.Value, "…") || strings.Contains(text.Value, "...")) {
					t.Errorf("%s: %s", set.Position(text.Pos()), text.Value)
				}
			}
			return true
		})
	}
	if hints < 100 {
		t.Errorf("only %d hints were found", hints)
	}
}
