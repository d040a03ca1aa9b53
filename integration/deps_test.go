package integration

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

var update = flag.Bool("update", false, "write the golden files anew")

// goList asks the go command about this module's packages.
func goList(t *testing.T, args ...string) []string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir, cmd.Env = testkit.Root(t), append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, errs.String())
	}
	return strings.Split(strings.TrimRight(string(text), "\n"), "\n")
}

// golden compares with a checked-in file.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; if that is meant: go test ./integration -run %s -update\n%s", path, t.Name(), diff(string(want), got))
	}
}

func diff(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	var b strings.Builder
	for _, l := range w {
		if !slices.Contains(g, l) {
			b.WriteString("- " + l + "\n")
		}
	}
	for _, l := range g {
		if !slices.Contains(w, l) {
			b.WriteString("+ " + l + "\n")
		}
	}
	if b.Len() == 0 {
		return "the order differs"
	}
	return b.String()
}

// The command runs as root beside hostile code, and each package that it links
// is code to audit and pages to fault in at every start, twice.
func TestLinkedPackages(t *testing.T) {
	list := goList(t, "-deps", "./cmd/sandglass")
	slices.Sort(list)
	golden(t, "testdata/linked.golden", strings.Join(list, "\n")+"\n")
	for _, p := range list {
		first, _, _ := strings.Cut(p, "/")
		if strings.Contains(first, ".") && !strings.HasPrefix(p, "golang.org/x/sys/") && p != "golang.org/x/net/dns/dnsmessage" {
			t.Errorf("cmd/sandglass links %s: only the standard library, golang.org/x/sys and dnsmessage are allowed", p)
		}
		switch p {
		case "net/http", "crypto/tls", "os/user", "testing", "sandglass/internal/testkit", "runtime/cgo":
			t.Errorf("cmd/sandglass links %s", p)
		}
	}
}

// What reads archives may link what unpacks them, and nothing that speaks to a
// network or runs sandboxes. Programs are started by two of its packages alone, which
// read nothing hostile: apt's, and the loader's.
func TestLinkedByImages(t *testing.T) {
	for _, p := range goList(t, "-deps", "./cmd/sandglass-image") {
		first, _, _ := strings.Cut(p, "/")
		if strings.Contains(first, ".") && !strings.HasPrefix(p, "golang.org/x/sys/") && !strings.HasPrefix(p, "github.com/klauspost/compress") {
			t.Errorf("cmd/sandglass-image links %s", p)
		}
		switch p {
		case "net", "net/http", "testing", "runtime/cgo", "sandglass/pkg/sandbox", "sandglass/pkg/launch", "sandglass/internal/sys":
			t.Errorf("cmd/sandglass-image links %s", p)
		}
	}
	var starts []string
	for _, line := range goList(t, "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./pkg/image/...", "./cmd/sandglass-image") {
		if f := strings.Fields(line); slices.Contains(f[1:], "os/exec") {
			starts = append(starts, f[0])
		}
	}
	if want := []string{"sandglass/pkg/image/apt", "sandglass/pkg/image/build", "sandglass/pkg/image/child"}; !slices.Equal(starts, want) {
		t.Errorf("of images, these start programs: %q, want %q", starts, want)
	}
}

// The server of models links the protocol's SDK and HTTP, and nothing that runs
// sandboxes: it drives sandglass session, as any tool would.
func TestLinkedByMCP(t *testing.T) {
	list := goList(t, "-deps", "./cmd/sandglass-mcp")
	slices.Sort(list)
	golden(t, "testdata/linked-mcp.golden", strings.Join(list, "\n")+"\n")
	for _, p := range list {
		switch p {
		case "testing", "runtime/cgo", "sandglass/pkg/sandbox", "sandglass/pkg/launch", "sandglass/pkg/boxinit", "sandglass/pkg/session", "sandglass/internal/sys":
			t.Errorf("cmd/sandglass-mcp links %s", p)
		}
	}
}

