package doctor

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/internal/testkit/agree"
)

// as is this host for a caller who has done something first, by himself; $D is a
// directory that he may write to.
func as(t *testing.T, who testkit.Who, text string) place {
	t.Helper()
	dir := testkit.Dir(t)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return place{who: who, prefix: []string{"bash", "-ec", "D=" + dir + "\n" + text + "\n" + `exec "$@"`, "bash"}}
}

// same is a run that must be as any other.
const same = ""

// odd are the ways in which a caller may come, and what a run then says in its
// one line of error; most of it must change nothing.
var odd = []struct{ name, first, says string }{
	{"stdin closed", "exec <&-", same},
	{"stderr closed", "exec 2>&-", same},
	{"all but stdout closed", "exec <&- 2>&-", same},
	{"umask that takes all", "umask 0777", same},
	{"umask that takes nothing", "umask 0", same},
	{"signals ignored", "trap '' HUP INT QUIT ILL TRAP ABRT BUS FPE USR1 SEGV USR2 PIPE ALRM TERM CHLD CONT TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS", same},
	{"nice", "renice -n 19 -p $$ >/dev/null", same},
	{"SCHED_IDLE", "chrt -i -p 0 $$", same},
	{"idle disk", "ionice -c 3 -p $$", same},
	{"one CPU", "taskset -cp 0 $$ >/dev/null", same},
	{"no HOME", "unset HOME", same},
	{"HOME is empty", "export HOME=", same},
	{"HOME is gone", "export HOME=/no/such/home", same},
	{"HOME is a file", "export HOME=/etc/passwd", same},
	{"HOME is relative", "export HOME=home", same},
	{"HOME is the root", "export HOME=/", same},
	{"no PATH", "unset PATH", same},
	{"PATH is odd", "export PATH=:.:/no/such:/proc/self/cwd:" + strings.Repeat("/x:", 2000), same},
	{"TMPDIR is gone", "export TMPDIR=/no/such/place", same},
	{"TMPDIR is no directory", "export TMPDIR=/dev/null", same},
	{"an environment of its own", "export GODEBUG=x=y GOGC=1 GOMAXPROCS=1 LD_PRELOAD=/no/such.so LANG=xx_YY LC_ALL=C GOTRACEBACK=crash", same},
	{"cwd is gone", "d=$(mktemp -d -p $D) && cd $d && rmdir $d", same},
	{"cwd is shut", "d=$(mktemp -d -p $D) && cd $d && chmod 0 $d && rmdir $d", same},
	{"cwd is far down", "d=$(mktemp -d -p $D) && cd $d && n=$(printf %0200d 0) && for i in $(seq 30); do mkdir $n; cd -P ./$n; done", same},
	{"few open files", "ulimit -n 64", same},
	{"too few open files", "ulimit -n 63", "the caller's limit on open files is 63, and a run needs 64"},
	{"hardly any open files", "ulimit -n 4", "the caller's limit on open files is 4, and a run needs 64"},
	{"no open files", "ulimit -n 3", "the caller's limit on open files is 3, and a run needs 64"},
	{"many open files", "ulimit -n 80; for i in $(seq 10 75); do eval \"exec $i</dev/null\"; done", "the caller's limit on open files is 80, of which N are free, and a run needs 48"},
	{"few open files for now", "ulimit -S -n 3", same},
	{"no files to write", "ulimit -f 0", "the caller's limit on the size of files is 0, and a run needs 1048576"},
	{"small files", "ulimit -f 1024", same},
	{"no signals that wait", "ulimit -i 0", "the caller's limit on signals that wait is 0, and a run needs 64"},
	{"too few signals that wait", "ulimit -i 63", "the caller's limit on signals that wait is 63, and a run needs 64"},
	{"address space of 950 MB", "ulimit -v 950000", "the caller's limit on address space is 972800000, and a run needs 1000000000"},
	{"no memory locked", "ulimit -l 0", same},
	{"no core", "ulimit -c 0", same},
	{"small stack", "ulimit -s 256", same},
	{"little CPU time", "ulimit -t 30", same},
	{"no waiting signals of real time", "ulimit -r 0", same},
	{"address space of 2 GB", "ulimit -v 2000000", same},
	{"no_new_privs", `set -- setpriv --no-new-privs "$@"`, same},
}

