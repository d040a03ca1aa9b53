package tty

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"

	"golang.org/x/sys/unix"
)

// The program's three streams are a terminal of the sandbox's own devpts, with
// the name that it has there and the caller's size, and it is the session's.
func TestTerminalInside(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for _, flags := range [][]string{{"-t"}, {"-it"}, {"-i", "--tty"}} {
			p := sit(t, who, append(flags, "--", "sh", "-c", `tty; stty size; echo $TERM; for f in 0 1 2; do readlink /proc/self/fd/$f; done
				ls /dev/pts | tr '\n' ' '; cut -d ' ' -f 6,7,8 /proc/$$/stat; echo $$; echo err >&2; echo own >/dev/tty`)...)
			o := p.ends(result.Exited, 0)
			got := strings.ReplaceAll(p.Shown(), "\r", "")
			var pid int
			head := "/dev/pts/0\n33 101\nxterm\n/dev/pts/0\n/dev/pts/0\n/dev/pts/0\n0 ptmx "
			tail, ok := strings.CutPrefix(got, head)
			// 34816 is 136:0; the program leads the session and is in the foreground.
			var session, tty, front int
			if n, err := fmt.Sscanf(tail, "%d %d %d\n%d\n", &session, &tty, &front, &pid); !ok || n != 4 || err != nil ||
				session != pid || tty != 34816 || front < pid || !strings.HasSuffix(tail, "\nerr\nown\n") {
				t.Errorf("%q: %q", flags, got)
			}
			if o.Result.Stderr.Bytes != 0 || o.Result.Stdout.Bytes == 0 || o.Result.Stdout.Bytes != o.Result.Stdout.Kept {
				t.Errorf("%q: %+v, %+v", flags, o.Result.Stdout, o.Result.Stderr)
			}
		}
	})
}

// Without -t there is none, whatever the caller's streams are.
func TestNoTerminalWithoutT(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		p := sit(t, who, "-i", "--", "sh", "-c", `tty; ls /dev | tr '\n' ' '; cut -d ' ' -f 7 /proc/$$/stat`)
		p.ends(result.Exited, 0)
		want := "not a tty\nfd full null random shm stderr stdin stdout urandom zero 0\n"
		if got := strings.ReplaceAll(p.Shown(), "\r", ""); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// The caller's terminal is not inside: neither its device nor a way to it
// (CVE-2017-5226). What the program sets in its own, the caller's does not have.
func TestCallersTerminalIsNotInside(t *testing.T) {
	testkit.Requires(t, "python3")
	const script = `
import os, fcntl, termios, errno
for f in 0, 1, 2, os.open("/dev/tty", os.O_RDWR):
    s = os.fstat(f)
    print("dev", s.st_dev if f < 3 else "tty", os.major(s.st_rdev), os.minor(s.st_rdev))
for name, nr, arg in ("TIOCSTI", 0x5412, b"x"), ("TIOCSTI high", 0x5412 | 1 << 32, b"x"), ("TIOCLINUX", 0x541c, b"\x03"), ("TIOCCONS", 0x541d, 0), ("TIOCSETD", 0x5423, b"\2\0\0\0"):
    try:
        fcntl.ioctl(0, nr & 0xffffffff, arg)
        print(name, "done")
    except OSError as e:
        print(name, errno.errorcode[e.errno])
fcntl.ioctl(0, termios.TIOCSWINSZ, b"\x07\0\x09\0\0\0\0\0")
a = termios.tcgetattr(0); a[3] ^= termios.ECHOE; termios.tcsetattr(0, 0, a)
`
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		p := sit(t, who, "-it", "--", "python3", "-c", script)
		p.ends(result.Exited, 0)
		var host unix.Stat_t
		if err := unix.Fstat(int(p.Slave.Fd()), &host); err != nil {
			t.Fatal(err)
		}
		var dev [3]uint64
		var rest string
		got := strings.ReplaceAll(p.Shown(), "\r", "")
		if n, err := fmt.Sscanf(got, "dev %d 136 0\ndev %d 136 0\ndev %d 136 0\ndev tty 5 0\n%s", &dev[0], &dev[1], &dev[2], &rest); n != 4 || err != nil {
			t.Fatalf("%q: %v", got, err)
		}
		if dev[0] != dev[1] || dev[0] != dev[2] || dev[0] == host.Dev {
			t.Errorf("the streams are on %d, the caller's terminal on %d", dev, host.Dev)
		}
		if want := "\nTIOCSTI EPERM\nTIOCSTI high EPERM\nTIOCLINUX EPERM\nTIOCCONS EPERM\nTIOCSETD EPERM\n"; !strings.HasSuffix(got, want) {
			t.Errorf("%q, want it to end in %q", got, want)
		}
		if w, err := unix.IoctlGetWinsize(int(p.Slave.Fd()), unix.TIOCGWINSZ); err != nil || w.Row != 33 || w.Col != 101 {
			t.Errorf("the caller's terminal has the size %+v, %v", w, err)
		}
	})
}

