package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"sandglass/pkg/result"
	"sandglass/pkg/sandbox"
	"sandglass/pkg/sessionclient"
)

// program is one kind of run with what must become of it.
type program struct {
	name  string
	flags string                // of sandglass run; -m 64m and --timeout 60s are added where they are not said
	argv  []string              // the command
	code  string                // python, instead of a command
	prog  bool                  // testdata/soak.c is the command, argv its arguments
	spec  func(s *sandbox.Spec) // changes the Spec of the API's run
	stdin func(seed uint64) []byte
	out   bool // with a directory for artefacts
	only  string
	end   end
	want  want

	// Of a session's client alone:
	bare bool                                                // without the mark in its environment, so that an interpreter that waits can serve it
	ask  func(q *sessionclient.Request, seed uint64)         // changes the request
	act  func(s *soak, ctx context.Context, e *ended) string // a session of its own, which says what went wrong
}

// end is what the caller does to the run.
type end int

const (
	waits       end = iota
	cancels         // when the program says that it is ready: SIGTERM, or the context
	cancelsSoon     // the same at any moment of the start
	kills           // SIGKILL to the supervisor, which the next run cleans up after
	killsSoon
)

// cancel and kill tell the kinds apart.
func (e end) cancel() bool { return e == cancels || e == cancelsSoon }
func (e end) kill() bool   { return e == kills || e == killsSoon }
func (e end) soon() bool   { return e == cancelsSoon || e == killsSoon }

// want is the right end. Of stdout every byte counts, unless check judges it.
type want struct {
	outcome result.Outcome
	exit    int
	stdout  string
	check   func(e *ended) string // what is wrong with it, "" for nothing
}

const (
	inside = "/opt/soak/prog"
	// secret is in the caller's environment.
	secret = "SOAK_SECRET=correct-horse"
	// longOutput fits below the limit of 1 MiB.
	longOutput = 900_000
)

func exits(code int, stdout string) want {
	return want{outcome: result.Exited, exit: code, stdout: stdout}
}

func sh(name, flags, script string, w want) *program {
	return &program{name: name, flags: flags, argv: []string{"sh", "-c", script}, want: w}
}

func c(name, flags, args string, w want) *program {
	return &program{name: name, flags: flags, prog: true, argv: strings.Fields(args), want: w}
}

// table is the whole load.
func (s *soak) table() []*program {
	list := append(good(), s.hostile()...)
	list = append(list, ends()...)
	list = append(list, s.listed()...)
	list = append(list, callers()...)
	list = append(list, s.asked()...)
	list = append(list, acts()...)
	if runtime.GOARCH == "amd64" {
		list = append(list, c("foreign system call", "", "foreign", want{outcome: result.Signaled, exit: 128 + 31}))
	}
	return list
}

