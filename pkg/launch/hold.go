package launch

import (
	"errors"
	"os"
	"strconv"
	"time"

	"sandglass/pkg/cgroup"
	"sandglass/pkg/result"
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

	lost error // see Lost
}

// NewHold is for a box that waits for idle at most.
func NewHold(w wire.Waits, idle time.Duration) *Hold {
	return &Hold{waits: w, idle: idle, ready: make(chan struct{}), over: make(chan struct{}), release: make(chan *Release)}
}

// Waits is what it waits in.
func (h *Hold) Waits() wire.Waits { return h.waits }

// Ready is closed when the box waits.
func (h *Hold) Ready() <-chan struct{} { return h.ready }

// Lost says, once it is over, why one ended by itself that was to wait on.
func (h *Hold) Lost() error { return h.lost }

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

// Release hands a program over. When it is false the program has not begun, and
// nothing of it has reached any process of the sandbox but init, which ends with it.
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
	gone    <-chan struct{} // closed when the program's process has ended while it waits
	given   bool            // there was a release

	place []int    // the way to write to the root; or directory, file and FIFO of the text
	fifo  *os.File // while the text is written
	proc  string   // where the host's /proc has the program's process

	used time.Duration // CPU time of the tree until the release

	told *Release  // who waits to hear whether the program has begun
	sent time.Time // when init was told what to execute
}

func (w *waits) close() {
	closeAll(w.place)
	if w.fifo != nil {
		w.fifo.Close()
	}
}

// wait takes what the program's text, or the files that come with it, are written
// by. Of the latter it is only kept, see boxinit.
func (s *session) wait(m *message) bool {
	h, w := s.box.Hold, &s.waits
	if h == nil || w.given || w.release != nil || w.place != nil || h.waits == wire.InitWaits != (m.report.Type == wire.TypeWaits) {
		return false
	}
	if want := map[wire.Waits]int{wire.InitWaits: 1, wire.ProgramWaits: 3}; len(m.fds) != want[h.waits] {
		return false
	}
	w.place, m.fds = m.fds, nil
	return true
}

// mayStart: a box that waits needs a place for what it waits for, and is told
// only then, once.
func (s *session) mayStart() bool {
	w := &s.waits
	return s.box.Hold == nil || !w.given && w.release == nil && w.place != nil
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

// idleCPU is how much CPU time a box whose program only waits may use until it is given
// something: an interpreter that spins (an image's own, say) would else take a CPU for
// as long as nobody asks for anything. They start in a tenth of a second, on an emulated
// machine in some.
const idleCPU = 10 * time.Second

// mostIdle is no more than a whole run may use that has not waited, its start included.
func (b *Box) mostIdle() time.Duration {
	most := min(idleCPU, b.Timeout)
	if b.CPUTime > 0 {
		most = min(most, b.CPUTime)
	}
	return most
}

var (
	errLeft = errors.New("its program has ended while it waited")
	errBusy = errors.New("its program has used CPU time as if it did not wait")
)

// lose ends a box that waits for what its program does meanwhile.
func (s *session) lose(why error) {
	if s.cause == "" {
		s.box.Hold.lost = why
	}
	s.kill(result.Canceled)
}

// hold keeps a box ready that was looked at.
func (s *session) hold(m *message) error {
	if s.box.programWaits() { // else nothing runs that could use anything
		s.watch.still, s.watch.most = newStill(s.pid), s.box.mostIdle()
		if err := s.watch.start(s.pid); err != nil {
			return err
		}
	}
	return s.programReady(m)
}

// programReady begins the waiting of the program's process. What was looked at is
// the process that will read the text, or execute what it is told to: it can
// get nothing back of what it has given up.
func (s *session) programReady(m *message) error {
	pid, err := pidOf(m.fds[0])
	if err != nil {
		return err
	}
	s.waits.proc = "/proc/" + strconv.Itoa(pid)
	if err := unix.SetNonblock(m.fds[0], true); err != nil {
		return err
	}
	s.keep(m)
	raw, err := s.program.SyscallConn()
	if err != nil {
		return err
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		err := raw.Read(func(fd uintptr) bool { return hasEnded(int(fd)) })
		if err != nil && !errors.Is(err, os.ErrClosed) {
			<-s.reaped // it cannot be waited for alone (see pollable): a release looks once more
		}
	}()
	s.waits.gone = gone
	s.ready()
	return nil
}

// ends says whether the program's process has ended, or will before it executes one
// more instruction of its own. The kernel takes a ms to end an interpreter, and a text
// that it is given meanwhile has the end for its own. No program can undo it.
func (s *session) ends() bool {
	if s.dead() {
		return true
	}
	return doomed(s.waits.proc) // init does not reap it before it is told to: it is its own
}

// keep keeps the pidfd that has come with the word of the start.
func (s *session) keep(m *message) {
	s.program, m.fds = os.NewFile(uintptr(m.fds[0]), "pidfd"), nil
}

// dead says whether the program's process has ended, no before it was looked at. It
// does not ask for Fd, which would make the description block.
func (s *session) dead() (yes bool) {
	if s.program == nil {
		return false
	}
	if raw, err := s.program.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { yes = hasEnded(int(fd)) })
	}
	return yes
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
