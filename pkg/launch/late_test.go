package launch

import (
	"testing"
	"time"

	"sandglass/pkg/policy"
	"sandglass/pkg/wire"
)

// Init's clock is two seconds behind the supervisor's, never before it, and the
// longest limit of all is one that init takes.
func TestInitLimit(t *testing.T) {
	for timeout, want := range map[time.Duration]uint64{
		time.Second: 3001, 1500*time.Millisecond + 1: 3501, policy.MaxDuration: 2592002001,
	} {
		got := initLimit(timeout)
		c := wire.Config{Limit: got}
		if _, err := wire.DecodeConfig(c.Encode()); got != want || err != nil {
			t.Errorf("%v: %d, want %d: %v", timeout, got, want, err)
		}
	}
}

// TestLeft: a program whose start is heard of late has no more time for that.
func TestLeft(t *testing.T) {
	started := time.Now()
	s := &session{box: &Box{Timeout: time.Minute}, started: started}
	for since, want := range map[time.Duration]time.Duration{0: time.Minute, time.Second: 59 * time.Second, time.Minute: 0, time.Hour: 0} {
		if got := s.left(started.Add(since)); got != want {
			t.Errorf("%v after the start %v is left, want %v", since, got, want)
		}
	}
	b := &Box{Timeout: time.Hour, Hold: NewHold(wire.InitWaits, 0), Terminal: true} // which has no stream to pass on
	s = &session{box: b, timer: time.NewTimer(24 * time.Hour)}
	s.waits.told = &Release{taken: make(chan bool, 1)}
	s.waits.sent = started.Add(-2 * time.Hour)
	s.take(message{report: &wire.Report{Type: wire.TypeExecutes, At: uint64(started.Add(-time.Hour).UnixNano())}}, true)
	select {
	case <-s.timer.C:
	case <-time.After(10 * time.Second):
		t.Error("a program that was executed an hour ago, and has an hour, has time left")
	}
}

// TestBetween: the moment that init tells is one between the release and its being told.
func TestBetween(t *testing.T) {
	first := time.Now()
	last := first.Add(time.Second)
	for at, want := range map[time.Time]time.Duration{
		time.Unix(0, first.UnixNano()+1e8): 1e8,
		time.Unix(0, first.UnixNano()-1):   0,
		time.Unix(0, last.UnixNano()+1):    time.Second,
		time.Unix(0, -1<<63):               0,
		time.Unix(0, 1<<63-1):              time.Second,
	} {
		if got := between(first, at, last).Sub(first); got != want {
			t.Errorf("%v: %v after the release, want %v", at, got, want)
		}
	}
}