// good programs must not be harmed, and those near a limit not be condemned.
func good() []*program {
	upper := func(seed uint64) []byte { return bytes.Repeat([]byte(fmt.Sprintf("line of run %d\n", seed)), 10_000) }
	return []*program{
		sh("hello, sh", "", "echo hello", exits(0, "hello\n")),
		{name: "hello, python", flags: "-m 128m", code: "print(sum(range(10)))", want: exits(0, "45\n")},
		c("hello, C", "", "hello", exits(7, "hello from C\n")),
		sh("long output", "", fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x", longOutput), exits(0, strings.Repeat("x", longOutput))),
		{name: "stdin to stdout", flags: "-i", argv: []string{"tr", "a-z", "A-Z"}, stdin: upper,
			want: want{outcome: result.Exited, check: func(e *ended) string {
				return differs("stdout", string(e.stdout), strings.ToUpper(string(upper(e.job.seed()))))
			}}},
		{name: "artefacts", out: true, argv: []string{"sh", "-c", "mkdir /out/d; echo kept >/out/d/file; ln -s /etc/passwd /out/link; mkfifo /out/fifo"},
			want: want{outcome: result.Exited, check: artefacts}},
		// Nothing of the caller's, and nothing of the runs before.
		sh("fresh", "", "env | grep -c SECRET; ls -A /tmp /work /dev/shm /out; echo x | tee /tmp/x /work/x /dev/shm/x",
			exits(0, "0\n/dev/shm:\n\n/out:\n\n/tmp:\n\n/work:\nx\n")),
		c("memory, half of it", "-m 64m", "hold 32", exits(0, "held 32\n")),
		c("CPU time, a part of it", "--cpu-time 20s", "burn 50", exits(0, "burnt 50\n")),
		sh("exit 125 of its own", "", "exit 125", exits(125, "")),
		sh("exit 137 of its own", "", "exec 2>/dev/null; sh -c 'kill -KILL $$'; exit $?", exits(137, "")),
	}
}

// hostile programs pass a limit or try what is refused.
func (s *soak) hostile() []*program {
	memory := want{outcome: result.Memory, exit: result.ExitMemory, check: s.memory}
	cpu := want{outcome: result.CPUTime, exit: result.ExitTimeout}
	late := want{outcome: result.Timeout, exit: result.ExitTimeout}
	return []*program{
		c("memory hog", "-m 32m", "hog 96", memory),
		c("memory hog, of children", "-m 32m", "family 96", memory),
		{name: "memory hog, python", flags: "-m 48m", code: "x = []\nwhile True: x.append(bytearray(1 << 20))", want: memory},
		c("CPU spinner", "--cpu-time 200ms", "spinners", cpu),
		sh("sleeper", "--timeout 3s", "echo begun; sleep 1000", want{outcome: result.Timeout, exit: result.ExitTimeout, stdout: "begun\n"}),
		sh("deaf and stopped", "--timeout 300ms", "trap '' TERM INT HUP QUIT; setsid sleep 1000 & kill -STOP $$", late),
		c("pids limit", "--pids-limit 16", "forks", exits(0, "tasks 16\n")),
		c("fork bomb", "-m 256m --pids-limit 32 --timeout 400ms", "bomb", late),
		sh("disk filler", "--disk 8m", "head -c 20m /dev/zero >/tmp/x 2>/dev/null; echo $?; stat -c %s /tmp/x",
			want{outcome: result.Exited, check: within("1\n", 8<<20-128<<10, 8<<20)}),
		sh("inode filler", "--disk-inodes 100", "i=0; while true 2>/dev/null >/tmp/$i; do i=$((i+1)); done 2>/dev/null; echo $i",
			want{outcome: result.Exited, check: within("", 80, 100)}),
		c("daemons", "", "daemons 5", exits(3, "daemons 5\n")),
		c("kill(-1)", "", "killall", exits(4, "killed 3\n")),
		sh("suicide", "", "kill -SEGV $$", want{outcome: result.Signaled, exit: 139}),
		sh("suicide by SIGKILL", "", "kill -KILL $$", want{outcome: result.Signaled, exit: 137}),
		c("refused system calls", "", "refused", exits(0, "unshare EPERM\nmount EPERM\nptrace EPERM\nadd_key EPERM\nkeyctl EPERM\nbpf EPERM\n"+
			"io_uring ENOSYS\nclone3 ENOSYS\nvsock EAFNOSUPPORT\nraw EPERM\n")),
		c("network", "", "network "+strconv.Itoa(s.port), exits(0, "loopback ECONNREFUSED\nworld ENETUNREACH\nabstract ECONNREFUSED\n")),
		c("IPC objects", "", "ipc", exits(0, "made\n")),
		sh("output flood", "--output-limit 10k --on-output-limit kill", "yes",
			want{outcome: result.Output, exit: result.ExitOutput, check: func(e *ended) string {
				return differs("stdout", string(e.stdout), strings.Repeat("y\n", 5<<10))
			}}),
		sh("output cut off", "--output-limit 10k", "head -c 5m /dev/zero; exit 5", want{outcome: result.Exited, exit: 5, check: cutOff}),
	}
}

// ends are runs that the caller ends.
func ends() []*program {
	const script = "(setsid sleep 1000 &); echo ready; sleep 1000"
	of := func(name string, e end, only string, w want) *program {
		p := sh(name, "", script, w)
		p.end, p.only = e, only
		return p
	}
	canceled := want{outcome: result.Canceled, stdout: "ready\n"} // the exit code differs: see judge
	killed := want{exit: 137, stdout: "ready\n"}
	return []*program{
		of("canceled", cancels, "", canceled),
		of("canceled while starting", cancelsSoon, "", canceled),
		of("supervisor killed", kills, "cli", killed),
		of("supervisor killed while starting", killsSoon, "cli", killed),
	}
}

// callers are mistakes of the caller's.
func callers() []*program {
	refused := func(exit int) want { return want{outcome: result.Refused, exit: exit} }
	bad := &program{name: "bad Spec", argv: []string{"true"}, only: "api", want: refused(125),
		spec: func(s *sandbox.Spec) { s.Limits.Memory = -1 }}
	return []*program{
		{name: "bad flag", flags: "--no-such-flag", argv: []string{"true"}, want: refused(125)},
		{name: "refused flag", flags: "--privileged", argv: []string{"true"}, want: refused(125)},
		bad,
		{name: "not found", argv: []string{"/no/such/program"}, want: refused(127)},
		{name: "not executable", argv: []string{"/etc/passwd"}, want: refused(126)},
	}
}

func artefacts(e *ended) string {
	text, err := os.ReadFile(filepath.Join(e.dir, "d", "file"))
	if err != nil || string(text) != "kept\n" {
		return fmt.Sprintf("the artefact is %q, %v", text, err)
	}
	var names []string
	entries, _ := os.ReadDir(e.dir)
	for _, x := range entries {
		names = append(names, x.Name())
	}
	return differs("the directory", strings.Join(names, " "), "d")
}

func cutOff(e *ended) string {
	o := e.res.Stdout
	if o.Bytes != 5<<20 || o.Kept != 10<<10 || !o.Truncated {
		return fmt.Sprintf("stdout has %d bytes, %d kept, truncated %t", o.Bytes, o.Kept, o.Truncated)
	}
	return differs("stdout", string(e.stdout), strings.Repeat("\x00", 10<<10))
}

// memory checks the figures that come with the verdict. A watchdog is late: the
// program may have said that it has all of it. On cgroup v1 the kernel takes one
// process and we the others, which can have a word before that.
func (s *soak) memory(e *ended) string {
	r := &e.res
	late := map[result.Enforcer]string{result.ByCgroup2: "", result.ByCgroup1: "outlived 96\n"}
	word, ok := late[s.enforced["memory"]]
	if !ok {
		word = "held 96\n"
	}
	if out := string(e.stdout); out != "" && out != word {
		return fmt.Sprintf("stdout is %q", out)
	}
	limit := r.Limits["memory"].Value
	if s.limited && (r.OOMKills < 1 || r.MemoryPeakBytes > limit) || !s.limited && r.MemoryPeakBytes <= limit {
		return fmt.Sprintf("oom_kills %d, memory_peak_bytes %d, limit %d", r.OOMKills, r.MemoryPeakBytes, limit)
	}
	return ""
}

// within wants one number after a known beginning.
func within(before string, least, most int64) func(e *ended) string {
	return func(e *ended) string {
		rest, ok := strings.CutPrefix(string(e.stdout), before)
		n, err := strconv.ParseInt(strings.TrimSuffix(rest, "\n"), 10, 64)
		if !ok || err != nil || n < least || n > most {
			return fmt.Sprintf("stdout is %q, want %q and %d to %d", e.stdout, before, least, most)
		}
		return ""
	}
}

func differs(what, got, want string) string {
	if got == want {
		return ""
	}
	return fmt.Sprintf("%s has %d bytes, %.200q, want %d, %.200q", what, len(got), got, len(want), want)
}
