package egress

import (
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

const listed = "v4.good.example:7000"

// TestConnectionsAtOnce: those over the limit wait, and are served later.
func TestConnectionsAtOnce(t *testing.T) {
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		s := w.serve(t, w.internet, good4+":7000", echo)
		o := w.python(t, who, "conn.py", append(allow(listed), "--net-connections", "4"), "waiting", "10", "4")
		printed(t, o, "first 4 0\nthen 6\n")
		if n := len(s.accepted); n != 10 {
			t.Errorf("the server saw %d connections, want 10", n)
		}
	})
}

// TestConnectionsInAll: those over the limit are refused by the kernel.
func TestConnectionsInAll(t *testing.T) {
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		s := w.serve(t, w.internet, good4+":7000", echo)
		o := w.python(t, who, "conn.py", append(allow(listed), "--net-connections-total", "5"), "many", "8", "closed")
		printed(t, o, "[('ECONNREFUSED', 3), ('x', 5)]\n")
		if n := len(s.accepted); n != 5 || len(o.Result.Network.Connections) != 5 {
			t.Errorf("the server saw %d connections and the result has %d, want 5", n, len(o.Result.Network.Connections))
		}
	})
}

// TestAttemptsCount: each address that is tried counts, so that a name with many
// of them makes no more of the limit.
func TestAttemptsCount(t *testing.T) {
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		s := w.serve(t, w.internet, other4+":7000", echo) // and good4, the name's first, refuses
		o := w.python(t, who, "conn.py", append(allow("several.example:7000"), "--net-connections-total", "5"), "many", "8", "closed", "several.example")
		printed(t, o, "[('ECONNREFUSED', 5), ('ECONNRESET', 1), ('x', 2)]\n")
		if n := len(s.accepted); n != 2 {
			t.Errorf("the server saw %d connections, want 2", n)
		}
		connections(t, o, "several.example:7000 "+other4+" closed", "several.example:7000 "+good4+" unreachable")
	})
}

// TestBytesUp: what leaves is the limit, to the byte.
func TestBytesUp(t *testing.T) {
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		var got atomic.Int64
		s := w.serve(t, w.internet, good4+":7000", func(c net.Conn) error {
			n, err := io.Copy(io.Discard, c)
			got.Add(n)
			return err
		})
		o := w.python(t, who, "conn.py", append(allow(listed), "--net-upload", "1m"), "up", "7000", "10000000")
		printed(t, o, "ECONNRESET\n")
		s.next(t)
		c := one(t, o)
		// The reset overtakes what the server had not read yet.
		if c.Verdict != result.ByteLimit || o.Result.Network.BytesUp != 1<<20 || got.Load() > 1<<20 || c.BytesUp != 1<<20 {
			t.Errorf("the server has %d bytes, the result %d: %+v", got.Load(), o.Result.Network.BytesUp, c)
		}
	})
}

// TestBytesDown is the other way.
func TestBytesDown(t *testing.T) {
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		w.serve(t, w.internet, good4+":7000", func(c net.Conn) error {
			_, err := io.CopyN(c, zeros{}, 10_000_000)
			return err
		})
		o := w.python(t, who, "conn.py", append(allow(listed), "--net-download", "1m"), "down", "7000")
		c := one(t, o)
		var n int
		if _, err := fmt.Sscanf(o.Stdout, "ECONNRESET %d\n", &n); err != nil || n > 1<<20 {
			t.Errorf("exit %d, stdout %q, stderr %s", o.Exit, o.Stdout, o.Stderr)
		}
		if c.Verdict != result.ByteLimit || o.Result.Network.BytesDown != 1<<20 {
			t.Errorf("%+v of %d bytes", c, o.Result.Network.BytesDown)
		}
	})
}

// TestRate: three megabytes at one in a second take more than two.
func TestRate(t *testing.T) {
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		w.serve(t, w.internet, good4+":7000", func(c net.Conn) error {
			_, err := io.CopyN(c, zeros{}, 3<<20)
			return err
		})
		o := w.python(t, who, "conn.py", append(allow(listed), "--net-rate", "1m", "--timeout", "60s"), "down", "7000")
		printed(t, o, "eof 3145728\n")
		if c := one(t, o); c.DurationMS < 2500 || c.Verdict != result.Closed {
			t.Errorf("%+v", c)
		}
	})
}

