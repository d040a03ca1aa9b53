package cli

import (
	"bytes"
	"encoding/binary"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandglass/internal/testkit"
)

// bad is one command line that must be refused. DIR stands for a directory of
// the caller's with the files that badFiles makes.
type bad struct {
	name string
	args []string
	exit int
	want string // the error line, with DIR in it
}

var badInput = []bad{
	{"nothing", nil, 125, "nothing to run"},
	{"only --", []string{"--"}, 125, "nothing to run"},
	{"host alone", []string{"host"}, 125, "no command after the image host"},
	{"empty command", []string{"--", ""}, 125, "the command's name is empty"},
	{"empty code", []string{"-c", "", "--lang", "sh"}, 125, "-c: the code is empty"},
	{"code without language", []string{"-c", "print(1)"}, 125, "--code: the language is missing"},
	{"code and stdin", []string{"-c", "x", "--lang", "sh", "-"}, 125, "both -c and - give code"},

	{"unknown long flag", []string{"--no-such-flag", "--", "true"}, 125, `unknown flag "--no-such-flag"`},
	{"unknown short flag", []string{"-Z", "--", "true"}, 125, `unknown flag "-Z"`},
	{"misspelt flag", []string{"--memroy", "1g", "--", "true"}, 125, `unknown flag "--memroy"`},
	{"missing value", []string{"--memory"}, 125, "--memory needs a value: SIZE"},
	{"unknown language", []string{"-c", "x", "--lang", "no such"}, 125, `--lang: "no such" is not the name of a language`},
	{"unknown network", []string{"--network", "mynet", "--", "true"}, 125, `--network: "mynet" is refused: there are no user-defined networks here`},
	{"unknown output action", []string{"--on-output-limit", "pause", "--", "true"}, 125, `--on-output-limit: "pause" is neither truncate nor kill`},
	{"unknown limit to degrade", []string{"--allow-degraded", "everything", "--", "true"}, 125, `--allow-degraded: "everything" is not a limit that may be degraded: memory, cpu, pids, io`},
	{"two values for one flag", []string{"--memory", "64m", "--memory", "1g", "--", "true"}, 125, `--memory: given twice with different values: "64m" and "1g"`},
	{"unknown profile", []string{"--seccomp", "nosuch", "--", "true"}, 125, `seccomp profile "nosuch" is unknown, there is: default, debug, minimal`},
	{"unconfined", []string{"--security-opt", "seccomp=unconfined", "--", "true"}, 125, `--security-opt: unconfined is refused: the whole kernel would be within the program's reach`},
	{"result on stdout", []string{"--result-fd", "1", "--", "true"}, 125, "--result-fd: 1 is one of the program's own streams"},
	{"result on -", []string{"--result", "-", "--", "true"}, 125, `--result: "-" is one of the program's own streams`},
	{"result on a closed descriptor", []string{"--result-fd", "77", "--", "true"}, 125, "--result-fd 77 is not open"},
	{"result in a missing folder", []string{"--result", "DIR/no/r.json", "--", "true"}, 125, "--result: open DIR/no/r.json: no such file or directory"},

	{"missing script", []string{"nosuch.py"}, 127, `cannot read "nosuch.py": no such file or directory`},
	{"missing script with a slash", []string{"./nosuch.py"}, 127, `cannot read "./nosuch.py": no such file or directory`},
	{"script that is a folder", []string{"DIR/folder.py"}, 125, `"DIR/folder.py" is a directory and no command follows it`},
	{"file of no known kind", []string{"DIR/plain"}, 126, `cannot tell how to run "DIR/plain": no known extension, no #! line, not an ELF binary`},
	{"command not found", []string{"--", "no-such-command"}, 127, "command not found: no-such-command"},
	{"absolute command not found", []string{"--", "/usr/bin/no-such-command"}, 127, "command not found: /usr/bin/no-such-command"},
	{"not executable", []string{"--", "/etc/passwd"}, 126, "not executable: /etc/passwd"},
	{"a folder as command", []string{"--", "/usr/bin"}, 126, "not executable: /usr/bin is a directory"},
	{"C source", []string{"DIR/hello.c"}, 126,
		`cannot tell how to run "DIR/hello.c": no known extension, no #! line, not an ELF binary; it is source that is compiled first`},
	{"an image of docker's", []string{"python:3.12", "python", "x.py"}, 125, `there is no image "python:3.12": there is host, every directory, and what was imported`},
	{"a distribution", []string{"ubuntu", "ls"}, 125, `there is no image "ubuntu": there is host, every directory, and what was imported`},
	{"wrong architecture", []string{"DIR/foreign"}, 126, "/code/foreign: not a program this machine can run (wrong architecture, or a script without a #! line)"},
	{"wrong architecture, mounted", []string{"-v", "DIR/foreign:/opt/foreign", "--", "/opt/foreign"}, 126,
		"/opt/foreign: not a program this machine can run (wrong architecture, or a script without a #! line)"},
	{"missing interpreter inside", []string{"-v", "DIR/orphan:/opt/orphan", "--", "/opt/orphan"}, 127,
		"/opt/orphan: its interpreter or loader does not exist inside"},
	{"working directory", []string{"-w", "relative", "--", "true"}, 125, `--workdir: "relative" is not absolute`},

	{"working directory that is not there", []string{"-w", "/nope", "--", "true"}, 125, "--workdir: there is no directory /nope inside"},
	{"working directory that is a file", []string{"-w", "/etc/passwd", "--", "true"}, 125, "--workdir: /etc/passwd: not a directory inside"},
	{"working directory below a mount", []string{"-v", "DIR:/work", "-w", "/work/no", "--", "true"}, 125, "--workdir: there is no directory /work/no inside"},

	{"missing mount source", []string{"-v", "DIR/nosuch:/task", "--", "true"}, 125, `mount source "DIR/nosuch": no such file or directory`},
	{"mount target /", []string{"-v", "DIR:/", "--", "true"}, 125, `--volume: target "/" is the root itself`},
	{"mount target relative", []string{"-v", "DIR:task", "--", "true"}, 125, `--volume: target "task" is not absolute`},
	{"mount target with ..", []string{"-v", "DIR:/task/../etc", "--", "true"}, 125, `--volume: target "/task/../etc" is not clean: no //, /./, /../ or / at the end`},
	{"mount target reserved", []string{"-v", "DIR:/proc", "--", "true"}, 125, `--volume: target "/proc" is refused: it is the view of the sandbox's own processes`},
	{"mount over the programs", []string{"-v", "DIR:/usr", "--", "true"}, 125,
		`--volume: target "/usr" is refused: it would hide the host's own programs and libraries from the program`},
	{"mount into the view", []string{"-v", "DIR:/usr/share/no-such", "--", "true"}, 125,
		"mount target /usr/share/no-such: the target is not there, and making it would change the host"},
	{"mount without source", []string{"-v", ":/task", "--", "true"}, 125, `-v: ":/task" has no source: is a variable empty?`},
	{"empty mount", []string{"-v", "", "--", "true"}, 125, "-v: the value is empty"},
	{"mount mode", []string{"-v", "DIR:/task:rx", "--", "true"}, 125, `-v: "rx" is neither ro nor rw`},
	{"mount without target", []string{"-v", "DIR", "--", "true"}, 125, `-v: "DIR" has no target inside`},
	{"mount of the whole host", []string{"-v", "/:/host", "--", "true"}, 125, `--volume: host path "/" is refused: it is the whole host`},
	{"link to a dangerous place", []string{"-v", "DIR/link-to-proc:/task", "--", "true"}, 125,
		`mount source "DIR/link-to-proc" leads through a symbolic link: host path "/proc" is refused: it shows every process of the host, with its environment`},
	{"socket", []string{"-v", "DIR/socket:/s", "--", "true"}, 125, `mount source "DIR/socket" is a socket: it leads out of the sandbox`},
	{"named pipe", []string{"-v", "DIR/fifo:/f", "--", "true"}, 125, `mount source "DIR/fifo" is a named pipe: it leads out of the sandbox`},
	{"pipe as the script", []string{"DIR/fifo"}, 126, `"DIR/fifo" is not a regular file`},

	{"missing env file", []string{"--env-file", "DIR/nosuch", "--", "true"}, 125, `--env-file: cannot read "DIR/nosuch": no such file or directory`},
	{"env without a name", []string{"-e", "=x", "--", "true"}, 125, `-e: "=x" has no variable name`},
	{"user name of the host", []string{"--user", "alice", "--", "true"}, 125, `--user: "alice" is not an id: a number up to 2147483647, root or nobody, sandbox`},
}

