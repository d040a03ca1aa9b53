package launch

import (
	"errors"
	"testing"
	"time"

	"sandglass/internal/refusal"
	"sandglass/pkg/cgroup"
	"sandglass/pkg/result"
	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

func exited(status uint32) *wire.Report { return &wire.Report{Type: wire.TypeExited, Status: status} }

// TestVerdict is the table of who ended a run.
func TestVerdict(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		name    string
		s       session
		oom     int64
		wall    time.Duration
		flooded bool // of a box whose output limit kills
		outcome result.Outcome
		code    int
		signal  int
		message string
	}{
		{name: "exit 0", s: session{started: now, exited: exited(0)}, outcome: result.Exited},
		{name: "exit 137 is no signal", s: session{started: now, exited: exited(137 << 8)}, outcome: result.Exited, code: 137},
		{name: "own signal", s: session{started: now, exited: exited(11)}, outcome: result.Signaled, signal: 11},
		{name: "core flag is no part of the signal", s: session{started: now, exited: exited(6 | 0x80)}, outcome: result.Signaled, signal: 6},
		{name: "timeout", s: session{started: now, cause: result.Timeout}, outcome: result.Timeout, signal: 9},
		{name: "ended while the clock fired", s: session{started: now, cause: result.Timeout, exited: exited(0)}, outcome: result.Exited},
		{name: "reported after the clock killed", s: session{started: now, cause: result.Timeout, exited: exited(9), late: true}, outcome: result.Timeout, signal: 9},
		{name: "a timeout(1) inside reports our kill", s: session{started: now, cause: result.Canceled, exited: exited(137 << 8), late: true}, outcome: result.Canceled, signal: 9},
		{name: "cpu time", s: session{started: now, cause: result.CPUTime}, outcome: result.CPUTime, signal: 9},
		{name: "canceled", s: session{started: now, cause: result.Canceled}, outcome: result.Canceled, signal: 9},
		{name: "output", s: session{started: now, cause: result.Output}, outcome: result.Output, signal: 9},
		{name: "ended before the output limit killed", s: session{started: now, exited: exited(0)}, flooded: true, outcome: result.Output, signal: 9},
		{name: "ended while the output limit killed", s: session{started: now, cause: result.Output, exited: exited(0)}, flooded: true, outcome: result.Output, signal: 9},
		{name: "canceled, and flooded before", s: session{started: now, cause: result.Canceled}, flooded: true, outcome: result.Output, signal: 9},
		{name: "ended before a look was late", s: session{started: now, cause: result.Memory, exited: exited(0)}, outcome: result.Exited},
		{name: "memory that the watchdog saw", s: session{started: now, cause: result.Memory, exited: exited(9), late: true}, flooded: true, outcome: result.Memory, signal: 9},
		{name: "out of memory", s: session{started: now, exited: exited(9)}, oom: 1, outcome: result.Memory, signal: 9},
		{name: "a swallowed out of memory", s: session{started: now, exited: exited(0)}, oom: 2, outcome: result.Memory, signal: 9},
		{name: "the clock does not hide out of memory", s: session{started: now, cause: result.Timeout}, oom: 1, outcome: result.Memory, signal: 9},
		{name: "init killed", s: session{started: now}, outcome: result.Failed, message: "the sandbox's init ended without a word"},
		{name: "init killed early", s: session{}, outcome: result.Failed, message: "the sandbox's init ended during set-up without a word"},
		{name: "ended by init's own clock", s: session{started: now}, wall: time.Minute, outcome: result.Timeout, signal: 9},
		{name: "init's own clock does not hide out of memory", s: session{started: now}, wall: time.Hour, oom: 1, outcome: result.Memory, signal: 9},
		{name: "init killed just in time", s: session{started: now}, wall: time.Minute - 1, outcome: result.Failed, message: "the sandbox's init ended without a word"},
		{name: "ended by itself while we were stopped", s: session{started: now, exited: exited(0)}, wall: time.Hour, outcome: result.Exited},
		{name: "ended by itself at the last moment", s: session{started: now, exited: exited(3 << 8), exitedAt: now.Add(time.Minute - 1)}, wall: time.Hour, outcome: result.Exited, code: 3},
		{name: "ended by itself after its time", s: session{started: now, exited: exited(0), exitedAt: now.Add(time.Minute)}, wall: time.Hour, outcome: result.Timeout, signal: 9},
		{name: "ended by itself after its time, heard when the clock fired", s: session{started: now, cause: result.Timeout, exited: exited(0), exitedAt: now.Add(time.Hour)}, outcome: result.Timeout, signal: 9},
		{name: "canceled after its own end", s: session{started: now, cause: result.Canceled, exited: exited(0), exitedAt: now.Add(time.Second)}, outcome: result.Exited},
		{name: "read-back differs", s: session{started: now, broken: errors.New("Seccomp is 0"), exited: exited(0)}, outcome: result.Failed, message: "the sandbox was stopped: Seccomp is 0"},
		{name: "set-up hangs", s: session{cause: result.Failed}, outcome: result.Failed, message: "setting up the sandbox took more than 30s"},
	} {
		c.s.end = &Ending{Stats: cgroup.Stats{OOMKills: c.oom}, Wall: c.wall}
		c.s.end.Stderr.Truncated = c.flooded
		c.s.box = &Box{OutputKill: c.flooded, Timeout: time.Minute}
		c.s.verdict()
		e := c.s.end
		if e.Outcome != c.outcome || e.ExitCode != c.code || e.Signal != c.signal || e.Error != c.message {
			t.Errorf("%s: got %s code %d signal %d %q", c.name, e.Outcome, e.ExitCode, e.Signal, e.Error)
		}
	}
}