// With -t there is the one, and no other can be made: its other side, by which
// the program could type, is not inside. --pty allows more beside it.
func TestTheOnlyTerminal(t *testing.T) {
	testkit.Requires(t, "python3")
	const script = "import os,errno\nfor n in '/dev/pts/ptmx','/dev/ptmx':\n  try: os.open(n, os.O_RDWR); print(n)\n  except OSError as e: print(n, errno.errorcode[e.errno])"
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for _, c := range []struct{ flag, want string }{
			{"-t", "/dev/pts/ptmx ENOSPC\r\n/dev/ptmx ENOENT\r\n"},
			{"--pty", "/dev/pts/ptmx\r\n/dev/ptmx\r\n"},
			{"--explain-denials", "/dev/pts/ptmx ENOSPC\r\n/dev/ptmx ENOENT\r\n"},
		} {
			if o := testkit.Run(t, testkit.Opts{Who: who}, "-t", c.flag, "--", "python3", "-c", script); o.Exit != 0 || o.Stdout != c.want {
				t.Errorf("-t %s: exit %d, %q, want %q", c.flag, o.Exit, o.Stdout, c.want)
			}
		}
	})
}

// What -i and -t need of the caller's streams.
func TestStreamsThatAreNone(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := testkit.Run(t, testkit.Opts{Who: who}, "-it", "--", "true")
		if o.Exit != 125 || o.Result.Outcome != result.Refused || !strings.HasPrefix(o.Stderr, "sandglass: error: -it: stdin is not a terminal\nhint: ") {
			t.Errorf("-it: exit %d, %q, %q", o.Exit, o.Result.Outcome, o.Stderr)
		}
		o = testkit.Run(t, testkit.Opts{Who: who, Stdin: strings.NewReader("never read")}, "-t", "--", "stty", "size")
		if o.Exit != 0 || o.Stdout != "24 80\r\n" || o.Stderr != "" {
			t.Errorf("-t: exit %d, %q, %q", o.Exit, o.Stdout, o.Stderr)
		}
		o = testkit.Run(t, testkit.Opts{Who: who}, "-t", "--timeout", "1s", "--", "cat")
		if o.Exit != 124 || o.Stdout != "" {
			t.Errorf("-t cat: exit %d, %q: nobody types there", o.Exit, o.Stdout)
		}
	})
}

// With -t alone the caller's terminal stays as it is, and what is typed is not
// the program's.
func TestTAlone(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		p := sit(t, who, "-t", "--timeout", "60s", "--", "sh", "-c", "echo up; read x; echo got $x")
		p.Expect("up\r")
		p.restored()
		p.Type("typed\n")
		p.Expect("typed\r\n")
		p.Type("\x03")
		p.ends(result.Canceled, 130)
		if got := p.Shown(); strings.Contains(got, "got") {
			t.Errorf("%q", got)
		}
	})
}

// A program that lets go of its terminal still has it, what holds it in the
// background keeps no run open, and its end is not lost.
func TestTerminalLetGo(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		p := sit(t, who, "-it", "--timeout", "60s", "--", "sh", "-c",
			"exec 3<>/work/f <&- >&- 2>&-; (exec </dev/pts/0; read x; echo later $x >/dev/tty; echo >/work/done); while ! [ -e /work/done ]; do :; done; setsid sleep 1000 </dev/tty >/dev/tty & exit 7")
		p.Type("x\n")
		p.Expect("later x\r\n")
		p.ends(result.Exited, 7)
	})
}

// A device of the host's in the place of /dev/tty is not handed in.
func TestDevTTYIsJudged(t *testing.T) {
	if st, err := os.Stat("/dev/tty"); err != nil || st.Mode()&os.ModeCharDevice == 0 {
		testkit.Skip(t, "/dev/tty", "none")
	}
	o := testkit.Run(t, testkit.Opts{Who: testkit.AsUser(t)}, "-t", "--", "sh", "-c", "ls -l /dev/tty | grep -o '5, *0'; setsid sh -c ': </dev/tty' 2>&1 | grep -o 'No such device or address'")
	if o.Exit != 0 || o.Stdout != "5, 0\r\nNo such device or address\r\n" {
		t.Errorf("exit %d, %q", o.Exit, o.Stdout)
	}
}
