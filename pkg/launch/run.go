package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"sandglass/internal/refusal"
	"sandglass/pkg/result"
	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// setupTime bounds everything before the program's start. It only matters when
// the host hangs (a dead network file system below a mount, say).
const setupTime = 30 * time.Second

// reapTime bounds the wait for the kernel to end what was killed. It takes some
// ms, on a host whose CPUs are taken thirty times over some seconds (the end of a
// mount namespace waits for all of them): only what never ends may be told as
// that.
const reapTime = time.Minute

// Run starts the box and blocks until nothing of it runs any more. It always
// kills what it started, whatever went wrong.
func Run(ctx context.Context, b *Box) *Ending {
	defer b.Close()
	s := &session{box: b, end: &Ending{}, began: b.Init.began, full: make(chan struct{}, 2), reaped: make(chan struct{})}
	if err := s.start(); err != nil {
		defer b.Hold.end()
		s.end.Outcome, s.end.Error = result.Failed, err.Error()
		var lacks *refusal.Error
		switch {
		case b.Init.err != nil:
			explainSpawn(s.end, err)
		case errors.As(err, &lacks):
			s.end.Outcome, s.end.ExitCode, s.end.Error, s.end.Hints = result.Refused, lacks.Exit, lacks.What, lacks.Hints
		}
		return s.end
	}
	s.supervise(ctx)
	s.finish()
	s.waits.begun(s.cause != "" || s.failed != nil || s.end.Stats.OOMKills > 0)
	s.leave()
	return s.end
}

// session is one run in progress.
type session struct {
	box   *Box
	end   *Ending
	began time.Time

	pid, pidfd int
	namespaces map[string]string // init's, and why they are not known
	nsErr      error
	ahead      ahead
	control    *os.File
	events     <-chan message
	reaped     chan struct{} // closed when init is gone and waited for
	full       chan struct{} // a stream passed its limit
	stdin      *os.File      // until it is passed on, as the two others
	streams    []*os.File
	waits      waits    // of a box with Hold
	program    *os.File // pidfd of the program's process, once it was looked at
	out, err   *pump
	tty        *os.File // the terminal's master, nil for none
	networked  bool     // the sockets for the listed hosts are answered on
	watch      *watchdog
	usage      unix.Rusage   // of init and all that it or its end has reaped
	setupCPU   time.Duration // of init until the program's start

	done    <-chan struct{} // closed when the caller wants no more of it
	started time.Time
	cause   result.Outcome // why we killed it, "" when we did not
	exited  *wire.Report
	late    bool // exited came after we had killed

	exitedAt time.Time    // when init saw that end
	failed   *wire.Report // Failed or NotStarted
	broken   error        // init broke the protocol, or a read-back differs
	timer    *time.Timer  // set-up, then the program's time, then the kill's
	stuck    bool         // killed, and not dead within reapTime
}

// start makes the pipes and sends init its plan.
func (s *session) start() error {
	b, in := s.box, s.box.Init
	var err error
	<-in.ready
	if in.err != nil {
		return in.err
	}
	s.streams, err = s.pipes()
	if err == nil {
		err = sendFiles(in.control, b.files)
	}
	b.Config.Limit = initLimit(b.Timeout)
	b.hold()
	s.pid, s.pidfd, s.control = in.pid, in.pidfd, in.control
	s.namespaces, s.nsErr = namespacesOf(s.pid)
	if err == nil {
		err = lacksCap(s.nsErr, "SYS_PTRACE", toLook)
	}
	if err == nil {
		err = s.enterable()
	}
	if err == nil {
		err = send(s.control, wire.Frame(wire.TypeConfig, b.Config.Encode()))
	}
	if err != nil {
		s.unused()
		return fmt.Errorf("handing the plan to init: %w", err)
	}
	b.Close()
	s.events = listen(s.control)
	if b.Hold == nil {
		s.stream()
	}
	go s.reap()
	s.lookAhead()
	return nil
}

func (s *session) overflow() { s.full <- struct{}{} }

// reap waits for init. Its end is the end of everything in the PID namespace.
func (s *session) reap() {
	defer close(s.reaped)
	reaped := false
	if conn, err := s.box.Init.process.SyscallConn(); err == nil {
		conn.Read(func(uintptr) bool {
			pid, err := unix.Wait4(s.pid, nil, unix.WNOHANG, &s.usage)
			reaped = pid != 0 && err != unix.EINTR
			return reaped
		})
	}
	for !reaped { // a host without epoll's room, or an init that does not end
		_, err := unix.Wait4(s.pid, nil, 0, &s.usage)
		if err != unix.EINTR {
			break
		}
	}
}

// supervise keeps the clock until init is gone.
func (s *session) supervise(ctx context.Context) {
	s.timer = time.NewTimer(setupTime)
	defer s.timer.Stop()
	s.watch = newWatchdog(s.box)
	s.watch.owned = s.end.Owned
	defer func() { s.watch.stop() }() // of a box that waited it is another one then
	oom := watchOOM(s.box.Group)
	defer oom.stop()
	s.done = ctx.Done()
	for {
		select {
		case m, ok := <-s.events:
			s.take(m, ok)
			if s.over() {
				return
			}
		case <-s.timer.C:
			if s.expired() {
				return
			}
		case cause := <-s.watch.over:
			s.seen(cause)
		case <-oom.killed:
			oom.killed = nil
			s.meet()
			s.kill(result.Memory)
		case <-s.full:
			if s.box.OutputKill {
				s.meet()
				s.kill(result.Output)
			}
		case w, ok := <-s.box.Resize:
			s.resize(w, ok)
		case <-s.done:
			s.hear(lateTime)
			s.kill(result.Canceled)
			s.done = nil
		case r := <-s.waits.release:
			s.release(r)
		case <-s.waits.gone:
			s.waits.gone = nil
			s.lose(errLeft)
		case <-s.reaped:
			return
		}
	}
}

