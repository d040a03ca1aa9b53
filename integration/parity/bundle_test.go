package parity

import (
	"os"
	"os/exec"
	"testing"

	"sandglass/internal/testkit"
)

// One policy and one program, by both engines, from a command line that a user
// would write.
func TestBundleRuns(t *testing.T) {
	engine := runc(t)
	args := []string{"-e", "A=1", "-c", "echo $A; id -u; cat /proc/self/comm; echo x >/work/f && cat /work/f; exit 7", "--lang", "sh"}
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := testkit.Run(t, testkit.Opts{Who: who}, args...)
		const want = "1\n65534\ncat\nx\n"
		if o.Stdout != want || o.Exit != 7 {
			t.Errorf("sandglass: %q, exit %d\n%s", o.Stdout, o.Exit, o.Stderr)
		}
		c := start(t, engine, plan(t, who, args...))
		if out, exit := c.end(t); out != want || exit != 7 {
			t.Errorf("runc: %q, exit %d\n%s", out, exit, c.errs.String())
		}
	})
}

// A mount of root's private files is readable and a read-only one not writable
// in both.
func TestBundleMounts(t *testing.T) {
	engine := runc(t)
	dir := testkit.Dir(t)
	if err := os.WriteFile(dir+"/f", []byte("mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"-v", dir + ":/data", "-v", dir + ":/back:rw", "--", "sh", "-c",
		"cat /data/f; echo x >/data/g 2>/dev/null || echo refused; echo y >/back/g && cat /data/g; rm /back/g"}
	const want = "mine\nrefused\ny\n"
	who := testkit.AsRoot(t)
	if o := testkit.Run(t, testkit.Opts{Who: who}, args...); o.Stdout != want || o.Exit != 0 {
		t.Errorf("sandglass: %q, exit %d\n%s", o.Stdout, o.Exit, o.Stderr)
	}
	c := start(t, engine, plan(t, who, args...))
	if out, exit := c.end(t); out != want || exit != 0 {
		t.Errorf("runc: %q, exit %d\n%s", out, exit, c.errs.String())
	}
}

// The runc that a distribution has takes the bundle as well, with the keys that
// are newer than it left aside.
func TestBundleRunsByTheDistributions(t *testing.T) {
	testkit.Requires(t, "root", "userns", "runc")
	engine, err := exec.LookPath("runc")
	if err != nil {
		t.Fatal(err)
	}
	c := start(t, engine, plan(t, testkit.AsRoot(t), "--", "echo", "hello"))
	if out, exit := c.end(t); out != "hello\n" || exit != 0 {
		t.Errorf("%q, exit %d\n%s", out, exit, c.errs.String())
	}
}

// plan's two machine forms are for diffing: the same flags give the same bytes,
// whatever the working directory, the environment and the process.
func TestPlanIsStable(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		out := testkit.Dir(t)
		if err := os.Chmod(out, 0o777); err != nil {
			t.Fatal(err)
		}
		for _, form := range []string{"--json", "--oci"} {
			args := append(who.Flags(), form, "-v", "/usr/share/doc:/data", "-e", "B=2", "-e", "A=1", "--out", out, "-c", "echo hi", "--lang", "sh")
			first := testkit.Run(t, testkit.Opts{Who: who, Verb: "plan"}, args...)
			if first.Exit != 0 || len(first.Stdout) < 2000 {
				t.Fatalf("%s: exit %d\n%s%s", form, first.Exit, first.Stdout, first.Stderr)
			}
			for i, o := range []testkit.Opts{{Dir: "/usr"}, {Env: []string{"SECRET=x", "LC_ALL=de_DE.UTF-8", "TZ=Asia/Tokyo"}}, {}} {
				o.Who, o.Verb = who, "plan"
				if again := testkit.Run(t, o, args...); again.Stdout != first.Stdout {
					t.Errorf("%s: the plan with %d differs\n%s\n%s", form, i, first.Stdout, again.Stdout)
				}
			}
		}
	})
}

// flags are command lines whose plans reach every part of the form.
var flags = map[string][]string{
	"default": {"--", "true"},
	"code":    {"-c", "echo hi", "--lang", "sh", "--user", "0", "--proc", "none"},
	"limits": {"--memory", "64m", "--cpus", "0.5", "--pids-limit", "9", "--disk", "1m", "--cpu-time", "2s", "--ulimit", "nofile=64",
		"--user", "5:6", "-w", "/data", "-v", "/usr/share/doc:/data", "-v", "/usr/share/doc:/data2:ro", "--", "true"},
}
