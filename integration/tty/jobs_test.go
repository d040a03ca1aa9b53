package tty

import (
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

// Job control of a shell inside: stop, list, background, foreground, interrupt.
func TestJobControl(t *testing.T) {
	testkit.Requires(t, "bash")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		p := sit(t, who, "-it", "--timeout", "100s", "-e", "TERM=dumb", "-e", "PS1=$((1+1))ready ", "--", "bash", "--norc", "--noprofile")
		p.Expect("2ready ")
		if got := p.Shown(); strings.Contains(got, "no job control") {
			t.Errorf("%q", got)
		}
		p.Type("sleep 1000\r")
		p.Expect("sleep 1000\r\n")
		p.front("sleep")
		p.Type("\x1a")
		p.Expect("Stopped                 sleep 1000\r\n")
		p.Expect("2ready ")
		p.Type("jobs\r")
		p.Expect("[1]+  Stopped                 sleep 1000\r\n")
		p.Type("bg\r")
		p.Expect("[1]+ sleep 1000 &\r\n")
		p.Expect("2ready ")
		p.Type("fg\r")
		p.Expect("fg\r\nsleep 1000\r\n")
		p.front("sleep")
		p.Type("\x03")
		p.Expect("2ready ")
		p.Type("echo code$?\r")
		p.Expect("\r\ncode130\r\n")
		// Ctrl-C at the prompt is the shell's own, and ends nothing.
		p.Expect("2ready ")
		p.Type("garbage")
		p.Expect("garbage")
		p.Type("\x03")
		p.Expect("^C")
		// A signal between readline's look for one and its read is only seen with
		// the next key.
		p.Type("\r")
		p.Expect("2ready ")
		p.Type("exit 9\r")
		p.ends(result.Exited, 9)
	})
}

// front waits until the foreground job of the terminal is this program: what is
// typed before is the shell's.
func (p *person) front(name string) {
	p.t.Helper()
	testkit.Eventually(p.t, name+" in the foreground", func() bool { return foreground(p.run.PID()) == name })
}

// The keys of a terminal, to a program alone and to a script's child.
func TestKeys(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for _, c := range []struct {
			name, script, key string
			outcome           result.Outcome
			exit              int
			want              string
		}{
			{"Ctrl-C", "echo up; exec cat", "\x03", result.Signaled, 130, "^C"},
			{"Ctrl-\\", "echo up; exec cat", "\x1c", result.Signaled, 131, "^\\"},
			{"Ctrl-C caught", "trap 'echo caught; exit 4' INT; echo up; while :; do :; done", "\x03", result.Exited, 4, "^Ccaught\r\n"},
			{"Ctrl-D", "echo up; cat; echo end", "\x04", result.Exited, 0, "end\r\n"},
			{"raw inside", "stty raw -echo; echo up; head -c 1 | od -An -tx1; stty sane", "\x03", result.Exited, 0, " 03\n"},
			// Nobody would continue it: the kernel does not stop a group without a
			// parent in its session.
			{"Ctrl-Z", "echo up; exec cat", "\x1ax\n\x04", result.Exited, 0, "^Zx\r\nx\r\n"},
		} {
			p := sit(t, who, "-it", "--timeout", "60s", "--", "sh", "-c", c.script)
			switch {
			case c.script == "echo up; exec cat":
				p.Expect("up\r\n")
				p.cat()
			case c.name == "raw inside":
				p.Expect("up\n")
			default:
				p.Expect("up\r\n")
			}
			p.Type(c.key)
			p.Expect(c.want)
			p.ends(c.outcome, c.exit)
		}
	})
}

// A new size of the caller's terminal is the program's, with SIGWINCH.
func TestResize(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		p := sit(t, who, "-it", "--timeout", "60s", "--", "sh", "-c", "trap 'stty size' WINCH; trap 'exit 6' INT; stty size; while :; do :; done")
		p.Expect("33 101\r\n")
		p.Resize(50, 132)
		p.Expect("50 132\r\n")
		p.Resize(1, 1)
		p.Expect("1 1\r\n")
		p.Type("\x03")
		p.ends(result.Exited, 6)
	})
}