// take handles the next message, or that there is none to come.
func (s *session) take(m message, ok bool) {
	if !ok {
		s.events = nil
	} else if s.handle(m) && s.cause == "" { // else it is the kill's
		s.timer.Reset(s.left(time.Now()))
	}
}

// handle takes one message and says whether the program has started.
func (s *session) handle(m message) bool {
	defer func() { closeAll(m.fds) }()
	if m.err != nil {
		// Init is gone, or no longer speaks the protocol: both end the run.
		if errno, ok := m.err.(unix.Errno); ok && errno != unix.ECONNRESET && s.exited == nil && s.failed == nil {
			s.broken = fmt.Errorf("reading what init says: %w", errno)
		}
		kill(s.pidfd)
		return false
	}
	switch m.report.Type {
	case wire.TypeExecutes:
		return s.executes(&m)
	case wire.TypeFailed, wire.TypeNotStarted:
		if s.cause == "" || s.broken != nil { // else it failed because we killed it
			s.failed = m.report
			if m.report.Type == wire.TypeNotStarted && s.waits.given {
				s.started = time.Time{} // it was told to start, and could not
			}
		}
	case wire.TypeExited:
		// What ends after we killed says nothing about itself: init or a
		// timeout(1) inside may still report the death of the other's child.
		s.exited, s.late = m.report, s.cause != ""
		s.exitedAt = between(s.started, time.Unix(0, int64(m.report.At)), time.Now())
	case wire.TypeNetwork:
		if err := s.connect(&m); err != nil {
			s.abort(err)
			return false
		}
	case wire.TypeTerminal:
		if err := s.attach(m.fds); err != nil {
			s.abort(err)
			return false
		}
		m.fds = nil
	case wire.TypeReady:
		if s.end.OutDir != nil || len(m.fds) != 1 {
			s.abort(wire.ErrMalformed)
			return false
		}
		s.end.OutDir = os.NewFile(uintptr(m.fds[0]), "artefacts")
		m.fds = nil
	case wire.TypeStarted:
		return s.begin(&m)
	case wire.TypeRooted:
		if !s.rooted() {
			s.abort(wire.ErrMalformed)
		}
	case wire.TypeWaits, wire.TypeText:
		if !s.wait(&m) {
			s.abort(wire.ErrMalformed)
		}
	}
	return false
}

// abort ends a run whose controls cannot be vouched for.
func (s *session) abort(err error) {
	s.broken = err
	s.kill(result.Failed)
}

// kill ends every process of the sandbox. The first cause is the one that counts.
func (s *session) kill(cause result.Outcome) {
	if s.cause == "" {
		s.cause = cause
		s.timer.Reset(reapTime)
	}
	// Init's end is the end of its PID namespace: one signal, however many
	// processes there are. The group's kill is for what is not in it, and lets go
	// of the CPU limit, which would make the dying wait for their turn.
	kill(s.pidfd)
	if g := s.box.Group; g != nil {
		g.Kill()
	}
}

// finish waits for the streams and gathers the figures.
func (s *session) finish() {
	e := s.end
	if s.stuck {
		e.Outcome, e.Lives = result.Failed, true
		e.Error, e.Hints = livesOn, []string{findIt}
		return
	}
	now := time.Now() // a caller that reads slowly is no time of the program's
	s.drain()
	s.unused() // the last words may be that it has begun, and ended
	if s.box.Denials != nil {
		s.box.Denials.Stop()
	}
	if closed(s.reaped) {
		e.CPU = s.used() // else the group has counted it
	}
	e.Stdout, e.StdoutErr = s.out.settle(now)
	e.Stderr, e.StderrErr = s.err.settle(now)
	if s.started.IsZero() {
		e.Setup = now.Sub(s.began)
	} else {
		e.Setup, e.Wall = s.started.Sub(s.began), now.Sub(s.started)
	}
	if g := s.box.Group; g != nil {
		if stats, err := g.Used(); err == nil {
			e.Stats = stats
			s.sinceRelease(&e.Stats)
		}
	}
	e.MemorySeen = s.watch.memorySeen.Load()
	s.verdict()
	if s.failed != nil && e.OutDir != nil {
		// The program never ran: there is nothing to bring, and nothing is made for it.
		e.OutDir.Close()
		e.OutDir = nil
	}
}

// used is the CPU time of all processes where no cgroup counts it: what init
// has reaped, or what was last seen of processes that were killed, whose time
// the kernel drops with the namespace.
func (s *session) used() time.Duration {
	total := time.Duration(s.usage.Utime.Nano() + s.usage.Stime.Nano())
	return max(total-s.setupCPU-s.waits.used, time.Duration(s.watch.cpuSeen.Load()), 0)
}

// drain takes what init had still sent before it went. The program's end is its
// last word: the end of file comes when the kernel has taken its mounts apart.
func (s *session) drain() {
	late := time.NewTimer(reapTime)
	defer late.Stop()
	for s.events != nil && s.exited == nil {
		select {
		case m, ok := <-s.events:
			if !ok {
				return
			}
			s.handle(m)
		case <-late.C: // of a run that is over before init is; Ending.Wait tells
			return
		}
	}
}

func (s *session) close() {
	s.waits.close()
	if s.program != nil {
		s.program.Close()
	}
	s.box.Init.close()
	go discard(s.events)
	close(s.box.Init.done)
	s.box.Hold.end()
}
