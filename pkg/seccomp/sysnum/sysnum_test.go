package sysnum

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestNumber(t *testing.T) {
	for _, c := range []struct {
		arch, name string
		want       uint32
		ok         bool
	}{
		{"amd64", "read", 0, true},
		{"arm64", "read", 63, true},
		{"amd64", "open", 2, true},
		{"arm64", "open", 0, false},
		{"amd64", "mseal", 462, true},
		{"arm64", "mseal", 462, true},
		{"amd64", "no_such_call", 0, false},
		{"riscv64", "read", 0, false},
	} {
		if got, ok := Number(c.arch, c.name); got != c.want || ok != c.ok {
			t.Errorf("%s %s: got %d, %v", c.arch, c.name, got, ok)
		}
	}
}

func TestName(t *testing.T) {
	for _, c := range []struct {
		arch   string
		number uint32
		want   string
	}{{"amd64", 0, "read"}, {"arm64", 0, "io_setup"}, {"arm64", 221, "execve"}, {"amd64", 59, "execve"}, {"amd64", 1 << 30, ""}} {
		if got, ok := Name(c.arch, c.number); got != c.want || ok != (c.want != "") {
			t.Errorf("%s %d: got %q, %v, want %q", c.arch, c.number, got, ok, c.want)
		}
	}
}

func TestNamesAreSortedAndUnique(t *testing.T) {
	names := Names()
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Error("syscalls.tsv is not sorted, or holds a name twice")
	}
	names[0] = "changed"
	if Names()[0] == "changed" {
		t.Error("Names hands out its own array")
	}
}

// TestTableIsTheOneOfXSys compares with the constants of golang.org/x/sys, in
// the version of go.mod: when that learns of new calls, the table must too.
func TestTableIsTheOneOfXSys(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "golang.org/x/sys/unix").Output()
	if err != nil {
		t.Skip("SKIP(want the go command):", err)
	}
	constant := regexp.MustCompile(`(?m)^\s*SYS_(\w+)\s*=\s*(\d+)`)
	for _, arch := range []string{"amd64", "arm64"} {
		text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "zsysnum_linux_"+arch+".go"))
		if err != nil {
			t.Fatal(err)
		}
		theirs := map[string]bool{}
		for _, m := range constant.FindAllStringSubmatch(string(text), -1) {
			name := strings.ToLower(m[1])
			if name == "arch_specific_syscall" {
				continue // where a private range begins, not a call
			}
			theirs[name] = true
			want, _ := strconv.ParseUint(m[2], 10, 32)
			if got, ok := Number(arch, name); !ok || uint64(got) != want {
				t.Errorf("%s %s: got %d, %v, want %d", arch, name, got, ok, want)
			}
		}
		for _, name := range Names() {
			if _, ok := Number(arch, name); ok && !theirs[name] {
				t.Errorf("%s %s is only in our table", arch, name)
			}
		}
	}
}
