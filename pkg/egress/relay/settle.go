package relay

import (
	"net"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Settle waits until what the program has sent is passed on, for at most d. The
// program must have ended: nothing comes to be sent then, and what its host answers
// is for nobody.
func (s *Server) Settle(d time.Duration) {
	late := time.NewTimer(d)
	defer late.Stop()
	taken := make(chan struct{})
	s.wg.Go(func() {
		defer close(taken)
		s.takeLast()
	})
	select {
	case <-taken:
	case <-late.C:
		return
	}
	for _, c := range s.open() {
		select {
		case <-c.sent:
		case <-late.C:
			return
		}
	}
}

// takeLast takes the connections that the program has made and that nobody has
// accepted yet. The others that accept are stopped first: one that has a connection
// in its hands cannot be seen.
func (s *Server) takeLast() {
	s.mu.Lock()
	listeners := slices.Clone(s.listeners)
	s.mu.Unlock()
	for _, l := range listeners {
		l.SetDeadline(time.Unix(1, 0))
	}
	s.acceptors.Wait()
	for _, l := range listeners {
		l.SetDeadline(time.Time{})
		for hasBacklog(l) {
			in, err := l.AcceptTCP()
			if err != nil || !s.take(in) {
				break
			}
		}
	}
}

// hasBacklog says whether accept would give a connection at once.
func hasBacklog(l *net.TCPListener) (has bool) {
	raw, err := l.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		has = err == nil && n > 0
	})
	return has
}

func (s *Server) open() (list []*conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		list = append(list, c)
	}
	return list
}
