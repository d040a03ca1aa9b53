package escape

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

// project is a directory that looks like an installation of everything, with a
// virtual environment in env; its interpreters are shells.
func project(t *testing.T) string {
	t.Helper()
	dir := testkit.Dir(t)
	shell, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"secrets/key": "hunter2\n", "lib/python3.11/os.py": "", "lib/node_modules/npm/x": "", "lib/perl5/x": "", "lib/ruby/x": "",
		"env/pyvenv.cfg": "home = /usr/bin\n", "env/key": "hunter2\n", "env/bin/python3": "", "env/bin/python": "",
		"bin/python3.11": "", "bin/node": "", "bin/perl": "", "bin/ruby": "",
		"chain/pyvenv.cfg": "home = " + dir + "/env/bin\n", "chain/bin/python": "", "chain/bin/python3": "",
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		switch base := filepath.Base(path); {
		case filepath.Dir(path) == dir+"/bin":
			err = os.WriteFile(path, shell, 0o755)
		case strings.HasPrefix(base, "python") && text == "":
			err = os.Symlink("/usr/bin/python3", path)
		default:
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A script's #! line chooses no directory of the host that is shown, whatever
// kind of installation that looks like; nor does the pyvenv.cfg of a virtual
// environment choose a second one.
func TestScriptBringsNoDirectory(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		testkit.Requires(t, "python3")
		proj, dir := project(t), testkit.Dir(t)
		task := dir + "/task"
		refused := func(what string, o testkit.Output, exit int) {
			t.Helper()
			told := strings.Contains(o.Stderr, "PATH does not lead to it") || strings.Contains(o.Stderr, "/proc, /sys and /dev are others inside")
			if o.Result.Outcome != result.Refused || o.Exit != exit || o.Stdout != "" || !told {
				t.Errorf("%s: %s, exit %d, %q, %q", what, o.Result.Outcome, o.Exit, o.Stdout, o.Stderr)
			}
		}
		for _, interp := range []string{
			proj + "/bin/python3.11", proj + "/bin/node", proj + "/bin/perl", proj + "/bin/ruby", proj + "/env/bin/python3",
			"/proc/self/root" + proj + "/bin/node", "/proc/self/cwd/bin/node", "/proc/self/exe", "/etc/shadow",
		} {
			write(t, task, "#!"+interp+"\ncat "+proj+"/secrets/key "+proj+"/env/key\n")
			o := testkit.Run(t, testkit.Opts{Who: who, Dir: proj}, task)
			refused("#!"+interp, o, 126)
			for line := range strings.Lines(o.Stderr) {
				if strings.HasPrefix(line, "hint: ") && (strings.Contains(line, interp) || strings.Contains(line, "chmod")) {
					t.Errorf("#!%s: a hint has what the script says: %q", interp, line)
				}
			}
		}
		write(t, task, "print(open('"+proj+"/env/key').read(), end='')\n")
		chain := []string{"--venv", proj + "/chain", "--lang", "python", task}
		refused("--venv of another", testkit.Run(t, testkit.Opts{Who: who}, chain...), 125)
		// The controls: who has these on PATH is shown them.
		o := testkit.Run(t, testkit.Opts{Who: who, Env: []string{"PATH=" + proj + "/env/bin:/usr/bin:/bin"}}, chain...)
		if o.Stdout != "hunter2\n" {
			t.Errorf("the outer environment on PATH: exit %d, %q, %q", o.Exit, o.Stdout, o.Stderr)
		}
		write(t, task, "#!"+proj+"/bin/node\nread x < "+proj+"/secrets/key; echo $x\n")
		o = testkit.Run(t, testkit.Opts{Who: who, Env: []string{"PATH=" + proj + "/bin:/usr/bin:/bin"}}, task)
		if o.Stdout != "hunter2\n" {
			t.Errorf("an installation on PATH: exit %d, %q, %q", o.Exit, o.Stdout, o.Stderr)
		}
	})
}
