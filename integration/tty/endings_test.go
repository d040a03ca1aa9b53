package tty

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"

	"golang.org/x/sys/unix"
)

// However a run ends, the caller's terminal is as it was, and it was raw before.
func TestTerminalIsRestored(t *testing.T) {
	sig := func(s syscall.Signal) func(*person) { return func(p *person) { p.run.Signal(s) } }
	none := func(*person) {}
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for _, c := range []struct {
			name    string
			flags   string
			then    string // of the shell, after it has said that it is up
			do      func(*person)
			outcome result.Outcome
			exit    int
		}{
			{"exit", "", "read x; exit 3", func(p *person) { p.Type("\r") }, result.Exited, 3},
			{"signal", "", "read x; kill -SEGV $$", func(p *person) { p.Type("\r") }, result.Signaled, 139},
			{"Ctrl-C", "", "exec cat", func(p *person) { p.cat(); p.Type("\x03") }, result.Signaled, 130},
			{"timeout", "--timeout=2s", "sleep 1000", none, result.Timeout, 124},
			{"output", "--on-output-limit=kill --output-limit=4k", "read x; yes", func(p *person) { p.Type("\r") }, result.Output, 153},
			{"SIGINT", "", "sleep 1000", sig(syscall.SIGINT), result.Canceled, 130},
			{"SIGTERM", "", "sleep 1000", sig(syscall.SIGTERM), result.Canceled, 143},
			{"SIGHUP", "", "sleep 1000", sig(syscall.SIGHUP), result.Canceled, 129},
			{"SIGQUIT", "", "sleep 1000", sig(syscall.SIGQUIT), result.Canceled, 131},
			{"all settings changed inside", "", "stty raw -echo 9600; sleep 1000", sig(syscall.SIGTERM), result.Canceled, 143},
		} {
			t.Run(c.name, func(t *testing.T) {
				flags := append([]string{"-it", "--timeout=60s"}, strings.Fields(c.flags)...)
				if c.flags != "" && strings.Contains(c.flags, "--timeout") {
					flags = append([]string{"-it"}, strings.Fields(c.flags)...)
				}
				p := sit(t, who, append(flags, "--", "sh", "-c", "echo up; "+c.then)...)
				p.Expect("up\r\n")
				if !p.Raw() {
					t.Errorf("the terminal was not raw: %+v", p.Settings())
				}
				c.do(p)
				p.ends(c.outcome, c.exit)
			})
		}
	})
}

// SIGKILL leaves nothing that could reset the terminal but the guard, and that
// does not fight with a shell that was quicker.
func TestTerminalIsRestoredAfterSIGKILL(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		p := sit(t, who, "-it", "--timeout", "60s", "--", "sh", "-c", "echo up; sleep 1000")
		p.Expect("up\r\n")
		if !p.Raw() {
			t.Errorf("the terminal was not raw: %+v", p.Settings())
		}
		p.run.Kill()
		p.run.Wait()
		testkit.Eventually(t, "the terminal as it was", func() bool { return p.Settings() == p.before })
	})
}

// A line of ours is printed on a terminal that is itself again.
func TestErrorsAfterTheTerminal(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		p := sit(t, who, "-it", "--", "no-such-command")
		p.ends(result.Refused, 127)
		if got := p.Shown(); !strings.HasPrefix(got, "sandglass: error: command not found: no-such-command\r\n") {
			t.Errorf("%q", got)
		}
	})
}

// No guard is left, nor one started where no terminal is raw.
func TestNoGuardIsLeft(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for _, flag := range []string{"-it", "-t"} {
			p := sit(t, who, flag, "--timeout", "60s", "--", "sh", "-c", "echo up; sleep 1000")
			p.Expect("up\r")
			want := 0
			if flag == "-it" {
				want = 1
			}
			if list := guards(t, p.run.PID()); len(list) != want {
				t.Errorf("%s: guards %v, want %d", flag, list, want)
			}
			p.run.Signal(syscall.SIGTERM)
			p.ends(result.Canceled, 143)
			if list := guards(t, p.run.PID()); len(list) != 0 {
				t.Errorf("%s: %v are left", flag, list)
			}
		}
	})
}

// guards are the children of a process that reset a terminal, and those that
// have lost their parent.
func guards(t *testing.T, parent int) (list []int) {
	t.Helper()
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		pid, err := strconv.Atoi(d.Name())
		if err != nil {
			continue
		}
		cmd, _ := os.ReadFile("/proc/" + d.Name() + "/cmdline")
		f := stat(d.Name())
		if strings.HasPrefix(string(cmd), "sandglass-terminal\x00") && len(f) > 1 && f[1] == strconv.Itoa(parent) {
			list = append(list, pid)
		}
	}
	return list
}

// Stopped and continued by somebody else, who has set the terminal meanwhile as
// a shell does: it is raw again, and has the size of now.
func TestContinued(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		p := sit(t, who, "-it", "--timeout", "60s", "--", "sh", "-c", "echo up; read x; echo got $x; stty size")
		p.Expect("up\r\n")
		p.run.Signal(syscall.SIGSTOP)
		testkit.Eventually(t, "the stop", func() bool { return stat(strconv.Itoa(p.run.PID()))[0] == "T" })
		if err := unix.IoctlSetTermios(int(p.Slave.Fd()), unix.TCSETS, &p.before); err != nil {
			t.Fatal(err)
		}
		p.Resize(44, 102)
		p.run.Signal(syscall.SIGCONT)
		testkit.Eventually(t, "a raw terminal", p.Raw)
		p.Type("it\r")
		p.Expect("got it\r\n44 102\r\n")
		p.ends(result.Exited, 0)
	})
}

// In the background of a shell with job control it waits for its turn, before
// anything runs, and takes no terminal that is another's.
func TestBackgroundJob(t *testing.T) {
	testkit.Requires(t, "bash")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		x := testkit.NewTerminal(t)
		// A run of testkit's own gives the credentials and the environment; its
		// command line is put behind a shell.
		p := x.Start(testkit.Opts{Who: who, Setup: func(cmd *exec.Cmd) {
			cmd.Args = append([]string{"bash", "--norc", "--noprofile", "-ic",
				`set -m; "$@" & wait $!; jobs; fg; echo "code $?"`, "bash"}, cmd.Args...)
			cmd.Path = "/bin/bash"
		}}, "-it", "--timeout", "60s", "--", "sh", "-c", "echo run''ning; exit 5")
		before := x.Settings()
		shown := x.Expect("code 5\r\n")
		p.Wait()
		if !strings.Contains(shown, "Stopped") || strings.Count(shown, "running\r\n") != 1 || strings.Index(shown, "Stopped") > strings.Index(shown, "running\r\n") {
			t.Errorf("%q", shown)
		}
		if now := x.Settings(); now != before {
			t.Errorf("the terminal is not as it was: %+v, before %+v", now, before)
		}
	})
}