// TestIdle: a connection without a byte is cut, on both sides.
func TestIdle(t *testing.T) {
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		s := w.serve(t, w.internet, good4+":7000", echo)
		// Its one byte goes and comes before that, on a slow machine too.
		o := w.python(t, who, "conn.py", append(allow(listed), "--net-idle", "3s", "--timeout", "60s"), "one")
		printed(t, o, "connected b'x'\nECONNRESET\n")
		if err := s.next(t); err == nil || !strings.Contains(err.Error(), "reset") {
			t.Errorf("the server saw %v, want a reset", err)
		}
		if c := one(t, o); c.Verdict != result.Idle || c.DurationMS < 3000 || c.BytesUp != 1 || c.BytesDown != 1 {
			t.Errorf("%+v", c)
		}
	})
}

// TestEndOfTheProgram: what it leaves open is cut at once, its daemons' too.
func TestEndOfTheProgram(t *testing.T) {
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		s := w.serve(t, w.internet, good4+":7000", echo)
		for _, how := range []string{"hold", "daemon"} {
			o := w.python(t, who, "conn.py", allow(listed), how)
			printed(t, o, "over\n")
			s.next(t)
			if c := one(t, o); c.BytesUp != 1 || c.Address != good4 {
				t.Errorf("%s: %+v", how, c)
			}
		}
	})
}

// TestTimeLimit: neither a server that never answers nor one that never reads
// holds the run up.
func TestTimeLimit(t *testing.T) {
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		stuck := make(chan struct{})
		defer close(stuck)
		w.serve(t, w.internet, good4+":7000", func(net.Conn) error { <-stuck; return nil })
		for _, args := range [][]string{{"one"}, {"up", "7000", "100000000"}} {
			o := w.outOfTime(t, who, time.Second, allow(listed), args...)
			if o.Exit != 124 || o.Result.Outcome != result.Timeout {
				t.Errorf("%v: exit %d, outcome %q, stderr %s", args, o.Exit, o.Result.Outcome, o.Stderr)
			}
			if c := one(t, o); c.Verdict != result.RunEnded && c.Verdict != result.Reset {
				t.Errorf("%v: %+v", args, c)
			}
		}
	})
}

// TestHalfClose: each side may close first and the other goes on.
func TestHalfClose(t *testing.T) {
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		w.serve(t, w.internet, good4+":7000", func(c net.Conn) error {
			n, err := io.Copy(io.Discard, c)
			io.CopyN(c, zeros{}, 1000*n)
			return err
		})
		last := w.serve(t, w.internet, good4+":7001", func(c net.Conn) error {
			c.Write([]byte("question"))
			c.(*net.TCPConn).CloseWrite()
			text, err := io.ReadAll(c)
			if err == nil && string(text) != "answer" {
				err = fmt.Errorf("read %q", text)
			}
			return err
		})
		list := allow(listed, "v4.good.example:7001")
		o := w.python(t, who, "conn.py", list, "half", "7000")
		printed(t, o, "8000\n")
		connections(t, o, listed+" "+good4+" closed")
		o = w.python(t, who, "conn.py", list, "after", "7001")
		printed(t, o, "8\n")
		if err := last.next(t); err != nil {
			t.Error(err)
		}
		connections(t, o, "v4.good.example:7001 "+good4+" closed")
	})
}

// TestServersThatFail: a reset is a reset, a closed port and a silent address are
// a reset with the reason in the result.
func TestServersThatFail(t *testing.T) {
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		w.serve(t, w.internet, good4+":7000", func(c net.Conn) error {
			c.Read(make([]byte, 1))
			c.Write([]byte("x"))
			return c.(*net.TCPConn).SetLinger(0)
		})
		list := append(allow(listed, "v4.good.example:7002", "dead.example:7000"), "--timeout", "60s")
		o := w.python(t, who, "conn.py", list, "one")
		printed(t, o, "connected b'x'\nECONNRESET\n")
		connections(t, o, listed+" "+good4+" reset")
		o = w.attempt(t, who, list, all("ECONNRESET", "named v4.good.example 7002", "tcp 127.0.0.1 7002")...)
		connections(t, o, "v4.good.example:7002 "+good4+" unreachable")
		if c := o.Result.Network.Connections[0]; c.Error != "connection refused" {
			t.Errorf("%+v", c)
		}
		if who.IsRoot() || testing.Short() {
			return // ten seconds, once
		}
		o = w.attempt(t, who, list, try{"port dead.example 7000", "ECONNRESET"})
		connections(t, o, "dead.example:7000 "+dead4+" unreachable")
	})
}

