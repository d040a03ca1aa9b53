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
			{"timeout", "--timeout=3s", "sleep 1000", none, result.Timeout, 124},
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

// What ends sandglass with nothing done, a crash or SIGKILL to all of its job,
// leaves the terminal to the guard, and it nothing for the shell to read.
func TestTerminalIsRestoredAfterSIGKILL(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for _, c := range []struct {
			name string
			kill func(p *person)
			exit int
		}{
			{"SIGKILL", func(p *person) { p.run.Kill() }, 137},
			{"SIGKILL to the job", func(p *person) { syscall.Kill(-p.run.PID(), syscall.SIGKILL) }, 137},
			{"SIGKILL while it is stopped", func(p *person) {
				p.run.Signal(syscall.SIGSTOP)
				testkit.Eventually(t, "the stop", func() bool { return stat(strconv.Itoa(p.run.PID()))[0] == "T" })
				p.Type("nobody reads this\r")
				p.run.Kill()
			}, 137},
			// Go's runtime ends with these as after a panic: exit code 2 and a trace.
			{"SIGSEGV", func(p *person) { p.run.Signal(syscall.SIGSEGV) }, 2},
			{"SIGABRT", func(p *person) { p.run.Signal(syscall.SIGABRT) }, 2},
		} {
			p := sit(t, who, "-it", "--timeout", "60s", "--", "sh", "-c", "echo up; exec sleep 1000")
			p.Expect("up\r\n")
			if !p.Raw() {
				t.Errorf("%s: the terminal was not raw: %+v", c.name, p.Settings())
			}
			c.kill(p)
			if o := p.run.Wait(); o.Exit != c.exit {
				t.Errorf("%s: exit %d, want %d", c.name, o.Exit, c.exit)
			}
			testkit.Eventually(t, "the terminal as it was", func() bool { return p.Settings() == p.before })
			p.nothingTyped(c.name)
		}
	})
}

// A guard that comes late does not fight with a shell that was quicker, and
// takes nothing of what is typed for that.
func TestGuardLeavesTheShellItsTerminal(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		p := sit(t, who, "-it", "--timeout", "60s", "--", "sh", "-c", "echo up; exec sleep 1000")
		p.Expect("up\r\n")
		list := guards(t, p.run.PID())
		if len(list) != 1 {
			t.Fatalf("guards %v", list)
		}
		end, err := unix.PidfdOpen(list[0], 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(end)
		if err := syscall.Kill(list[0], syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, "the guard's stop", func() bool { return stat(strconv.Itoa(list[0]))[0] == "T" })
		p.run.Kill()
		p.run.Wait()
		shell := p.Settings() // as readline sets it: still raw, but for what a line editor needs
		shell.Lflag |= unix.ISIG
		shell.Oflag |= unix.OPOST
		if err := unix.IoctlSetTermios(int(p.Slave.Fd()), unix.TCSETS, &shell); err != nil {
			t.Fatal(err)
		}
		p.Type("ls\r")
		syscall.Kill(list[0], syscall.SIGCONT)
		testkit.WaitPidfd(t, end)
		if now := p.Settings(); now != shell {
			t.Errorf("the terminal is not as the shell has set it: %+v, want %+v", now, shell)
		}
		line := make([]byte, 3)
		if n, err := p.Slave.Read(line); err != nil || string(line[:n]) != "ls\r" {
			t.Errorf("the shell read %q, %v", line[:n], err)
		}
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
		p := sit(t, who, "-it", "--timeout", "60s", "--", "sh", "-c", "echo up; read x; echo got $x; until [ \"$(stty size)\" = '44 102' ]; do :; done; echo sized")
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
		p.Expect("got it\r\nsized\r\n")
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

// Stopped by somebody, sent to the background and fetched again, it goes on: the
// time in the background is no end of what is typed, with a key for the shell
// meanwhile and without.
func TestJobGoesOn(t *testing.T) {
	testkit.Requires(t, "bash")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for _, meanwhile := range []string{"read x", "sleep 1"} {
			x := testkit.NewTerminal(t)
			before := x.Settings()
			p := x.Start(testkit.Opts{Who: who, Setup: func(cmd *exec.Cmd) {
				cmd.Args = append([]string{"bash", "--norc", "--noprofile", "-ic",
					`set -m; "$@"; bg; echo in the back; ` + meanwhile + `; fg; echo "code $?"`, "bash"}, cmd.Args...)
				cmd.Path = "/bin/bash"
			}}, "-it", "--timeout", "60s", "--", "sh", "-c", "echo up; read x; echo got $x; exit 5")
			x.Expect("up\r\n")
			shell := strconv.Itoa(p.PID())
			children, err := os.ReadFile("/proc/" + shell + "/task/" + shell + "/children")
			pid, _ := strconv.Atoi(strings.TrimSpace(string(children)))
			if err != nil || pid == 0 {
				t.Fatalf("the shell's children: %q, %v", children, err)
			}
			syscall.Kill(pid, syscall.SIGSTOP)
			x.Expect("in the back\r\n")
			if meanwhile == "read x" {
				x.Type("\n")
			}
			testkit.Eventually(t, "a raw terminal", x.Raw)
			x.Type("it\r")
			x.Expect("got it\r\n")
			x.Expect("code 5\r\n")
			p.Wait()
			if now := x.Settings(); now != before {
				t.Errorf("%s: the terminal is not as it was: %+v, before %+v", meanwhile, now, before)
			}
		}
	})
}
