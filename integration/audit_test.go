package integration

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

const auditDoc = "docs/AUDIT.md"

// coreDirs are the packages that belong to the security core with every file.
var coreDirs = []string{"internal/sys", "pkg/boxinit", "pkg/mount", "pkg/wire", "pkg/launch", "pkg/denials", "pkg/egress", "pkg/artifacts"}

var (
	auditRow = regexp.MustCompile("^\\| `([a-z0-9_./-]+)` \\| (\\d+) \\|")
	auditSum = regexp.MustCompile(`^Part ([A-Z]): \d+ lines in \d+ files\.$`)
)

// TestAudit holds the numbers of docs/AUDIT.md: the security core cannot grow
// without a change of that page, which a reviewer sees.
func TestAudit(t *testing.T) {
	root := testkit.Root(t)
	path := filepath.Join(root, auditDoc)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want, listed := counted(t, root, string(text))
	for _, dir := range coreDirs {
		for _, file := range sources(t, root, dir) {
			if !slices.Contains(listed, file) {
				t.Errorf("%s does not list %s: put it where it is read, and say what to ask of it", auditDoc, file)
			}
		}
	}
	if want == string(text) {
		return
	}
	if *update && !t.Failed() {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s is not of this tree; to take the numbers over: go test ./integration -run TestAudit -update\n%s", auditDoc, diff(string(text), want))
}

// counted is the page with the numbers of the tree, and the paths that it lists.
func counted(t *testing.T, root, text string) (page string, listed []string) {
	t.Helper()
	var b strings.Builder
	sum, files := 0, 0
	for line := range strings.Lines(text) {
		if m := auditRow.FindStringSubmatchIndex(line); m != nil {
			name := line[m[2]:m[3]]
			if slices.Contains(listed, name) {
				t.Errorf("%s lists %s twice", auditDoc, name)
			}
			listed = append(listed, name)
			lines, n := linesOf(t, root, name)
			sum, files = sum+lines, files+n
			line = line[:m[4]] + strconv.Itoa(lines) + line[m[5]:]
		}
		if m := auditSum.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			line = fmt.Sprintf("Part %s: %d lines in %d files.\n", m[1], sum, files)
			sum, files = 0, 0
		}
		b.WriteString(line)
	}
	return b.String(), listed
}

// linesOf counts one file, or all sources below a directory, these in hundreds:
// what is not the core may move without a word.
func linesOf(t *testing.T, root, name string) (lines, files int) {
	t.Helper()
	list := []string{name}
	if info, err := os.Stat(filepath.Join(root, name)); err != nil {
		t.Errorf("%s lists %s: %v", auditDoc, name, err)
		return 0, 0
	} else if info.IsDir() {
		list = sources(t, root, name)
	}
	for _, file := range list {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		lines += bytes.Count(text, []byte("\n"))
	}
	if len(list) > 1 {
		lines = (lines + 50) / 100 * 100
	}
	return lines, len(list)
}

// sources are the files below a directory that are compiled into a program.
func sources(t *testing.T, root, dir string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && d.Name() == "testdata" {
				return filepath.SkipDir
			}
			return err
		}
		ext := filepath.Ext(path)
		if (ext == ".go" && !strings.HasSuffix(path, "_test.go")) || ext == ".s" || ext == ".json" {
			rel, _ := filepath.Rel(root, path)
			list = append(list, rel)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}
