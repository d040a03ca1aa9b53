package main

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// TestMeasure: who fails too often is left out and takes nobody's figures along; one
// failure is told and run again.
func TestMeasure(t *testing.T) {
	runs := map[string]int{}
	way := func(name string, fails func(n int) bool) *contender {
		return &contender{name: name, run: func() (sample, error) {
			runs[name]++
			if fails(runs[name]) {
				return sample{}, errors.New("no")
			}
			return sample{wall: time.Duration(runs[name])}, nil
		}}
	}
	good := way("good", func(int) bool { return false })
	good.total = func() time.Duration { return time.Duration(runs["good"]) * 5 }
	once, never := way("once", func(n int) bool { return n == 4 }), way("never", func(n int) bool { return n > 3 })
	done, err := measure([]*contender{never, good, once}, rounds{n: 3, warmup: 1, burst: 2})
	if err != nil || !slices.Equal(done, []*contender{good, once}) || never.missing != "round 1: no" {
		t.Fatalf("%v, %v, %q", err, done, never.missing)
	}
	// Two of the eight are before the clock.
	if want := []time.Duration{3, 4, 5, 6, 7, 8}; !slices.Equal(good.walls(), want) || good.failed != 0 || good.cpu() != 5 {
		t.Errorf("good: %v, %d failed, CPU %d", good.walls(), good.failed, good.cpu())
	}
	if want := []time.Duration{3, 5, 6, 7, 8, 9}; !slices.Equal(once.walls(), want) || once.failed != 1 {
		t.Errorf("once: %v, %d failed", once.walls(), once.failed)
	}
	if runs["never"] != 3+tries {
		t.Errorf("never: %d runs", runs["never"])
	}
	if done, err := measure([]*contender{way("bad", func(int) bool { return true })}, rounds{n: 1, burst: 1}); err == nil {
		t.Errorf("%v", done)
	}
}