// badLimits are flags that take a number, each with values that are none.
var badLimits = map[string][]string{
	"--timeout":         {"0", "0s", "-1s", "-1", "999999999999999999999s", "10x", "1e3", "", "NaN"},
	"--cpu-time":        {"0s", "-1s", "999999999999999999999s", "1 s"},
	"--memory":          {"0", "-1", "-1m", "99999999999999999999", "9223372036854775807k", "12q", "1e3", "", "0x10"},
	"--cpus":            {"0", "-1", "99999999", "1e2", "abc", "", "0.0001", "1.2.3"},
	"--pids-limit":      {"0", "-1", "99999999999999999999", "1.5", "many", ""},
	"--disk":            {"0", "-1", "99999999999999999999", ""},
	"--disk-inodes":     {"0", "-1", "99999999999999999999", ""},
	"--output-limit":    {"0", "-1", "99999999999999999999", ""},
	"--open-files":      {"0", "-1", "99999999999999999999", ""},
	"--ulimit":          {"nofile=0", "nofile=-1", "stack=0", "fsize=-1", "core=1", "nproc=5", "nofile", ""},
	"--device-read-bps": {"/dev/null", "/dev/null:0", "/dev/null:-1", "/dev/null:99999999999999999999", ""},
}

func badFiles(t *testing.T, who testkit.Who) string {
	t.Helper()
	dir := own(t, who)
	put(t, who, 0o755, foreignELF(), dir, "foreign")
	put(t, who, 0o755, "#!/no/such/interpreter\n", dir, "orphan")
	put(t, who, 0o644, "some text\n", dir, "plain")
	put(t, who, 0o644, "int main(void) { return 0; }\n", dir, "hello.c")
	put(t, who, 0o644, "x", dir, "folder.py", "x")
	if err := os.Symlink("/proc", dir+"/link-to-proc"); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(dir+"/fifo", 0o666); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: dir + "/socket"}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// foreignELF is the head of an executable for a machine that this is not.
