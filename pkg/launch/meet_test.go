package launch

import (
	"os"
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
