package tty

import (
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"

	"golang.org/x/sys/unix"
)

// asked waits for what a run writes at its end to a terminal that it spoke to (see
// cmd/sandglass), first what takes back all that may be on, and returns the answer
// to its last question.
func (p *person) asked(screen string) string {
	p.t.Helper()
	p.Expect("\x18\x0f\x1b(B" + screen + "\x1b7\x1b[r\x1b8\x1b[0m\x1b[4l\x1b>" +
		"\x1b[?1;9;1000;1001;1002;1003;1004;2004;2031;2048l\x1b[?7;25h\x1b[5n")
	var a, b int
	question := p.Expect("$p") + p.Expect("$p")
	if n, err := fmt.Sscanf(question, "\x1b[?%d$p\x1b[?%d$p", &a, &b); n != 2 || err != nil || a < 10000 || b < 10000 {
		p.t.Fatalf("%q: %v", question, err)
	}
	return fmt.Sprintf("\x1b[?%d;0$y\x1b[?%d;0$y", a, b)
}

// What a terminal answers to the program is never the shell's, however late: the
// run ends, and gives the terminal back, when it has answered all.
func TestAnswersAfterTheEnd(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for _, c := range []struct {
			name, script string
			flags        []string
			outcome      result.Outcome
			exit         int
		}{
			{"exit", `printf 'up\033[6n\033[21t\033[5n'; exit 3`, nil, result.Exited, 3},
			{"timeout", `printf 'up\033]10;?\007'; exec sleep 1000`, []string{"--timeout", "3s"}, result.Timeout, 124},
			{"ENQ", `printf 'up\005'`, nil, result.Exited, 0},
			{"eight bits", `printf 'up\2336n'`, nil, result.Exited, 0},
			{"an unfinished sequence", `printf 'up\033P+q'`, nil, result.Exited, 0},
		} {
			x := testkit.NewTerminal(t)
			p := &person{Terminal: x, t: t, before: x.Settings()}
			flags := append([]string{"-it", "--timeout=60s"}, c.flags...)
			if c.flags != nil {
				flags = append([]string{"-it"}, c.flags...)
			}
			p.run = x.Start(testkit.Opts{Who: who, Env: []string{"TERM=xterm"}}, append(flags, "--", "sh", "-c", c.script)...)
			last := p.asked("\x1b[?47l")
			if !p.Raw() {
				t.Errorf("%s: the terminal is given back before it has answered", c.name)
			}
			// The second one is the program's, and not the last.
			for _, answer := range []string{"\x1b[33;1R", "\x1b[0n", "\x1b]lrm -rf /\x1b\\", "\x1b[0n", last} {
				p.Type(answer)
			}
			p.ends(c.outcome, c.exit)
			p.nothingTyped(c.name)
		}
	})
}

// nothingTyped is what a shell that reads next finds.
func (p *person) nothingTyped(name string) {
	p.t.Helper()
	s := p.Settings()
	s.Lflag &^= unix.ICANON // else part of a line does not count
	if err := unix.IoctlSetTermios(int(p.Slave.Fd()), unix.TCSETS, &s); err != nil {
		p.t.Fatal(err)
	}
	if n, err := unix.IoctlGetInt(int(p.Slave.Fd()), unix.TIOCINQ); err != nil || n != 0 {
		p.t.Errorf("%s: %d bytes are left for the shell, %v", name, n, err)
	}
}

// A terminal that answers to less, and one that answers nothing, hold up no end.
func TestTerminalThatDoesNotAnswer(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for _, answer := range []string{"", "\x1b[0n"} {
			x := testkit.NewTerminal(t)
			p := &person{Terminal: x, t: t, before: x.Settings()}
			p.run = x.Start(testkit.Opts{Who: who, Env: []string{"TERM=xterm"}}, "-it", "--timeout", "60s", "--", "printf", `up\033[6n`)
			p.asked("\x1b[?47l")
			p.Type(answer)
			p.ends(result.Exited, 0)
			p.nothingTyped("answer " + answer)
		}
	})
}

// Nothing is asked where nothing was said, where it would only be seen as text,
// and where the output is no terminal's, or another's.
func TestNoQuestions(t *testing.T) {
	other := testkit.NewTerminal(t)
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		var pipe strings.Builder
		for _, c := range []struct {
			term, flag, text string
			to               io.Writer // nil: the terminal
			want             string
		}{
			{"xterm", "-it", "plain \a\u00e9", nil, "plain \a\u00e9"},
			{"dumb", "-it", "\x1b[1m", nil, "\x1b[1m"},
			{"", "-it", "\x1b[1m", nil, "\x1b[1m"},
			{"xterm", "-t", "\x1b[1m", nil, "\x1b[1m"},
			{"xterm", "-it", "\x1b[1m", &pipe, ""},
			{"xterm", "-it", "\x1b[1m", other.Slave, ""},
		} {
			x := testkit.NewTerminal(t)
			p := &person{Terminal: x, t: t, before: x.Settings()}
			p.run = x.Start(testkit.Opts{Who: who, Env: []string{"TERM=" + c.term}, Setup: func(cmd *exec.Cmd) {
				if c.to != nil {
					cmd.Stdout = c.to
				}
			}}, c.flag, "--timeout", "60s", "--", "printf", "%s", c.text)
			p.ends(result.Exited, 0)
			if got := p.Shown(); got != c.want {
				t.Errorf("%+v: %q", c, got)
			}
		}
		if pipe.String() != "\x1b[1m" {
			t.Errorf("the pipe got %q", pipe.String())
		}
		if got := other.Shown(); strings.Trim(got, "\x1b[1m") != "" {
			t.Errorf("another terminal was asked: %q", got)
		}
	})
}

// Reports of the mouse that the program asked for, and the other screen, end with
// a program that was stopped. One that has come back itself is left where it is.
func TestTerminalIsTakenBack(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for _, c := range []struct{ said, screen string }{
			{`\033[?1003h`, "\x1b[?47l"},
			{`\033[?1049h`, "\x1b[?1049l"},
			{`\033[?1049h\033[?1049l`, "\x1b[?47l"},
			{`\033[?1049l\033[?1049h\007`, "\x1b[?1049l"},
			{`\033[?10`, "\x1b[?1049l"},
		} {
			x := testkit.NewTerminal(t)
			p := &person{Terminal: x, t: t, before: x.Settings()}
			p.run = x.Start(testkit.Opts{Who: who, Env: []string{"TERM=xterm"}}, "-it", "--timeout", "60s", "--", "sh", "-c",
				"stty raw -echo; printf 'up"+c.said+"'; read x; printf 49h; echo on; exec cat")
			p.Expect(strings.ReplaceAll(strings.ReplaceAll("up"+c.said, `\033`, "\x1b"), `\007`, "\a"))
			p.Type("\n")
			p.Expect("49hon\n")
			p.run.Signal(syscall.SIGTERM)
			p.Type("\x1b[M !!" + p.asked(c.screen))
			p.ends(result.Canceled, 143)
			p.nothingTyped(c.said)
		}
	})
}
