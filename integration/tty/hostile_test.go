package tty

import (
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

// A program that hands its terminal to another session, whose leader ends, has it
// all the same, and no other can be made in the place of it when it lets go.
func TestTerminalOfAnotherSession(t *testing.T) {
	testkit.Requires(t, "python3")
	const script = `
import os, fcntl, termios, signal, sys, errno
signal.signal(signal.SIGHUP, signal.SIG_IGN)
fcntl.ioctl(0, termios.TIOCNOTTY)
if os.fork() == 0:
    os.setsid()
    fd = os.open("/dev/pts/0", os.O_RDWR)
    fcntl.ioctl(fd, termios.TIOCSCTTY, 0)
    os.write(fd, b"child\n")
    os._exit(0)
os.wait()
os.write(1, b"still\n")
x = os.read(0, 2)
os.write(1, b"got " + x)
for fd in 0, 1, 2:
    os.close(fd)
try:
    os.open("/dev/pts/ptmx", os.O_RDWR)
except OSError as e:
    sys.exit(40 if e.errno == errno.ENOSPC else 41)
sys.exit(42)
`
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		p := sit(t, who, "-it", "--timeout", "60s", "--", "python3", "-c", script)
		p.Expect("child\r\nstill\r\n")
		p.Type("x\r")
		p.Expect("got x\r\n")
		p.ends(result.Exited, 40)
	})
}

// Settings that change all the time, stopped output, sizes and keys in thousands
// from both sides: the run ends by the program's word, and the caller's terminal
// is as it was.
func TestStorms(t *testing.T) {
	testkit.Requires(t, "python3")
	const script = `
import os, fcntl, termios, random, struct, signal, threading
for s in range(1, 32):
    if s not in (signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD): signal.signal(s, lambda *a: None)
random.seed(1)
os.write(1, b"up\n")
stop = False
def output():
    while not stop: os.write(1, b"\x11\x13\x1a\n" * 100)
t = threading.Thread(target=output); t.start()
for i in range(1000):
    a = termios.tcgetattr(0)
    for k in range(4): a[k] = random.getrandbits(16)
    a[6] = [bytes([random.getrandbits(8)]) for _ in a[6]]
    termios.tcsetattr(0, termios.TCSANOW, a)
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("4H", *(random.getrandbits(16) for _ in range(4))))
    termios.tcflow(0, random.choice([termios.TCOOFF, termios.TCOON]))
    termios.tcflush(0, termios.TCIOFLUSH)
termios.tcflow(0, termios.TCOON)
stop = True
os._exit(9)
`
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		p := sit(t, who, "-it", "--timeout", "100s", "--", "python3", "-c", script)
		p.Expect("up\r\n")
		p.Paste(strings.Repeat("\x1a\x03\x1c\x04\x13\x11\x00x\r", 2000))
		for i := range uint16(500) {
			p.Resize(1+i%50, 1+i)
		}
		if o := p.run.Wait(); o.Exit != 9 || o.Result.Outcome != result.Exited {
			t.Errorf("exit %d, %q", o.Exit, o.Result.Outcome)
		}
		p.restored()
	})
}
