package denials

import (
	"time"

	"golang.org/x/sys/unix"
)

// The supervisor's time is on no limit of the sandbox, and a program may ask for
// refusals as fast as it can. So after burst of them the answers come slower: at
// most a fifth of one CPU goes into them, and the program waits. The answers stay
// the right ones, which those of a closed listener would not be.
const (
	burst = 2000
	batch = 32
)

// pace measures the work.
type pace struct {
	count  int // within burst, then within a batch
	began  time.Time
	worked time.Duration
}

func (p *pace) begin() { p.began = time.Now() }

// end says how long to pause now, mostly not at all.
func (p *pace) end() time.Duration {
	p.count++
	p.worked += time.Since(p.began)
	if p.count < burst {
		if p.count%batch == 0 {
			p.worked = 0 // of the last batch alone
		}
		return 0
	}
	if p.count < burst+batch {
		return 0
	}
	pause := 4 * p.worked
	p.count, p.worked = burst, 0
	return pause
}

// pause ends early when the run does.
func pause(stop int, d time.Duration) {
	if d > 0 {
		unix.Poll([]unix.PollFd{{Fd: int32(stop), Events: unix.POLLIN}}, int((d+time.Millisecond-1)/time.Millisecond))
	}
}
