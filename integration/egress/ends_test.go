package egress

import (
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

// source sends without end.
func source(c net.Conn) error {
	_, err := io.Copy(c, zeros{})
	return err
}

// TestNothingIsLeft: after a supervisor that is killed in the middle of a
// transfer the server sees the end, and after each kind of end nothing is left.
func TestNothingIsLeft(t *testing.T) {
	if !testkit.Quiet(t) {
		return
	}
	w := newWorld(t)
	w.enter(t)
	s := w.serve(t, w.internet, good4+":7000", source)
	for _, who := range []testkit.Who{testkit.AsRoot(t), testkit.AsUser(t)} {
		before := testkit.TakeSnapshot(t)
		p := testkit.Start(t, testkit.Opts{Who: who}, w.pythonArgs(t, "conn.py", append(allow(listed), "--net-rate", "1m"), "down", "7000")...)
		<-s.accepted
		inits := testkit.Processes("")
		p.Kill()
		if err := s.next(t); err == nil {
			t.Errorf("%s: the server's source has an end", who.Name)
		}
		p.Wait()
		testkit.Eventually(t, "the end of the sandbox", func() bool { return len(testkit.Processes("conn.py")) == 0 })
		if len(inits) < 3 {
			t.Errorf("only %q ran", inits)
		}
		// The next run sweeps what a killed supervisor could not remove.
		o := w.python(t, who, "conn.py", allow(listed, "dead.example:7000"), "down", "7001")
		if o.Exit != 1 {
			t.Errorf("exit %d", o.Exit)
		}
		o = w.outOfTime(t, who, 4*time.Second, append(allow(listed), "--net-rate", "1m"), "down", "7000")
		if o.Result.Outcome != result.Timeout || one(t, o).BytesDown == 0 {
			t.Errorf("outcome %q, network %s", o.Result.Outcome, network(o))
		}
		<-s.accepted
		s.next(t)
		for _, x := range before.LeftBy(t, []int{p.PID(), o.PID}) {
			if !strings.HasPrefix(x, "file: /tmp/sandglass-test-") { // the test's own
				t.Errorf("%s: left: %s", who.Name, x)
			}
		}
	}
}

// TestKilledSupervisor: the host sees a reset, and no end that it could take for
// the program's own; the kernel does not go on sending what it had.
func TestKilledSupervisor(t *testing.T) {
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		s := w.serve(t, w.internet, good4+":7000", echo)
		p := testkit.Start(t, testkit.Opts{Who: who}, w.pythonArgs(t, "conn.py", allow(listed), "one")...)
		p.WaitLine("connected")
		p.Kill()
		if err := s.next(t); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the server saw %v, want a reset", err)
		}
		p.Wait()
	})
}

// TestStoppedSupervisor: the run ends by init's own clock while nobody relays.
func TestStoppedSupervisor(t *testing.T) {
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		s := w.serve(t, w.internet, good4+":7000", echo)
		p := testkit.Start(t, testkit.Opts{Who: who}, w.pythonArgs(t, "conn.py", append(allow(listed), "--timeout", "10s"), "one")...)
		p.WaitLine("connected")
		inits := testkit.Children(t, p.PID())
		if len(inits) != 1 {
			t.Fatalf("the supervisor has the children %v, want one", inits)
		}
		p.Stop()
		testkit.Eventually(t, "init ends while its supervisor is stopped", func() bool { return testkit.Dead(inits[0]) })
		p.Signal(syscall.SIGCONT)
		o := p.Wait()
		if o.Exit != 124 || o.Result.Outcome != result.Timeout {
			t.Errorf("exit %d, outcome %q, stderr %s", o.Exit, o.Result.Outcome, o.Stderr)
		}
		s.next(t)
		if c := one(t, o); c.BytesUp != 1 || c.BytesDown != 1 {
			t.Errorf("%+v", c)
		}
	})
}

// TestTwoAtOnce: each sandbox has its own list.
func TestTwoAtOnce(t *testing.T) {
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		a := w.serve(t, w.internet, good4+":7000", echo)
		p := testkit.Start(t, testkit.Opts{Who: who}, w.pythonArgs(t, "conn.py", append(allow(listed), "--timeout", "60s"), "one")...)
		p.WaitLine("connected")
		w.wire.arrived(t)
		// While the first is connected, the second reaches its own host and not
		// the first one's.
		o := w.attempt(t, who, allow("other.example:80"), slices.Concat(
			[]try{{"named other.example 80", "data"}},
			all("EAI_NONAME", "named v4.good.example 7000", "named v4.good.example 80"),
			all("ECONNREFUSED", "tcp 198.18.1.0 7000", "tcp 127.0.0.1 7000"))...)
		w.wire.only(t, "tcp ["+other6+"]:80")
		connections(t, o, "other.example:80 "+other6+" closed")
		if n := len(a.accepted); n != 1 {
			t.Errorf("%d connections at the first one's host, want 1", n)
		}
		p.Signal(syscall.SIGTERM)
		first := p.Wait()
		if c := one(t, first); c.Host != "v4.good.example" || c.Address != good4 || c.BytesUp != 1 || c.BytesDown != 1 {
			t.Errorf("%+v", c)
		}
		refused(t, first)
		a.next(t)
	})
}

// TestLoopbackOfTheHost: an address of the host's own that is listed is reached,
// its other ports and addresses are not. It needs no namespaces of the test's.
func TestLoopbackOfTheHost(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		open, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer open.Close()
		s := serveOn(open, echo)
		closed, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer closed.Close()
		trap := serveOn(closed, drain)
		port, other := itoa(open.Addr().(*net.TCPAddr).Port), itoa(closed.Addr().(*net.TCPAddr).Port)
		var none *world
		o := none.attempt(t, who, allow("127.0.0.1:"+port),
			try{"once 127.0.0.1 " + port, "data"},
			try{"tcp 127.0.0.1 " + other, "ECONNREFUSED"},
			try{"tcp 127.0.0.2 " + port, "ECONNRESET"},
			try{"tcp ::1 " + port, "ECONNRESET"},
			try{"named localhost " + other, "ECONNREFUSED"},
			try{"named good.example " + port, "EAI_NONAME"})
		connections(t, o, "127.0.0.1:"+port+" 127.0.0.1 closed")
		refused(t, o, "127.0.0.2:"+port+" address is not in the list", "::1:"+port+" address is not in the list", "good.example not in the list")
		s.next(t)
		trap.nobody(t, "the other port")
	})
}