// However a caller comes, a run is as any other, or says in one line why not.
func TestOddCallers(t *testing.T) {
	testkit.Requires(t, "userns", "bash", "setpriv")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for _, c := range odd {
			p := as(t, who, c.first)
			o := p.do(t, "run", append(who.Flags(), "--", "sh", "-c", "echo ran; exit 7")...)
			said, _, _ := strings.Cut(o.Stderr, "\n")
			said = regexp.MustCompile(`of which \d+ are`).ReplaceAllString(said, "of which N are")
			switch {
			case c.says == same && (o.Exit != 7 || o.Stdout != "ran\n" || o.Stderr != ""):
				t.Errorf("%s: exit %d, stdout %q, stderr %q", c.name, o.Exit, o.Stdout, o.Stderr)
			case c.says != same && (o.Exit != 125 || o.Stdout != "" || said != "sandglass: error: "+c.says || !strings.Contains(o.Stderr, "\nhint: ")):
				t.Errorf("%s: exit %d, stdout %q, stderr %q; want %q", c.name, o.Exit, o.Stdout, o.Stderr, c.says)
			}
			if c.name == "too few open files" || c.name == "small files" || c.name == "no signals that wait" { // one of each kind
				p.told(t, o.Stderr)
			}
		}
	})
}

// told: doctor says what a run is told, in its report or because it is told so itself.
func (p place) told(t *testing.T, stderr string) {
	t.Helper()
	d := p.do(t, "doctor", "--json")
	if d.Stdout == "" {
		if d.Exit != 125 || d.Stderr != stderr {
			t.Errorf("doctor: exit %d, %q; a run says %q", d.Exit, d.Stderr, stderr)
		}
		return
	}
	agree.Run(t, p.do, agree.Parse(t, d))
}

// A stdout that is closed is one that nobody reads: the run is what it is.
func TestStdoutClosed(t *testing.T) {
	testkit.Requires(t, "userns", "bash")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := as(t, who, "exec >&-").do(t, "run", append(who.Flags(), "--", "sh", "-c", "echo lost; echo told >&2; exit 7")...)
		if o.Exit != 7 || o.Stdout != "" || o.Stderr != "told\n" {
			t.Errorf("exit %d, %q, %q", o.Exit, o.Stdout, o.Stderr)
		}
	})
}

// A relative path needs a working directory, and is refused without one.
func TestRelativeWithoutADirectory(t *testing.T) {
	testkit.Requires(t, "userns", "bash")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		p := as(t, who, "d=$(mktemp -d -p $D) && cd $d && rmdir $d")
		o := p.do(t, "run", append(who.Flags(), "-v", "./sub:/task", "--", "true")...)
		if o.Exit != 125 || o.Stdout != "" || !strings.HasPrefix(o.Stderr, "sandglass: error: \"./sub\" is relative and the working directory is gone: no such file or directory\nhint: cd /") {
			t.Errorf("exit %d, %q, %q", o.Exit, o.Stdout, o.Stderr)
		}
	})
}

// With even less Go's runtime does not come as far as main: it ends in a trace of
// its own, with exit code 2. Nothing has been started then. A root caller is under
// no limit on processes, but his sandboxes are.
func TestTooLittleForTheRuntime(t *testing.T) {
	testkit.Requires(t, "userns", "bash")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for first, root := range map[string]string{"ulimit -v 300000": "", "ulimit -u 1": "sandglass: error: the caller's limit on processes is 1, and a run needs 16\nhint: "} {
			o := as(t, who, first).do(t, "run", append(who.Flags(), "--", "sh", "-c", "echo ran")...)
			if who.IsRoot() && root != "" {
				if o.Exit != 125 || o.Stdout != "" || !strings.HasPrefix(o.Stderr, root) {
					t.Errorf("%s: exit %d, %q, %q", first, o.Exit, o.Stdout, o.Stderr)
				}
			} else if o.Exit != 2 || o.Stdout != "" || !strings.Contains(o.Stderr, "fatal error: ") {
				t.Errorf("%s: exit %d, %q, %q", first, o.Exit, o.Stdout, o.Stderr)
			}
		}
	})
}
