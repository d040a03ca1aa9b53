package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

// tableRows are the rows of a document whose first cell is letter and a number,
// in order and without a gap.
func tableRows(t *testing.T, document, letter string, cells int) [][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testkit.Root(t), document))
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for line := range strings.Lines(string(text)) {
		row := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		if want := fmt.Sprint(letter, len(rows)+1); row[0] != want {
			if strings.HasPrefix(line, "| "+letter) && strings.Trim(row[0], letter+"0123456789") == "" {
				t.Fatalf("%s: %s stands where %s belongs", document, row[0], want)
			}
			continue
		}
		if len(row) != cells {
			t.Fatalf("%s: %d cells, want %d: %q", document, len(row), cells, line)
		}
		rows = append(rows, row)
	}
	return rows
}

// named are the tests that a cell names. Each must exist.
func named(t *testing.T, exists map[string]bool, row, cell string) (n int) {
	t.Helper()
	for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
		if !exists[m[1]] {
			t.Errorf("%s names %s, which does not exist", row, m[1])
		}
		n++
	}
	return n
}

// A way out that others had is shut here by a test, or there is no such joint.
func TestHistoryHasTests(t *testing.T) {
	exists := existing(t)
	rows := tableRows(t, "docs/THREATMODEL.md", "H", 6)
	if len(rows) < 80 {
		t.Fatalf("only %d rows were read", len(rows))
	}
	seen := map[string]string{}
	for _, row := range rows {
		number, id, joint := row[0], row[1], row[4]
		if before := seen[id]; before != "" {
			t.Errorf("%s and %s are both %s", before, number, id)
		}
		seen[id] = number
		n := named(t, exists, number, row[5])
		switch verdict, why, _ := strings.Cut(joint, ":"); {
		case verdict == "no" && strings.TrimSpace(why) != "":
		case verdict == "yes, and not shut here" && n == 0 && strings.TrimSpace(why) != "":
		case verdict == "yes" && n > 0:
		default:
			t.Errorf("%s (%s) says %q and names %d tests", number, id, joint, n)
		}
	}
}

// The classes and attackers of SECURITY.md.
var (
	classes   = []string{"Escape", "HostLeak", "Exfil", "Tamper", "Lateral", "HostDoS", "Forgery", "Remains"}
	attackers = []string{"program", "local user", "caller", "image, artefact"}
)

// Every promise names its tests, and no class and no attacker is without one.
func TestEveryPromiseHasTests(t *testing.T) {
	exists := existing(t)
	rows := tableRows(t, "SECURITY.md", "P", 5)
	used := map[string]bool{}
	for _, row := range rows {
		if named(t, exists, row[0], row[4]) == 0 {
			t.Errorf("%s names no test", row[0])
		}
		for _, word := range append(strings.Split(row[1], ", "), row[2]) {
			used[word] = true
		}
	}
	for _, word := range append(append([]string{}, classes...), attackers...) {
		if !used[word] {
			t.Errorf("no promise is of %q", word)
		}
		delete(used, word)
	}
	for word := range used {
		t.Errorf("%q is no class and no attacker", word)
	}
}
