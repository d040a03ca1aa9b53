package runtimes

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// hostFinder looks with the eyes of whoever runs the test.
func hostFinder(t testing.TB) Finder {
	t.Helper()
	cwd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return Finder{Path: os.Getenv("PATH"), Home: os.Getenv("HOME"), Getenv: os.Getenv, Cwd: cwd}
}

// TestHostAgrees compares with what the interpreters say of themselves.
func TestHostAgrees(t *testing.T) {
	for _, tt := range []struct{ name, flag, code string }{
		{"python3", "-c", "import os,sys;print(os.path.realpath(sys.executable))"},
		{"node", "-p", "require('fs').realpathSync(process.execPath)"},
		{"perl", "-e", "use Cwd 'abs_path'; print abs_path($^X)"},
		{"bash", "-c", "readlink -f /proc/$$/exe; :"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path, err := exec.LookPath(tt.name)
			if err != nil {
				t.Skipf("SKIP(want %s on this host)", tt.name)
			}
			said, err := exec.Command(path, tt.flag, tt.code).Output()
			if err != nil {
				t.Skipf("SKIP(%s does not run here: %v)", path, err)
			}
			f := hostFinder(t)
			got, err := f.Find(tt.name)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v", got)
			// A virtual environment's Exe is its own link.
			real, _, err := resolve(got.Exe)
			if err != nil || real != strings.TrimSpace(string(said)) {
				t.Errorf("Find(%q) = %s, it says %s", tt.name, got.Exe, said)
			}
		})
	}
}

func TestHostVenv(t *testing.T) {
	dir := t.TempDir() + "/env"
	if out, err := exec.Command("python3", "-m", "venv", "--without-pip", dir).CombinedOutput(); err != nil {
		t.Skipf("SKIP(want python3 -m venv: %v %s)", err, out)
	}
	f := hostFinder(t)
	got, err := f.Venv(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", got)
	said, err := exec.Command(got.Exe, "-c", "import sys;print(sys.prefix, sys.base_prefix)").Output()
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(string(said))
	if words[0] != got.Prefix {
		t.Errorf("Prefix = %q, python says %q", got.Prefix, words[0])
	}
	if inHostView(words[1]) != (len(got.Extra) == 0) || len(got.Extra) > 0 && got.Extra[0] != words[1] {
		t.Errorf("Extra = %q, python says %q", got.Extra, words[1])
	}
	f.Path = dir + "/bin"
	if active, err := f.Find("python"); err != nil || active.Exe != dir+"/bin/python" || active.Prefix != dir {
		t.Errorf("an activated one: %+v, %v", active, err)
	}
}

// TestHostJavaConfig: Debian's java does not start without its files in /etc.
func TestHostJavaConfig(t *testing.T) {
	got, err := hostFinder(t).Find("java")
	if err != nil {
		t.Skipf("SKIP(want java: %v)", err)
	}
	cfg, _, err := resolve(filepath.Dir(filepath.Dir(got.Exe)) + "/lib/jvm.cfg")
	if err != nil || !strings.HasPrefix(cfg, "/etc/") {
		t.Skip("SKIP(want a Debian java)")
	}
	if !slices.Contains(got.Extra, cfg) || !slices.Contains(got.Extra, filepath.Dir(cfg)+"/security") || slices.Contains(got.Extra, filepath.Dir(cfg)) {
		t.Errorf("Extra = %q", got.Extra)
	}
}

func BenchmarkFind(b *testing.B) {
	f := hostFinder(b)
	for _, name := range []string{"python3", "node", "no-such-command"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f.Find(name)
			}
		})
	}
}
