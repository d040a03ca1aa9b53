package cli

import (
	"os"
	"path/filepath"
	"testing"

	"sandglass/internal/testkit"
	profiles "sandglass/seccomp-profiles"
)

// The verbs of profile that run nothing: what they print, and what they refuse.
func TestProfile(t *testing.T) {
	dir := testkit.Dir(t)
	mine := filepath.Join(dir, "mine.json")
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("mine.json", profiles.Source("minimal"))
	write("bad.json", `{"defaultAction": "SCMP_ACT_ALLOW"}`)
	write("nothing.json", `{"defaultAction": "SCMP_ACT_KILL_PROCESS", "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64"], "syscalls": []}`)
	const help = "hint: sandglass profile --help\n"
	for _, c := range []struct {
		args           []string
		exit           int
		stdout, stderr string
	}{
		{[]string{"list"}, 0, "default    what every run has where nothing else is said\n" +
			"debug      the default one, and tracing of the sandbox's own processes\n" +
			"minimal    a static C program that reads, computes and writes\n", ""},
		{[]string{"show", "debug"}, 0, profiles.Source("debug"), ""},
		{[]string{"diff", "minimal", mine}, 0, "", ""},
		{[]string{"diff", "default", "debug"}, 1, "kcmp: errno 1 -> allow\nprocess_vm_readv: errno 1 -> allow\n" +
			"process_vm_writev: errno 1 -> allow\nptrace: errno 1 -> allow\n", ""},
		{[]string{"compile", "mine.json"}, 0, "", ""},
		{[]string{"compile", "mine.json"}, 125, "", "sandglass: error: -o: \"" + dir + "/mine.bpf\" is there already\n" +
			"hint: sandglass profile compile --force -o mine.bpf mine.json   # to replace it\n"},
		{[]string{"compile", "--force", "mine.json"}, 0, "", ""},
		{[]string{"compile", "nothing.json"}, 125, "", "sandglass: error: nothing.json: the compiled filter does not allow write, without which no program can be started\n" +
			"hint: sandglass run --help\n"},
		{[]string{"compile", "bad.json"}, 125, "", "sandglass: error: bad.json: profile: defaultAction SCMP_ACT_ALLOW lets through what nobody thought of, " +
			"use SCMP_ACT_ERRNO or SCMP_ACT_KILL_PROCESS\nhint: sandglass run --help\n"},
		{[]string{"compile", "none.json"}, 125, "", "sandglass: error: profile none.json: no such file or directory\nhint: ls -l -- none.json\n"},
		{[]string{"compile"}, 125, "", "sandglass: error: profile compile: a FILE.json is missing\nhint: sandglass profile compile my.json\n"},
		{[]string{"show", "nosuch"}, 125, "", "sandglass: error: profile nosuch is unknown, there is: default, debug, minimal\n" +
			"hint: a file is given by a name that ends in .json\n"},
		{[]string{"shw"}, 125, "", "sandglass: error: profile: no such command, or not its arguments: shw\n" + help},
		{nil, 125, "", "sandglass: error: profile: what to do is missing\nhint: sandglass profile list\n" + help},
		{[]string{"learn", "--", "true"}, 125, "", "sandglass: error: profile learn: -o is missing: where does the profile go?\n" +
			"hint: sandglass profile learn -o my.json -- COMMAND\n"},
		{[]string{"learn", "-o", "x.json", "--seccomp", "debug", "--", "true"}, 125, "",
			"sandglass: error: profile learn: --seccomp: the program runs under the default profile, of which what is learned is a part\nhint: leave --seccomp out\n"},
		{[]string{"learn", "-o", "x.json", "--merge", "none.json", "--", "true"}, 125, "",
			"sandglass: error: profile " + dir + "/none.json: no such file or directory\nhint: ls -l -- " + dir + "/none.json\n"},
	} {
		o := testkit.Run(t, testkit.Opts{Verb: "profile", Dir: dir}, c.args...)
		if o.Exit != c.exit || o.Stdout != c.stdout || o.Stderr != c.stderr {
			t.Errorf("%q: exit %d, %q, %q\nwant %d, %q, %q", c.args, o.Exit, o.Stdout, o.Stderr, c.exit, c.stdout, c.stderr)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "x.json")); err == nil {
		t.Error("a run that was refused has left a profile")
	}
}

// A link that a program has left in a project is not followed by the host's side,
// neither to read a profile nor to write a filter: not where it is the file and
// not on the way. One in a place that no sandbox can be given is the caller's own.
func TestProfileFollowsNoLink(t *testing.T) {
	dir := testkit.Dir(t)
	home := filepath.Join(dir, "home")
	for _, d := range []string{"real", "home/.config"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(dir+"/real/mine.json", []byte(profiles.Source("minimal")), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{
		"file.json": "real/mine.json", "way": "real", "gone.json": "nothing", "home/.config/own.json": "../../real/mine.json", "filter.bpf": "victim",
	} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	planted := func(name, link string) string {
		return "sandglass: error: profile " + name + ": \"" + dir + "/" + link + "\" is a symbolic link, which a program could have made: name the place that it leads to\n" +
			"hint: readlink -f -- " + name + "   # where it leads: name that itself, if it is what you want\n"
	}
	for _, c := range []struct {
		args   []string
		stderr string
	}{
		{[]string{"show", "file.json"}, planted("file.json", "file.json")},
		{[]string{"show", "way/mine.json"}, planted("way/mine.json", "way")},
		{[]string{"compile", "file.json"}, planted("file.json", "file.json")},
		{[]string{"diff", "minimal", "file.json"}, planted("file.json", "file.json")},
		{[]string{"learn", "-o", "x.json", "--merge", "file.json", "--", "true"}, planted(dir+"/file.json", "file.json")},
		{[]string{"show", "gone.json"}, planted("gone.json", "gone.json")},
		{[]string{"compile", "--force", "-o", "filter.bpf", "real/mine.json"}, "sandglass: error: -o: \"" + dir +
			"/filter.bpf\" is a symbolic link, which a program could have made: name the place that it leads to\nhint: readlink -f -- " + dir + "/filter.bpf   # where it leads now\n"},
	} {
		o := testkit.Run(t, testkit.Opts{Verb: "profile", Dir: dir}, c.args...)
		if o.Exit != 125 || o.Stdout != "" || o.Stderr != c.stderr {
			t.Errorf("%q: exit %d, stdout %q, stderr\n%swant\n%s", c.args, o.Exit, o.Stdout, o.Stderr, c.stderr)
		}
	}
	if _, err := os.Lstat(dir + "/victim"); err == nil {
		t.Error("a filter was written through a link")
	}
	o := testkit.Run(t, testkit.Opts{Verb: "profile", Dir: dir, Env: []string{"HOME=" + home}}, "diff", "minimal", home+"/.config/own.json")
	if o.Exit != 0 || o.Stdout != "" || o.Stderr != "" {
		t.Errorf("a link of the caller's own: exit %d, %q, %q", o.Exit, o.Stdout, o.Stderr)
	}
}
