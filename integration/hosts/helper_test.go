package hosts

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/internal/testkit/agree"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// envOwn says that the machine is the test's own, whose settings may be changed.
const envOwn = "SANDGLASS_TEST_OWN_MACHINE"

func ownMachine(t *testing.T) {
	t.Helper()
	testkit.Requires(t, "root")
	if os.Getenv(envOwn) == "" {
		testkit.Skip(t, "a machine of its own", "this host, whose settings stay as they are")
	}
}

// echo is a run that nothing keeps from working but what the test is about.
func echo(t *testing.T, who testkit.Who) testkit.Output {
	t.Helper()
	return testkit.Run(t, testkit.Opts{Who: who}, "--timeout", "100s", "--", "echo", "ran")
}

func works(t *testing.T, o testkit.Output) {
	t.Helper()
	if o.Exit != 0 || o.Stdout != "ran\n" || o.Stderr != "" {
		t.Errorf("exit %d, stdout %q, stderr %q of a run that works", o.Exit, o.Stdout, o.Stderr)
	}
}

// refused holds a refusal to its every line: what, and then the hints. Doctor must
// say the same there.
func refused(t *testing.T, h agree.Host, o testkit.Output, what string, hints ...string) {
	t.Helper()
	want := "sandglass: error: " + what + "\n"
	for _, h := range hints {
		want += "hint: " + h + "\n"
	}
	if o.Exit != 125 || o.Stdout != "" || o.Stderr != want {
		t.Errorf("exit %d, stdout %q, stderr\n%s\nwant\n%s", o.Exit, o.Stdout, o.Stderr, want)
	}
	agree.Words(t, o.Stderr, agree.Report(t, h))
}

// paste has a root's shell run a hint as it stands. dirs come first on its PATH.
func paste(t *testing.T, hint string, dirs ...string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", hint)
	cmd.Env = []string{"HOME=/root", "PATH=" + strings.Join(append(dirs, "/usr/sbin:/usr/bin:/sbin:/bin"), ":")}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", hint, err, out)
	}
}

// setting changes a setting of the kernel for the test.
func setting(t *testing.T, name, value string) {
	t.Helper()
	path := "/proc/sys/" + strings.ReplaceAll(name, ".", "/")
	before, err := os.ReadFile(path)
	if err != nil {
		testkit.Skip(t, "the setting "+name, "none in this kernel")
	}
	put := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put(value)
	t.Cleanup(func() { put(strings.TrimSpace(string(before))) })
}