// TestPeerThatVanishes: nothing comes back any more, not even an acknowledgement.
// The program fills what there is to fill, waits, and is told.
func TestPeerThatVanishes(t *testing.T) {
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		s := w.serve(t, w.internet, good4+":7000", drain)
		// So long that the routes are changed, and the program writes, before it is over.
		p, release := testkit.Hold(t, testkit.Opts{Who: who}, w.pythonArgs(t, "conn.py", append(allow(listed), "--net-idle", "5s", "--timeout", "60s"), "stream")...)
		p.WaitLine("connected")
		<-s.accepted
		w.configure(w.internet, "route del 93.184.216.99 dev i0\nroute add blackhole 93.184.216.99\n")
		release()
		o := p.Wait()
		w.configure(w.internet, "route del blackhole 93.184.216.99\nroute add 93.184.216.99 dev i0\n")
		printed(t, o, "connected\nECONNRESET\n")
		if c := one(t, o); c.Verdict != result.Idle || c.BytesUp == 0 {
			t.Errorf("%+v", c)
		}
	})
}

// TestFloodOfNames: questions cost the supervisor bounded memory and CPU time, and
// the result bounded room.
func TestFloodOfNames(t *testing.T) {
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		p := testkit.Start(t, testkit.Opts{Who: who}, w.pythonArgs(t, "flood.py", allow(listed), "names", "3")...)
		p.WaitLine("flooding")
		before := memory(t, p.PID())
		grown := 0
		ended := make(chan testkit.Output, 1)
		go func() { ended <- p.Wait() }()
		for {
			select {
			case o := <-ended:
				n := o.Result.Network
				// Two of a millisecond, and what a window's end and the last one's are off by.
				most := 2*o.Result.WallMS + 1000
				if o.Result.Outcome != result.Exited || n == nil || len(n.Refused) != 256 || n.MoreRefused == 0 || int64(n.MoreRefused) > most {
					t.Errorf("outcome %q, stderr %s, network of %d bytes", o.Result.Outcome, o.Stderr, len(network(o)))
				}
				if grown > 32<<10 {
					t.Errorf("the supervisor grew by %d KiB", grown)
				}
				if got := w.names.questions(); len(got) != 0 {
					t.Errorf("%d names asked outside", len(got))
				}
				t.Logf("%d KiB more, %d questions", grown, 256+n.MoreRefused)
				return
			default:
				if now := memory(t, p.PID()); now > 0 {
					grown = max(grown, now-before)
				}
				testkit.Eventually(t, "a moment", once())
			}
		}
	})
}

// TestFloodOfConnections: the supervisor's descriptors and memory are bounded.
func TestFloodOfConnections(t *testing.T) {
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		w.serve(t, w.internet, good4+":7000", echo)
		p := testkit.Start(t, testkit.Opts{Who: who}, w.pythonArgs(t, "conn.py", append(allow(listed), "--net-connections-total", "50000", "--timeout", "60s"), "flood", "3")...)
		p.WaitLine("flooding")
		before := memory(t, p.PID())
		most, grown := 0, 0
		ended := make(chan testkit.Output, 1)
		go func() { ended <- p.Wait() }()
		for {
			select {
			case o := <-ended:
				// 64 connections of two sockets and two pipes, and what there is besides.
				if most < 100 || most > 64*6+100 {
					t.Errorf("%d descriptors at most", most)
				}
				if grown > 64<<10 {
					t.Errorf("the supervisor grew by %d KiB", grown)
				}
				if o.Result.Outcome != result.Exited || len(o.Result.Network.Connections) != 256 {
					t.Errorf("outcome %q with %d connections, stderr %s", o.Result.Outcome, len(o.Result.Network.Connections), o.Stderr)
				}
				t.Logf("%d descriptors, %d KiB more, %d connections", most, grown, 256+o.Result.Network.MoreConnections)
				return
			default:
				if list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.PID())); err == nil {
					most = max(most, len(list))
				}
				if now := memory(t, p.PID()); now > 0 {
					grown = max(grown, now-before)
				}
				testkit.Eventually(t, "a moment", once())
			}
		}
	})
}

// once is false the first time.
func once() func() bool {
	asked := false
	return func() bool { defer func() { asked = true }(); return asked }
}

// memory is a process's resident memory in KiB, 0 when it is gone.
func memory(t *testing.T, pid int) int {
	t.Helper()
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, _ := strconv.Atoi(strings.Fields(v)[0])
			return n
		}
	}
	return 0
}
