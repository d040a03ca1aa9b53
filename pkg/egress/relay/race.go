package relay

import (
	"context"
	"net/netip"
	"time"
)

// How the addresses of a host are tried (RFC 8305). dialTime is for all of them:
// a host that does not answer must not hold a slot for long. attemptDelay is what
// one gets before the next is tried beside it, and attemptsMax is how many are
// tried at a time: no more sockets than a connection has later, with its two
// pipes, however many addresses a program's own name server gives to a name.
const (
	dialTime     = 10 * time.Second
	attemptDelay = 250 * time.Millisecond
	attemptsMax  = 4
)

// attempt is what came of one address.
type attempt[C any] struct {
	conn C
	n    int // of the address
	err  error
}

// race connects to the first address that answers, and gives it back. It tries
// them in their order, the next one when the last has failed or has had its
// time. It returns when all attempts have ended; those that connect too late are
// dropped. The error is the first address's.
//
// Each address after the first one asks more, and where it says no there are none:
// whoever answers for the name chooses the addresses, up to 16 for each connection.
func race[C any](ctx context.Context, addrs []netip.Addr, more func() bool, dial func(context.Context, netip.Addr) (C, error), drop func(C)) (won C, at netip.Addr, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan attempt[C])
	next, open := 0, 0
	begin := func() {
		if next > 0 && !more() {
			next = len(addrs)
			return
		}
		n := next
		next, open = next+1, open+1
		go func() {
			ctx, cancel := context.WithTimeout(ctx, attemptTime(len(addrs)))
			defer cancel()
			c, err := dial(ctx, addrs[n])
			ended <- attempt[C]{c, n, err}
		}()
	}
	delay := time.NewTimer(attemptDelay)
	defer delay.Stop()
	for begin(); open > 0; {
		select {
		case <-delay.C:
			if next == len(addrs) || open == attemptsMax {
				continue // the next one begins when one of these has failed
			}
		case a := <-ended:
			open--
			if a.err == nil {
				cancel()
				dropRest(ended, open, drop)
				return a.conn, addrs[a.n], nil
			}
			if a.n == 0 {
				err = a.err
			}
			if next == len(addrs) || ctx.Err() != nil {
				continue
			}
		}
		begin()
		delay.Reset(attemptDelay)
	}
	return won, at, err
}

// dropRest waits for the attempts that have lost: a socket that one of them still
// had would outlive the run.
func dropRest[C any](ended <-chan attempt[C], open int, drop func(C)) {
	for range open {
		if a := <-ended; a.err == nil {
			drop(a.conn)
		}
	}
}

// attemptTime is what each of n addresses gets, so that all have been tried when
// the time of the host is over.
func attemptTime(n int) time.Duration {
	rounds := (n + attemptsMax - 1) / attemptsMax
	return dialTime / time.Duration(rounds)
}

// takeTurns orders addresses so that the families alternate, as long as there are
// two: where the host's way to one family is dead, the second attempt gets through.
// The order within a family, and which one is first, are the host's resolver's.
func takeTurns(addrs []netip.Addr) []netip.Addr {
	var family [2][]netip.Addr // the first one's, the other
	for _, a := range addrs {
		i := 0
		if a.Is4() != addrs[0].Is4() {
			i = 1
		}
		family[i] = append(family[i], a)
	}
	list := make([]netip.Addr, 0, len(addrs))
	for i := range max(len(family[0]), len(family[1])) {
		for _, f := range family {
			if i < len(f) {
				list = append(list, f[i])
			}
		}
	}
	return list
}