func foreignELF() string {
	var b bytes.Buffer
	b.WriteString("\x7fELF\x02\x02\x01" + strings.Repeat("\x00", 9)) // 64 bit, big endian
	for _, v := range []any{uint16(2), uint16(22) /* s390 */, uint32(1), uint64(0x10000), uint64(64), uint64(0),
		uint32(0), uint16(64), uint16(56), uint16(0), uint16(0), uint16(0), uint16(0)} {
		binary.Write(&b, binary.BigEndian, v)
	}
	b.WriteString(strings.Repeat("\x00", 4096))
	return b.String()
}

func TestBadInput(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir := badFiles(t, who)
		before := tree(t, dir)
		fill := func(s string) string { return strings.ReplaceAll(s, "DIR", dir) }
		for _, c := range badInput {
			t.Run(c.name, func(t *testing.T) {
				args := make([]string, len(c.args))
				for i, a := range c.args {
					args[i] = fill(a)
				}
				verb := append([]string{}, who.Flags()...)
				out := testkit.Run(t, testkit.Opts{Who: who, Dir: dir, Verb: "run"}, append(verb, args...)...)
				what, _ := complaint(t, out)
				if out.Exit != c.exit || what != fill(c.want) {
					t.Errorf("exit %d, %s\nwant %d, %s", out.Exit, what, c.exit, fill(c.want))
				}
				clean(t, out, "", dir, before)
			})
		}
	})
}