// TestNotStarted: the docker exit codes, and which path is named.
func TestNotStarted(t *testing.T) {
	for _, c := range []struct {
		name    string
		report  wire.Report
		outcome result.Outcome
		code    int
		message string
	}{
		{"nowhere", wire.Report{Type: wire.TypeNotStarted, Errno: uint32(unix.ENOENT)}, result.Refused, 127, "command not found: prog"},
		{"lost loader", wire.Report{Type: wire.TypeNotStarted, Errno: uint32(unix.ENOENT), Path: "/x/prog"}, result.Refused, 127, "/x/prog: its interpreter or loader does not exist inside"},
		{"not executable", wire.Report{Type: wire.TypeNotStarted, Errno: uint32(unix.EACCES), Path: "/x/prog"}, result.Refused, 126, "not executable: prog"},
		{"other machine", wire.Report{Type: wire.TypeNotStarted, Errno: uint32(unix.ENOEXEC), Path: "/x/prog"}, result.Refused, 126, "/x/prog: not a program this machine can run (wrong architecture, or a script without a #! line)"},
		{"too long", wire.Report{Type: wire.TypeNotStarted, Errno: uint32(unix.E2BIG), Path: "/x/prog"}, result.Refused, 126, "argument list too long"},
		{"step", wire.Report{Type: wire.TypeFailed, Step: "mount /usr", Errno: uint32(unix.EIO)}, result.Failed, 0, "init: mount /usr: input/output error"},
		{"path that steers the terminal", wire.Report{Type: wire.TypeNotStarted, Errno: uint32(unix.ENOEXEC), Path: "/x/\x1b[2J$(id)\nsandglass: forged"}, result.Refused, 126,
			`"/x/\x1b[2J$(id)\nsandglass: forged": not a program this machine can run (wrong architecture, or a script without a #! line)`},
		{"step of an image's name", wire.Report{Type: wire.TypeFailed, Step: "mount /a\x1b[2J\nforged", Errno: uint32(unix.EIO)}, result.Failed, 0, `init: mount /a\x1b[2J\nforged: input/output error`},
		{"step with a note", wire.Report{Type: wire.TypeFailed, Step: "mount /usr", Errno: uint32(unix.ESTALE), Path: "was replaced"}, result.Failed, 0, "init: mount /usr: was replaced"},
	} {
		s := session{end: &Ending{}, box: &Box{Config: wire.Config{Argv: []string{"prog"}}}, failed: &c.report}
		s.verdict()
		for _, h := range s.end.Hints {
			if h != refusal.Line(h) {
				t.Errorf("%s: hint %q", c.name, h)
			}
		}
		if e := s.end; e.Outcome != c.outcome || e.ExitCode != c.code || e.Error != c.message {
			t.Errorf("%s: got %s code %d %q", c.name, e.Outcome, e.ExitCode, e.Error)
		}
	}
}

// A hint is pasted into a shell: what was asked for must stay one word of it.
func TestHintsCanBePasted(t *testing.T) {
	const name = "/x/a b;$(id)"
	for errno, want := range map[unix.Errno]string{
		unix.ENOENT:  "sandglass run -- ls -ld -- '/x/a b;$(id)'",
		unix.ENOTDIR: "sandglass run -- ls -ld -- '/x/a b;$(id)'",
		unix.EACCES:  "sandglass run -- cat -- '/x/a b;$(id)'   # to read it",
		unix.EISDIR:  "sandglass run -- ls -- '/x/a b;$(id)'   # what it holds",
	} {
		s := session{end: &Ending{}, box: &Box{Config: wire.Config{Argv: []string{name}}}, failed: &wire.Report{Type: wire.TypeNotStarted, Errno: uint32(errno)}}
		s.verdict()
		if len(s.end.Hints) == 0 || s.end.Hints[0] != want {
			t.Errorf("%v: %q, want %q", errno, s.end.Hints, want)
		}
	}
}
