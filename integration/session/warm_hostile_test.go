package session

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

// atStart is the flags for an interpreter that runs code before it waits for its text,
// as one does whose directory of modules an earlier run could write to.
func atStart(t *testing.T, who testkit.Who, code string) (flags []string, dir string) {
	t.Helper()
	testkit.Requires(t, "python3")
	dir = testkit.Dir(t)
	if err := os.WriteFile(filepath.Join(dir, "sitecustomize.py"), []byte(code), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return append(who.Flags(), "-v", dir+":/evil:rw", "-e", "PYTHONPATH=/evil", "--timeout", "60s"), dir
}

// made waits for a file that such code makes, and takes it away.
func made(t *testing.T, dir, name string) {
	t.Helper()
	testkit.Eventually(t, name, func() bool { return os.Remove(filepath.Join(dir, name)) == nil })
}

// holdWhileIdle takes more than its limit once the interpreter waits, keeps it for a
// tenth of a second of CPU time, and then ends the waiting to tell that it could.
const holdWhileIdle = `import os, socket, time
if os.fork() == 0:
    os.setsid()
    time.sleep(1.3)  # between two looks of one in each second
    if os.environ["ATTACK"] == "memory":
        held = b"x" * (100 << 20)
    else:
        held = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for i in range(900)]
        for s in held:
            s.connect(("127.0.0.1", 9))
            s.send(b"x" * 60000, socket.MSG_MORE)
    until = time.process_time() + .1
    while time.process_time() < until: pass
    open('/evil/held', 'w').close()
    os.kill(os.getppid(), 9)
    os._exit(0)
`

// TestWarmIsWatchedWhileItWaits: what runs beside an interpreter that waits is looked at
// as often as any program.
func TestWarmIsWatchedWhileItWaits(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		flags, dir := atStart(t, who, holdWhileIdle)
		for _, attack := range []string{"memory", "sockets"} {
			r, w := pipe(t)
			s := testkit.OpenSession(t, testkit.Opts{Who: who, Stderr: w}, "ready", append(flags, "-m", "32m", "--warm", "python=2", "-e", "ATTACK="+attack)...)
			w.Close()
			if err := r.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(r)
			const want = "sandglass: error: --warm python=2: no such sandbox can be kept ready, runs are made without: they end while they wait"
			if !lines.Scan() || lines.Text() != want {
				t.Errorf("%s: %q, want %q", attack, lines.Text(), want)
			}
			if os.Remove(filepath.Join(dir, "held")) == nil {
				t.Errorf("%s: more than the limit was held", attack)
			}
			s.End()
		}
	})
}

// useAndVanish has a child use CPU time before the release, which ends right after it
// and that nobody waits for.
const useAndVanish = `import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
if os.fork() == 0:
    while time.process_time() < 1: pass
    open("/evil/used", "w").close()
    while os.path.exists("/code/.text") and os.stat("/code/.text").st_size == 0: time.sleep(.0005)
    os._exit(0)
`

// TestWarmCPUTimeOfWhoVanishes: what the interpreter used before its release is no
// credit for the program.
func TestWarmCPUTimeOfWhoVanishes(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		flags, dir := atStart(t, who, useAndVanish)
		s := testkit.OpenSession(t, testkit.Opts{Who: who}, "ready", append(flags, "--warm", "python=1", "--cpu-time", "2s")...)
		made(t, dir, "used")
		code := "import time\nn = 0\nwhile True:\n    now = int(time.process_time() * 10)\n    if now > n: print(now / 10, flush=True)\n    n = now\n"
		a := s.Ask(fmt.Sprintf(`"lang":"python","code":%s,"options":{}`, quoted(code)))
		own := lastNumberOf(a.Result.Stdout.Text)
		if a.Result.Outcome != result.CPUTime || !a.Result.Warm || own > 2.5 {
			t.Errorf("%s after %v s of its own, warm %v", a.Result.Outcome, own, a.Result.Warm)
		}
		s.End()
	})
}

func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		return ""
	}
	return string(b)
}

// lastNumberOf is the last word of a text, -1 for none.
func lastNumberOf(text string) float64 {
	f := strings.Fields(text)
	if len(f) == 0 {
		return -1
	}
	n, err := strconv.ParseFloat(f[len(f)-1], 64)
	if err != nil {
		return -1
	}
	return n
}

// fillSockets fills sockets that are in no table (connect(2) to AF_UNSPEC).
const fillSockets = `import ctypes, socket
held = []
def fill(mb):
    left = mb << 20
    while left > 0:
        s, t = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for i in range(2))
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 30)
        s.bind(("127.0.0.1", 0))
        t.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 30)
        room = min(left, s.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF))
        for i in range(room // 60000): t.sendto(b"x" * 60000, s.getsockname())
        t.close()
        ctypes.CDLL(None).connect(s.fileno(), bytes(16), 16)
        held.append(s)
        left -= room
`

// TestWarmSocketsOfBefore: what such sockets held before the release is not taken for
// the host's, and with as much as the limit leaves the run goes on.
func TestWarmSocketsOfBefore(t *testing.T) {
	who := testkit.AsUser(t)
	// Once: the next one that waits would be a neighbour with as much.
	flags, dir := atStart(t, who, "import filling, os\nif os.path.exists('/evil/todo'):\n    os.remove('/evil/todo')\n    filling.fill(36)\n    open('/evil/filled', 'w').close()\n")
	if err := os.WriteFile(filepath.Join(dir, "filling.py"), []byte(fillSockets), 0o644); err != nil {
		t.Fatal(err)
	}
	if who.Limited() { // which charges for what has come
		testkit.Skip(t, "a user without control groups", "one with")
	}
	for _, c := range []struct {
		mb   int
		want result.Outcome
	}{{46, result.Memory}, {1, result.Exited}} { // in this order: what the kernel has yet to free is the host's for the next one
		if err := os.WriteFile(filepath.Join(dir, "todo"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		s := testkit.OpenSession(t, testkit.Opts{Who: who}, "ready", append(flags, "--warm", "python=1", "-m", "80m")...)
		made(t, dir, "filled")
		code := fmt.Sprintf("import filling, time\nfilling.fill(%d)\ntime.sleep(%d // 10)\n", c.mb, c.mb)
		a := s.Ask(fmt.Sprintf(`"lang":"python","code":%s`, quoted(code)))
		if a.Result.Outcome != c.want || !a.Result.Warm {
			t.Errorf("%d MB more: %s, warm %v, %q", c.mb, a.Result.Outcome, a.Result.Warm, a.Result.Stderr.Text)
		}
		s.End()
	}
}