func TestBadLimits(t *testing.T) {
	who := testkit.AsUser(t)
	dir := own(t, who)
	before := tree(t, dir)
	for flag, values := range badLimits {
		for _, v := range values {
			out := testkit.Run(t, testkit.Opts{Who: who, Dir: dir, Verb: "run"}, append(who.Flags(), flag+"="+v, "--", "echo", "ran")...)
			what, _ := complaint(t, out)
			if out.Exit != 125 || !strings.HasPrefix(what, flag+": ") {
				t.Errorf("%s=%s: exit %d, error %q", flag, v, out.Exit, what)
			}
			clean(t, out, "", dir, before)
		}
	}
}

// An unreadable source is refused before the run: inside it would only look
// like an empty folder. Root may read it, and so may its program.
func TestUnreadableMount(t *testing.T) {
	dir := own(t, testkit.Who{})
	secret := dir + "/only-root"
	if err := os.Mkdir(secret, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(secret+"/file", []byte("for root"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("user", func(t *testing.T) {
		testkit.Requires(t, "root") // to make a file that the user may not read
		before := tree(t, dir)
		out := testkit.Run(t, testkit.Opts{Who: testkit.AsUser(t), Dir: "/"}, "-v", secret+":/task", "--", "ls", "/task")
		what, hints := complaint(t, out)
		if want := `mount source "` + secret + `": permission denied`; out.Exit != 125 || what != want {
			t.Errorf("exit %d, %s, want %s", out.Exit, what, want)
		}
		if want := "ls -ld -- " + secret; len(hints) != 1 || hints[0] != want {
			t.Errorf("hints %q, want %q", hints, want)
		}
		clean(t, out, "", dir, before)
	})
	t.Run("root", func(t *testing.T) {
		out := testkit.Run(t, testkit.Opts{Who: testkit.AsRoot(t)}, "-v", secret+":/task", "--", "cat", "/task/file")
		if out.Exit != 0 || out.Stdout != "for root" {
			t.Errorf("exit %d, stdout %q, stderr %q", out.Exit, out.Stdout, out.Stderr)
		}
	})
}

// A target that is a link, in the view or in an image, is not followed.
func TestMountTargetIsALink(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		image := own(t, who)
		copyFile(t, testkit.Binary(t), put(t, who, 0o755, "", image, "bin", "prog"))
		put(t, who, 0o644, "kept", image, "real", "file")
		if err := os.Symlink("/real", image+"/task"); err != nil {
			t.Fatal(err)
		}
		source := own(t, who)
		put(t, who, 0o644, "data", source, "data")
		before := tree(t, image)
		for _, c := range []struct{ args []string }{
			{[]string{"--image", image, "-v", source + ":/task", "--", "prog", "version"}},
			{[]string{"--image", image, "-v", source + ":/task/below", "--", "prog", "version"}},
		} {
			out := testkit.Run(t, testkit.Opts{Who: who}, c.args...)
			if out.Exit != 125 {
				t.Errorf("%q: exit %d, stdout %q, stderr %q", c.args, out.Exit, out.Stdout, out.Stderr)
				continue
			}
			if what, _ := complaint(t, out); !strings.Contains(what, "/task") {
				t.Errorf("%q: %s", c.args, what)
			}
			clean(t, out, "", image, before)
		}
	})
}

// 3 MB of arguments reach sandglass, and are refused before anything is made.
func TestLongArgumentList(t *testing.T) {
	who := testkit.AsUser(t)
	// execve(2) allows arguments a quarter of the stack limit.
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_STACK, &old); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_STACK, &unix.Rlimit{Cur: min(64<<20, old.Max), Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_STACK, &old)
	args := append(who.Flags(), "--", "echo")
	for range 30 {
		args = append(args, strings.Repeat("x", 100<<10))
	}
	out := testkit.Run(t, testkit.Opts{Who: who, Verb: "run"}, args...)
	what, _ := complaint(t, out)
	if want := "argument list too long: arguments and environment are "; out.Exit != 126 || !strings.HasPrefix(what, want) {
		t.Errorf("exit %d, %s, want 126 and %s…", out.Exit, what, want)
	}
	clean(t, out, "", "", nil)
}