// imports are what a package may import of ours. A package that is not listed
// may import anything of ours but commands.
var imports = map[string][]string{
	"pkg/result":        {},
	"pkg/wire":          {},
	"internal/sys":      {},
	"internal/refusal":  {},
	"pkg/mount":         {"pkg/wire", "internal/sys"},
	"pkg/boxinit":       {"pkg/wire", "pkg/mount", "pkg/seccomp", "internal/sys"},
	"pkg/hostid":        {"internal/sys", "internal/refusal"},
	"pkg/cgroup":        {"pkg/result", "pkg/doctor/causes", "internal/refusal", "internal/sys"},
	"pkg/doctor/causes": {"internal/refusal"},
	"internal/deliver":  {},
	"internal/lines":    {},
	"pkg/hostpath":      {"internal/deliver"},
	"pkg/artifacts":     {"pkg/result", "pkg/hostpath", "internal/refusal", "internal/sys"},
	"pkg/verbs":         {"pkg/policy"},
	"pkg/sessionclient": {"pkg/result"},
	"pkg/image":         {"pkg/hostpath", "internal/refusal"},
	"pkg/policy":        {"pkg/hostpath", "pkg/image", "pkg/egress/hosts", "internal/refusal"},
	"pkg/denials":       {"pkg/result", "pkg/seccomp/bpfvm", "pkg/seccomp/sysnum", "internal/sys"},
	"pkg/rootfs":        {"pkg/wire", "pkg/hostpath", "internal/refusal", "rootfs"},
	"pkg/runtimes":      {"internal/refusal"},

	"pkg/egress/hosts":    {"pkg/egress/names", "pkg/egress/reach", "internal/refusal"},
	"pkg/egress/names":    {},
	"pkg/egress/reach":    {},
	"pkg/egress/route":    {"internal/sys"},
	"pkg/egress/lookup":   {},
	"pkg/egress/resolver": {"pkg/egress/hosts", "pkg/egress/lookup", "pkg/egress/names"},
	"pkg/egress":          {"pkg/egress/hosts", "pkg/egress/lookup", "pkg/egress/names", "pkg/egress/record", "pkg/egress/relay", "pkg/egress/resolver", "pkg/result"},
	"pkg/egress/hello":    {},
	"pkg/egress/record":   {"pkg/result", "internal/refusal"},
	"pkg/egress/relay":    {"pkg/egress/hello", "pkg/egress/hosts", "pkg/egress/names", "pkg/egress/reach", "pkg/egress/record", "pkg/egress/route", "pkg/result"},
}

// forbidden are standard packages that init must not link: they start threads,
// resolvers and reflection in the process that guards the program. And what
// plans or supervises a run starts no program of the host's: what a path leads
// to may be hostile.
var forbidden = map[string][]string{
	"pkg/boxinit": {"net", "os/user", "encoding/json", "os/exec", "fmt", "reflect", "log"},
	"pkg/wire":    {"reflect", "encoding/json", "fmt"},
	"pkg/mount":   {"net", "os/exec", "encoding/json", "path/filepath"},

	// The policy is read with them, in every run.
	"pkg/egress/hosts": {"net", "net/url", "regexp"}, "pkg/egress/names": {"net"}, "pkg/egress/reach": {"net"},

	"pkg/runtimes": {"os/exec"}, "pkg/policy": {"os/exec"}, "pkg/plan": {"os/exec"}, "pkg/rootfs": {"os/exec"}, "pkg/launch": {"os/exec"},
	"pkg/sandbox": {"os/exec"}, "pkg/artifacts": {"os/exec"}, "pkg/cgroup": {"os/exec"}, "pkg/hostpath": {"os/exec"}, "pkg/image": {"os/exec"}, "cmd/sandglass": {"os/exec"},
}

func TestImports(t *testing.T) {
	seen := map[string]bool{}
	for _, line := range goList(t, "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...") {
		f := strings.Fields(line)
		name, deps := strings.TrimPrefix(f[0], "sandglass/"), f[1:]
		seen[name] = true
		allowed, listed := imports[name]
		for _, d := range deps {
			ours, isOurs := strings.CutPrefix(d, "sandglass/")
			switch {
			case d == "unsafe" && name != "internal/sys":
				t.Errorf("%s imports unsafe: only internal/sys may", name)
			case isOurs && strings.HasPrefix(ours, "cmd/") && !strings.HasPrefix(name, "cmd/"):
				t.Errorf("%s imports the command %s", name, ours)
			case isOurs && listed && !slices.Contains(allowed, ours):
				t.Errorf("%s imports %s, which is not among %v", name, ours, allowed)
			case slices.Contains(forbidden[name], d):
				t.Errorf("%s imports %s", name, d)
			case isOurs && strings.HasPrefix(ours, "internal/testkit") && !strings.HasPrefix(name, "integration/") && !strings.HasPrefix(name, "internal/testkit/"):
				t.Errorf("%s imports the tests' own %s", name, ours)
			}
		}
	}
	for name := range imports {
		if !seen[name] {
			t.Errorf("%s is in the table and not in the module", name)
		}
	}
}

// An audit of unsafe code and of assembly ends in internal/sys. Tests may use
// unsafe to build hostile arguments, which is only told.
func TestUnsafeIsNowhereElse(t *testing.T) {
	for _, line := range goList(t, "-f", `{{.ImportPath}} {{join .TestImports " "}} {{join .XTestImports " "}}`, "./...") {
		f := strings.Fields(line)
		if slices.Contains(f[1:], "unsafe") && f[0] != "sandglass/internal/sys" {
			t.Logf("the tests of %s import unsafe", f[0])
		}
	}
	for _, line := range goList(t, "-f", `{{.ImportPath}} {{len .SFiles}} {{len .CgoFiles}}`, "./...") {
		f := strings.Fields(line)
		if f[1] != "0" && f[0] != "sandglass/internal/sys" || f[2] != "0" {
			t.Errorf("%s has %s assembly and %s cgo files", f[0], f[1], f[2])
		}
	}
}
