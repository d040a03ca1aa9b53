package clients

import (
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sandglass/internal/testkit"
)

// made is a directory with the packages of the libraries, and with nothing else:
// for no architecture.
var made = sync.OnceValues(func() (string, error) {
	const dir = "build/dist-clients"
	cmd := exec.Command("go", "run", "./packaging/dist", "-once", "-arch", "", "-formats", "", "-out", dir)
	cmd.Dir = "../.."
	text, err := cmd.CombinedOutput()
	if err != nil {
		return string(text), err
	}
	return filepath.Abs(filepath.Join(cmd.Dir, dir))
})

func archive(t *testing.T, pattern string) string {
	t.Helper()
	testkit.Requires(t, "go", "git")
	if err := exec.Command("git", "-C", testkit.Root(t), "-c", "safe.directory=*", "rev-parse", "HEAD").Run(); err != nil {
		t.Skip("SKIP(want a checkout of git, have none)")
	}
	dir, err := made()
	if err != nil {
		t.Fatalf("%v\n%s", err, dir)
	}
	list, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(list) != 1 {
		t.Fatalf("%s: %q, %v", pattern, list, err)
	}
	return list[0]
}

func must(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), "SANDGLASS="+testkit.Binary(t), "npm_config_cache="+filepath.Join(dir, "cache"), "npm_config_update_notifier=false")
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, text)
	}
	return string(text)
}

// TestWheel installs the wheel as a user without a network would.
func TestWheel(t *testing.T) {
	testkit.Requires(t, "root", "python3:ensurepip")
	dir := testkit.Dir(t)
	must(t, dir, "/usr/bin/python3", "-m", "venv", "venv")
	must(t, dir, "venv/bin/pip", "install", "-q", "--no-index", "--disable-pip-version-check", archive(t, "*.whl"))
	got := must(t, dir, "venv/bin/python", "-I", "-c", "import sandglass, os\n"+
		"print(sandglass.run(command=['echo', 'hi']).stdout, end='')\nprint(sorted(os.listdir(os.path.dirname(sandglass.__file__))))")
	if want := "hi\n['__init__.py', '__pycache__', 'py.typed']\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if said := must(t, dir, "venv/bin/pip", "check"); strings.TrimSpace(said) != "No broken requirements found." {
		t.Errorf("%q", said)
	}
}

// TestCheckout installs both libraries from clients/, where each is one file, without a
// network and without touching a checkout that may be anybody's.
func TestCheckout(t *testing.T) {
	testkit.Requires(t, "root", "python3:ensurepip", "python3:wheel", "python3:setuptools")
	dir := testkit.Dir(t)
	must(t, dir, "/usr/bin/python3", "-m", "venv", "--system-site-packages", "venv") // where setuptools is
	must(t, dir, "venv/bin/pip", "install", "-q", "--no-index", "--no-build-isolation", "--disable-pip-version-check", copied(t, "python"))
	got := must(t, dir, "venv/bin/python", "-I", "-c", "import sandglass, os\nprint(sandglass.run(command=['echo', 'hi']).stdout, end='')\n"+
		"here = os.path.dirname(sandglass.__file__)\nprint(os.path.basename(here), sorted(f for f in os.listdir(here) if 'sandglass' in f))")
	if want := "hi\nsite-packages ['sandglass-0.0.0.dist-info', 'sandglass.py']\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestCheckoutOfNode is the same with npm.
func TestCheckoutOfNode(t *testing.T) {
	testkit.Requires(t, "root", "npm", "node")
	dir := testkit.Dir(t)
	must(t, dir, "npm", "install", "--offline", "--no-audit", "--no-fund", "--install-links", "--prefix", dir, copied(t, "node"))
	got := must(t, dir, "node", "--input-type=module", "-e",
		"import { run } from 'sandglass'; process.stdout.write((await run({ command: ['echo', 'hi'] })).stdout)")
	if got != "hi\n" {
		t.Errorf("%q", got)
	}
}

// TestNpm installs the tarball of the Node library likewise.
func TestNpm(t *testing.T) {
	testkit.Requires(t, "root", "npm", "node")
	dir := testkit.Dir(t)
	must(t, dir, "npm", "install", "--offline", "--no-audit", "--no-fund", "--prefix", dir, archive(t, "*.tgz"))
	got := must(t, dir, "node", "--input-type=module", "-e",
		"import { run } from 'sandglass'; process.stdout.write((await run({ command: ['echo', 'hi'] })).stdout)")
	if got != "hi\n" {
		t.Errorf("%q", got)
	}
}
