package tty

import (
	"bytes"
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
	"sandglass/pkg/sandbox"
)

// The limit of the output holds for a terminal: the head is kept to the byte,
// the flood is dropped, and the clock goes on.
func TestFlood(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := testkit.Run(t, testkit.Opts{Who: who}, "-t", "--output-limit", "10000", "--timeout", "3s", "--", "yes")
		if want := strings.Repeat("y\r\n", 3334)[:10000]; o.Stdout != want || o.Exit != 124 || !o.Result.Stdout.Truncated || o.Result.Stdout.Kept != 10000 {
			t.Errorf("exit %d, %d bytes, %+v", o.Exit, len(o.Stdout), o.Result.Stdout)
		}
		o = testkit.Run(t, testkit.Opts{Who: who}, "-t", "--output-limit", "1m", "--", "sh", "-c", "head -c 1000000 /dev/zero; echo end")
		if len(o.Stdout) != 1000005 || !strings.HasSuffix(o.Stdout, "\x00end\r\n") || o.Exit != 0 || o.Result.Stdout.Truncated {
			t.Errorf("exit %d, %d bytes, %+v", o.Exit, len(o.Stdout), o.Result.Stdout)
		}
		o = testkit.Run(t, testkit.Opts{Who: who}, "-t", "--output-limit", "1k", "--timeout", "60s", "--", "sh", "-c", "head -c 5000000 /dev/zero; exit 4")
		if o.Exit != 4 || o.Result.Stdout.Bytes != 5000000 || o.Result.Stdout.Kept != 1024 {
			t.Errorf("exit %d, %+v", o.Exit, o.Result.Stdout)
		}
	})
}

// The caller's side takes nothing, of neither stream: the time limit comes all the
// same, and so does the end, with a word for a person that nobody takes either.
func TestReaderThatDoesNotRead(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		master, slave := testkit.PTY(t)
		defer master.Close()
		defer slave.Close()
		o := testkit.Run(t, testkit.Opts{Who: who, Stdout: slave, Stderr: slave}, "-t", "--output-limit", "1g", "--timeout", "3s", "--", "yes")
		if o.Exit != 125 || o.Result.Outcome != result.Timeout || o.Result.Error != "writing stdout: the reader takes nothing any more" {
			t.Errorf("exit %d, %q, %q", o.Exit, o.Result.Outcome, o.Result.Error)
		}
	})
}

// The program reads nothing of what is typed: neither the clock nor the caller's
// signals wait for it.
func TestProgramThatDoesNotRead(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		p := sit(t, who, "-it", "--timeout", "60s", "--", "sh", "-c", "stty raw -echo; echo up; exec sleep 1000")
		p.Expect("up\n")
		p.Paste(strings.Repeat("x", 1<<20))
		p.run.Signal(syscall.SIGTERM)
		p.ends(result.Canceled, 143)
	})
}

// What is typed arrives whole and in order, when the program takes its time.
func TestPaste(t *testing.T) {
	testkit.Requires(t, "python3")
	const script = "import os,sys,tty,hashlib\ntty.setraw(0)\nprint('up', flush=True)\nh, n = hashlib.sha256(), 0\n" +
		"while n < 1000000:\n  b = os.read(0, 4096)\n  n += len(b); h.update(b)\nprint(n, h.hexdigest())"
	s := spec(t, "python3", "-c", script)
	var out bytes.Buffer
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	up := &seen{buf: &out, text: "up\n", found: func() {
		w.Write(bytes.Repeat([]byte("0123456789"), 100000))
	}}
	s.Stdin, s.Stdout = r, up
	s.Limits.Timeout = time.Minute
	res, err := sandbox.Run(context.Background(), s)
	// sha256sum of the digits, 100000 times.
	const want = "up\n1000000 ec21d64624228af3ecd4bdaa8239e32ed943b01e26934cd5610fddb361426dc6\n"
	if err != nil || res.ExitCode != 0 || out.String() != want {
		t.Errorf("%v, exit %d, %q", err, res.ExitCode, out.String())
	}
}

// seen calls found once when text has come, beside the copy.
type seen struct {
	buf   *bytes.Buffer
	text  string
	found func()
}

func (s *seen) Write(p []byte) (int, error) {
	n, err := s.buf.Write(p)
	if s.found != nil && strings.Contains(s.buf.String(), s.text) {
		go s.found()
		s.found = nil
	}
	return n, err
}

// spec is a run of the Go API with a terminal.
func spec(t *testing.T, argv ...string) sandbox.Spec {
	t.Helper()
	s := sandbox.Default()
	s.InitPath = testkit.Binary(t)
	s.Program.Command = argv
	s.TTY, s.Spec.Stdin = true, true
	who := testkit.AsUser(t)
	if os.Geteuid() == 0 {
		who = testkit.AsRoot(t)
	}
	if flags := who.Flags(); len(flags) > 0 {
		s.AllowDegraded = strings.Split(flags[1], ",")
	}
	return s
}

// The Go API: a size, and an end of stdin that the program sees, whatever was
// typed before it.
func TestAPI(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", "40 90\r\nend\r\n"},
		{"a\n", "40 90\r\na\r\nend\r\n"},
		{"a\nb", "40 90\r\na\r\nbend\r\n"},
	} {
		s := spec(t, "sh", "-c", "stty -echo; stty size; cat; echo end")
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		s.Window, s.Stdin = sandbox.Window{Rows: 40, Cols: 90}, r
		s.Stdout = &seen{buf: &out, text: "40 90\r\n", found: func() {
			w.WriteString(c.in)
			w.Close()
		}}
		res, err := sandbox.Run(context.Background(), s)
		r.Close()
		if err != nil || res.ExitCode != 0 || out.String() != c.want {
			t.Errorf("%q: %v, exit %d, %q, want %q", c.in, err, res.ExitCode, out.String(), c.want)
		}
	}
}

// Sizes that come before the program, in a row, and no more of them.
func TestAPIResize(t *testing.T) {
	s := spec(t, "sh", "-c", "trap 'stty size; exit 0' WINCH; stty size; while :; do :; done")
	sizes := make(chan sandbox.Window)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	var out bytes.Buffer
	s.Window, s.Resize, s.Stdin = sandbox.Window{Rows: 1, Cols: 2}, sizes, r
	s.Stdout = &seen{buf: &out, text: "1 2\r\n", found: func() {
		sizes <- sandbox.Window{Rows: 3, Cols: 4}
		close(sizes)
	}}
	res, err := sandbox.Run(context.Background(), s)
	if err != nil || res.ExitCode != 0 || out.String() != "1 2\r\n3 4\r\n" {
		t.Errorf("%v, exit %d, %q", err, res.ExitCode, out.String())
	}
}
