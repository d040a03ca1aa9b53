package cli

import (
	"io"
	"os/exec"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

// onTerminal runs sandglass with a terminal as its stderr, and returns what
// that showed.
func onTerminal(t *testing.T, o testkit.Opts, args ...string) (testkit.Output, string) {
	t.Helper()
	master, slave := testkit.PTY(t)
	defer master.Close()
	shown := make(chan string)
	go func() {
		text, _ := io.ReadAll(master) // EIO is a terminal's end of file
		shown <- strings.ReplaceAll(string(text), "\r\n", "\n")
	}()
	o.Setup = func(cmd *exec.Cmd) { cmd.Stderr = slave }
	out := testkit.Run(t, o, args...)
	slave.Close()
	return out, <-shown
}

// A person is told what a bare exit code does not tell, once, on a terminal
// alone, and not with -q.
func TestNotesOnATerminal(t *testing.T) {
	testkit.Requires(t, "python3")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir := own(t, who)
		put(t, who, 0o644, "print(1)\n", dir, "plot.py")
		for _, c := range []struct {
			name  string
			flags []string
			argv  []string
			exit  int
			want  string // the note; "" is none
		}{
			{"nothing to say", nil, []string{"true"}, 0, ""},
			{"own exit code", nil, []string{"false"}, 1, ""},
			{"timeout", []string{"--timeout", "300ms"}, []string{"sleep", "1000"}, 124, "stopped: the time limit of 300ms was reached"},
			{"cpu time", []string{"--cpu-time", "200ms", "--timeout", "60s"}, []string{"sh", "-c", "while :; do :; done"}, 124,
				"stopped: the CPU time limit of 200ms was reached"},
			{"memory", []string{"--memory", "64m", "--timeout", "60s"},
				[]string{"python3", "-c", "import time\nx=[]\nfor i in range(300): x.append(bytearray(b'x')*(1<<20))\ntime.sleep(50)"}, 137,
				"stopped: out of memory, the limit is 64m"},
			{"output cut", []string{"--output-limit", "1k"}, []string{"sh", "-c", "head -c 2000 /dev/zero"}, 0, "stdout was cut at 1k, --output-limit"},
			{"both cut", []string{"--output-limit", "1k"}, []string{"sh", "-c", "head -c 2000 /dev/zero; head -c 2000 /dev/zero >&2"}, 0,
				"stdout and stderr were cut at 1k, --output-limit"},
			{"output kill", []string{"--output-limit", "1k", "--on-output-limit", "kill"}, []string{"yes"}, 153,
				"stopped: the output limit of 1k was reached"},
			{"skipped artefacts", []string{"--out", dir, "--force"}, []string{"sh", "-c", "cd /out; ln -s a b; mkfifo c; echo >d"}, 0,
				"2 entries of /out were not collected: 1 fifo, 1 symlink"},
			{"a list without the host", []string{"--allow-host", "api.example.org"},
				[]string{"python3", "-c", "import socket\ntry: socket.getaddrinfo('other.example.org', 443)\nexcept OSError: exit(3)"}, 3,
				"other.example.org was asked for 2 times: not in the list, --allow-host other.example.org would add it (port 443)"},
			{"a list without the host, and the program does without it", []string{"--allow-host", "api.example.org"},
				[]string{"python3", "-c", "import socket\ntry: socket.getaddrinfo('other.example.org', 443)\nexcept OSError: pass"}, 0, ""},
			{"a script that is not inside", nil, []string{"python3", "plot.py"}, 2,
				"plot.py is not inside; one of these brings it: " + strings.Join(append([]string{"sandglass run"}, who.Flags()...), " ") + " plot.py, or -v \"$PWD:/work\""},
		} {
			args := append(append(append([]string{}, c.flags...), "--"), c.argv...)
			out, shown := onTerminal(t, testkit.Opts{Who: who, Dir: dir}, args...)
			if c.want != "" {
				c.want = "sandglass: " + c.want + "\n"
			}
			if i := strings.Index(shown, "sandglass: "); i >= 0 {
				shown = shown[i:]
			} else {
				shown = ""
			}
			if out.Exit != c.exit || shown != c.want {
				t.Errorf("%s: exit %d, %q, want %d, %q", c.name, out.Exit, shown, c.exit, c.want)
			}
			if _, shown = onTerminal(t, testkit.Opts{Who: who, Dir: dir}, append([]string{"-q"}, args...)...); strings.Contains(shown, "sandglass: ") {
				t.Errorf("%s: -q says %q", c.name, shown)
			}
		}
	})
}
