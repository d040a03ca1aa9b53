package launch

import (
	"os"
	"time"

	"sandglass/pkg/cgroup"
	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// Hold keeps a box ready that is made before there is a program for it. Release
// gives it one, once.
type Hold struct {
	waits wire.Waits
	idle  time.Duration

	ready, over chan struct{}
	release     chan *Release
}

// NewHold is for a box that waits for idle at most.
func NewHold(w wire.Waits, idle time.Duration) *Hold {
	return &Hold{waits: w, idle: idle, ready: make(chan struct{}), over: make(chan struct{}), release: make(chan *Release)}
}

// Waits is what it waits in.
func (h *Hold) Waits() wire.Waits { return h.waits }

// Ready is closed when the box waits.
func (h *Hold) Ready() <-chan struct{} { return h.ready }

// Over is closed when nothing of the box is left.
func (h *Hold) Over() <-chan struct{} { return h.over }

// Release is what a box that waits is given.
type Release struct {
	// Box has the program (Config's Paths, Argv and Env), the streams, the limits
	// that the supervisor holds, and files: Config's mounts, of which the first Code
	// go to the root itself. Nothing else of it counts: everything else is as the
	// box was made.
	Box  *Box
	Code int
	// Text is what a program that waits reads, instead of all of those but streams
	// and limits.
	Text []byte
	// Done ends the run when it is closed. What ended the waiting does so no more.
	Done <-chan struct{}

	taken chan bool
}

// Release hands a program over. When it is false nothing of that has reached the
// sandbox, and the program has not begun.
func (h *Hold) Release(r *Release) bool {
	r.taken = make(chan bool, 1)
	select {
	case h.release <- r:
		return <-r.taken
	case <-h.over:
		return false
	}
}

// end tells who waits for the box that it is no more; of none it does nothing.
func (h *Hold) end() {
	if h != nil {
		close(h.over)
	}
}

// hold has init told.
func (b *Box) hold() {
	if h := b.Hold; h != nil {
		b.Config.Waits, b.Config.Idle = h.waits, initLimit(h.idle)
	}
}

// programWaits says whether the program runs before it has its text.
func (b *Box) programWaits() bool { return b.Hold != nil && b.Hold.waits == wire.ProgramWaits }

// waits is the part of a run before its release.
type waits struct {
	release chan *Release   // nil unless it waits
	gone    <-chan struct{} // closed when a program that waits has ended
	given   bool            // there was a release

	text    []int    // directory, file and FIFO of the text, see wire.ProgramWaits
	fifo    *os.File // while the text is written
	program *os.File // pidfd of a program that waits, and its number: Fd would make it block
	pidfd   int

	used time.Duration // CPU time of the tree until the release
}

func (w *waits) close() {
	closeAll(w.text)
	for _, f := range [...]*os.File{w.fifo, w.program} {
		if f != nil {
			f.Close()
		}
	}
}

// wait takes init's word that it waits, or where the program's text will go.
func (s *session) wait(m *message) bool {
	h, w := s.box.Hold, &s.waits
	switch {
	case h == nil || w.given || w.release != nil || w.text != nil || h.waits == wire.InitWaits != (m.report.Type == wire.TypeWaits):
		return false
	case h.waits == wire.InitWaits && len(m.fds) == 0:
		s.ready()
		return true
	case h.waits == wire.ProgramWaits && len(m.fds) == 3:
		w.text, m.fds = m.fds, nil
		return true
	}
	return false
}

// mayStart: of a box that waits for its program none may have been started
// before there is one, and one that waits for its text needs a place for it.
func (s *session) mayStart() bool {
	h, w := s.box.Hold, &s.waits
	switch {
	case h == nil:
		return true
	case h.waits == wire.InitWaits:
		return w.given
	}
	return !w.given && w.release == nil && w.text != nil
}

// ready begins the waiting.
func (s *session) ready() {
	if s.cause != "" {
		return
	}
	h := s.box.Hold
	s.waits.release = h.release
	s.timer.Reset(h.idle)
	close(h.ready)
}

// idleEvery is how often a box is looked at whose program only waits.
const idleEvery = time.Second

// programReady begins the waiting of a program that runs. What was looked at is
// the process that will read the text.
func (s *session) programReady(m *message) error {
	if err := unix.SetNonblock(m.fds[0], true); err != nil {
		return err
	}
	f := os.NewFile(uintptr(m.fds[0]), "pidfd")
	m.fds, s.waits.program, s.waits.pidfd = nil, f, m.fds[0]
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		raw.Read(func(fd uintptr) bool { return hasEnded(int(fd)) })
	}()
	s.waits.gone = gone
	s.ready()
	return nil
}

// hasEnded says whether a process has.
func hasEnded(pidfd int) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 0)
	return n > 0 || err != nil && err != unix.EINTR
}

// sinceRelease leaves out what the interpreter's own start has used.
func (s *session) sinceRelease(stats *cgroup.Stats) {
	if stats.CPUUsec >= 0 {
		stats.CPUUsec = max(stats.CPUUsec-s.waits.used.Microseconds(), 0)
	}
}
