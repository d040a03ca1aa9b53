package main

import (
	"slices"
	"testing"
	"time"
)

func TestQuantile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(100 - i) // from the greatest to the least
	}
	for q, want := range map[float64]time.Duration{0: 1, 0.25: 25, 0.5: 50, 0.95: 95, 0.99: 99, 1: 100} {
		if got := quantile(hundred, q); got != want {
			t.Errorf("quantile %v of 1 to 100: %d, want %d", q, got, want)
		}
	}
	if hundred[0] != 100 {
		t.Error("quantile has sorted the samples themselves")
	}
	for _, c := range []struct {
		values   []float64
		q50, q99 float64
	}{
		{[]float64{7}, 7, 7},
		{[]float64{2, 1}, 1, 2},
		{[]float64{9, 1, 5}, 5, 9},
		{[]float64{4, 3, 2, 1, 100}, 3, 100},
	} {
		if m, top := median(c.values), quantile(c.values, 0.99); m != c.q50 || top != c.q99 {
			t.Errorf("%v: median %v, p99 %v; want %v, %v", c.values, m, top, c.q50, c.q99)
		}
	}
}

func TestRatiosAreOfOneRound(t *testing.T) {
	// A round in which the machine was busy is twice as long for both.
	a, b := []time.Duration{10, 20, 30}, []time.Duration{5, 10, 10}
	if got := ratios(a, b); !slices.Equal(got, []float64{2, 2, 3}) {
		t.Error(got)
	}
	if got := mean(a); got != 20 {
		t.Error(got)
	}
	if got := mean(nil); got != 0 {
		t.Error(got)
	}
}

// TestCPUOfASession: its CPU time is the session's by its runs, not what a sample
// has.
func TestCPUOfASession(t *testing.T) {
	c := &contender{samples: []sample{{1, 7}, {1, 9}}, used: 60}
	if got := c.cpu(); got != 8 {
		t.Errorf("a command's CPU time is %d, want the mean of its samples, 8", got)
	}
	c.total = func() time.Duration { return 0 }
	if got := c.cpu(); got != 30 {
		t.Errorf("a session's CPU time is %d, want 60/2", got)
	}
}

func TestKernelFiles(t *testing.T) {
	const stat = "12 (a b) c) S 1 12 12 0 -1 4194560 1 2 3 4 100 20 3000 400 20 0 1 0 5 6 7"
	if got := parseStat(stat, false); got != 1200*time.Millisecond {
		t.Errorf("user and system: %v", got)
	}
	if got := parseStat(stat, true); got != 35200*time.Millisecond {
		t.Errorf("with the children: %v", got)
	}
	if got := parseBusy("cpu  100 20 3 99999 88888 4 5 6 7 8"); got != 1380*time.Millisecond {
		t.Errorf("busy: %v, want all but idle, iowait, guest and guest_nice", got)
	}
	if n, err := field("Rss:  9 kB\nPss:      12 kB\nPss_Dirty: 7 kB\n", "Pss"); n != 12 || err != nil {
		t.Error(n, err)
	}
	if _, err := field("Rss:  9 kB\n", "Pss"); err == nil {
		t.Error("a line that is not there was found")
	}
}
