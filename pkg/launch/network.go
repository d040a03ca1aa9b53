package launch

import (
	"os"

	"sandglass/pkg/wire"
)

// Network answers on the sockets that init makes where there is a list of hosts:
// a resolver's and one listener for each port of Config.Ports, in order. They are
// of the sandbox's network namespace, and whoever answers is outside of it. It
// takes the files over, also with an error.
type Network interface {
	Start(packet *os.File, listeners []*os.File, v6 bool) error
}

// connect takes init's sockets, before anything of the program runs.
func (s *session) connect(m *message) error {
	b := s.box
	if b.Network == nil || s.networked || !s.started.IsZero() || len(m.fds) != 1+len(b.Config.Ports) {
		return wire.ErrMalformed
	}
	s.networked = true
	files := make([]*os.File, len(m.fds))
	for i, fd := range m.fds {
		files[i] = os.NewFile(uintptr(fd), "socket of the sandbox")
	}
	m.fds = nil
	return b.Network.Start(files[0], files[1:], m.report.IPv6)
}
