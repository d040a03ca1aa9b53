package launch

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"sandglass/pkg/result"
	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// A limit that is passed before init's word of the start has come waits for that
// word, and what it tells of is read back: here it is this test, which has no filter.
func TestMeet(t *testing.T) {
	self, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		t.Fatal(err)
	}
	events := make(chan message)
	s := &session{box: &Box{}, end: &Ending{}, pidfd: -1, events: events, reaped: make(chan struct{}), timer: time.NewTimer(time.Hour)}
	go func() {
		events <- message{report: &wire.Report{Type: wire.TypeStarted}, fds: []int{self}}
		close(events)
	}()
	s.meet()
	if s.started.IsZero() || s.broken == nil || s.cause != result.Failed {
		t.Errorf("started %v, broken %v, cause %q", s.started, s.broken, s.cause)
	}
}

// It waits for nothing that cannot come any more.
func TestMeetEnds(t *testing.T) {
	gone, over := make(chan struct{}), make(chan message)
	close(gone)
	close(over)
	for name, s := range map[string]*session{
		"init is gone":   {events: make(chan message), reaped: gone},
		"no more words":  {events: over},
		"started":        {events: make(chan message), started: time.Now()},
		"killed already": {events: make(chan message), cause: result.Canceled},
		"never started":  {events: make(chan message), failed: &wire.Report{Type: wire.TypeFailed}},
	} {
		if s.meet() {
			t.Errorf("%s: it waited", name)
		}
	}
}

// deadProgram is the pidfd of a process that has ended and is not reaped.
func deadProgram(t *testing.T) *os.File {
	t.Helper()
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Wait() })
	fd, err := unix.PidfdOpen(cmd.Process.Pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	t.Cleanup(func() { f.Close() })
	if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1); err != nil {
		t.Fatal(err)
	}
	return f
}

// What the program did before we came to end it is told, whatever comes to be looked
// at first: its end, which init has yet to tell, by any of our causes; and its flood.
func TestHear(t *testing.T) {
	program := deadProgram(t)
	for _, c := range []struct {
		name      string
		end       func(s *session)
		program   *os.File
		truncated bool
		want      result.Outcome
	}{
		{"time", func(s *session) { s.expired() }, program, false, result.Exited},
		{"memory", func(s *session) { s.seen(result.Memory) }, program, false, result.Exited},
		{"CPU time", func(s *session) { s.seen(result.CPUTime) }, program, false, result.Exited},
		{"time, before a flood is heard of", func(s *session) { s.expired() }, program, true, result.Output},
		{"time of one that runs", func(s *session) { s.expired() }, nil, false, result.Timeout},
		{"time of one that runs and floods", func(s *session) { s.expired() }, nil, true, result.Output},
		{"memory of one that runs and floods", func(s *session) { s.seen(result.Memory) }, nil, true, result.Memory},
		{"CPU time of one that runs", func(s *session) { s.seen(result.CPUTime) }, nil, false, result.CPUTime},
	} {
		events := make(chan message) // init's word comes when it is asked for, not before
		s := &session{box: &Box{Timeout: time.Hour, OutputKill: c.truncated}, end: &Ending{}, pidfd: -1, events: events, program: c.program,
			started: time.Now(), timer: time.NewTimer(time.Hour)}
		s.end.Stdout.Truncated = c.truncated
		go func() { events <- message{report: exited(0)} }()
		c.end(s)
		if c.program == nil {
			s.handle(<-events) // of what we have killed
		}
		s.verdict()
		if s.end.Outcome != c.want {
			t.Errorf("%s: %s, want %s", c.name, s.end.Outcome, c.want)
		}
	}
}

// An end is heard when the caller cancels, too; a start that is heard of late is one.
func TestHearInTheLoop(t *testing.T) {
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	events := make(chan message)
	s := &session{box: &Box{Timeout: time.Hour}, end: &Ending{}, pidfd: -1, events: events, program: deadProgram(t), started: time.Now(),
		reaped: make(chan struct{})}
	go func() {
		events <- message{report: exited(0)}
		close(s.reaped)
	}()
	s.supervise(canceled)
	if s.verdict(); s.end.Outcome != result.Exited {
		t.Errorf("%s, want %s", s.end.Outcome, result.Exited)
	}
	b := &Box{Timeout: time.Hour, Hold: NewHold(wire.InitWaits, 0), Terminal: true}
	events = make(chan message)
	s = &session{box: b, end: &Ending{}, pidfd: -1, events: events, timer: time.NewTimer(0)}
	s.waits.told = &Release{taken: make(chan bool, 1)}
	s.waits.sent = time.Now()
	go func() {
		events <- message{report: &wire.Report{Type: wire.TypeExecutes, At: uint64(time.Now().UnixNano())}}
	}()
	<-s.timer.C
	if s.expired() || s.cause != "" || s.started.IsZero() {
		t.Errorf("cause %q, started %v", s.cause, s.started)
	}
}

// What init reports as failed after we have killed is our doing: the cause stays.
func TestFailedAfterTheKill(t *testing.T) {
	failed := message{report: &wire.Report{Type: wire.TypeFailed, Step: "start", Errno: uint32(unix.ECANCELED)}}
	for cause, want := range map[result.Outcome]result.Outcome{result.Canceled: result.Canceled, "": result.Failed} {
		s := &session{box: &Box{}, end: &Ending{}, cause: cause}
		s.handle(failed)
		s.verdict()
		if s.end.Outcome != want {
			t.Errorf("killed for %q: %s, want %s", cause, s.end.Outcome, want)
		}
	}
}

// Nor does what cannot be looked at any more after the kill: the files of a process
// that is gone are gone, one after the other.
func TestUnseenAfterTheKill(t *testing.T) {
	for cause, want := range map[result.Outcome]result.Outcome{result.Canceled: result.Canceled, "": result.Failed} {
		s := &session{box: &Box{}, end: &Ending{}, pidfd: -1, cause: cause, timer: time.NewTimer(time.Hour)}
		s.unseen(os.ErrNotExist)
		s.verdict()
		if s.end.Outcome != want {
			t.Errorf("killed for %q: %s, want %s", cause, s.end.Outcome, want)
		}
	}
}
