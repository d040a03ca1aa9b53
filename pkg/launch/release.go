package launch

import (
	"errors"
	"os"
	"strings"
	"time"

	"sandglass/pkg/result"
	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// errGone is a box whose init or program has ended while it waited.
var errGone = errors.New("what waited is gone")

// release gives the box its program. Where that cannot be, and nothing but init can
// have got anything of it, the box is ended, and the caller may run it elsewhere.
func (s *session) release(r *Release) {
	b, from := s.box, r.Box
	s.waits.release, s.waits.gone, s.waits.given = nil, nil, true
	s.began = time.Now()
	b.Timeout, b.CPUTime = from.Timeout, from.CPUTime
	b.Stdin, b.Stdout, b.Stderr = from.Stdin, from.Stdout, from.Stderr
	b.OutputLimit, b.OutputKill = from.OutputLimit, from.OutputKill
	give := s.giveInit
	if b.programWaits() {
		give = s.giveProgram
	}
	if err := give(r); err != nil {
		s.kill(result.Canceled)
		r.taken <- false
		return
	}
	s.done = r.Done
	s.waits.told = r
	if b.programWaits() {
		s.waits.begun(true)
	}
}

// begun answers whether the program has, or the run is over without: its verdict is the
// run's then. Otherwise nothing was executed, and it may be run elsewhere.
func (w *waits) begun(yes bool) {
	if w.told != nil {
		w.told.taken <- yes
		w.told = nil
	}
}

// executes takes the word that the files are at their place and the program is being
// executed: its clock starts. It was sent before that, so that no program holds it up,
// and says when, so that a busy host does not.
func (s *session) executes(m *message) bool {
	if s.waits.told == nil || s.box.programWaits() || !s.started.IsZero() {
		s.abort(wire.ErrMalformed)
		return false
	}
	s.started = between(s.waits.sent, time.Unix(0, int64(m.report.At)), time.Now())
	s.stream()
	s.waits.begun(true)
	return true
}

// between is the moment at, as far as it can be: init says it.
func between(first, at, last time.Time) time.Time {
	since := min(max(at.Sub(first), 0), last.Sub(first))
	return first.Add(since)
}

// giveInit sends init what the program's process is to execute. Everything else was
// done, and looked at, while it waited.
func (s *session) giveInit(r *Release) error {
	c, from := &s.box.Config, &r.Box.Config
	c.Paths, c.Argv, c.Env = from.Paths, from.Argv, from.Env
	if err := s.watchAnew(); err != nil {
		return err
	}
	if err := sendFiles(s.control, r.Box.files); err != nil {
		return err
	}
	if s.ends() {
		return errGone
	}
	rel := wire.Release{
		Limit: initLimit(s.box.Timeout), Paths: c.Paths, Argv: c.Argv, Env: c.Env,
		Code: from.Mounts[:r.Code], Files: from.Mounts[r.Code:],
	}
	if err := send(s.control, wire.Frame(wire.TypeRelease, rel.Encode())); err != nil {
		return err
	}
	// Init puts the files in their place: as in an ordinary run that is no time of the
	// program's.
	s.waits.sent = time.Now()
	s.timer.Reset(setupTime)
	return nil
}

// giveProgram gives a program that waits its text. The text's file is whole and
// at its place before the program can read the first byte through the FIFO, so
// whatever opens it by that name finds the same. The program's time, its usage
// and its limits count from here on, and so does the run: what is there while an
// interpreter waits (a sitecustomize.py of a mount) can open the file before it is
// at its place, read it while it is written, and end. An error means that none of the
// text was written.
func (s *session) giveProgram(r *Release) error {
	if err := s.watchAnew(); err != nil {
		return err
	}
	if s.ends() { // here, where none of the text is written: it is run elsewhere then
		return errGone
	}
	s.started = time.Now()
	s.timer.Reset(s.box.Timeout)
	rel := wire.Release{Limit: initLimit(s.box.Timeout)}
	err := s.placeText(r.Text)
	if err == nil {
		err = send(s.control, wire.Frame(wire.TypeRelease, rel.Encode()))
	}
	if err != nil {
		// The program may have read the text's file from its first byte on, and done
		// what it likes with it: it is not given to another one.
		s.abort(err)
		return nil
	}
	s.stream()
	fifo := s.waits.fifo
	go func() {
		// Where nobody has opened the FIFO yet, nobody will: the file is there.
		fifo.Write(r.Text)
		fifo.Close()
	}()
	return nil
}

// placeText writes the text's file and has it take the FIFO's place. The names
// are ours, and the directory is one that the program cannot write to.
func (s *session) placeText(text []byte) error {
	at := s.waits.place
	s.waits.place = nil
	dir, file := at[0], os.NewFile(uintptr(at[1]), "text")
	s.waits.fifo = os.NewFile(uintptr(at[2]), "text")
	defer unix.Close(dir)
	_, err := file.Write(text)
	if e := file.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	if ns := s.end.Owned; ns != nil { // the directory belongs to another id than ours
		return ns.Rename(dir, wire.TextFile, s.box.textName())
	}
	return unix.Renameat(dir, wire.TextFile, dir, s.box.textName())
}

// textName is the name of the file that a program waits for.
func (b *Box) textName() string {
	for i := range b.Config.Mounts {
		if o := &b.Config.Mounts[i]; o.Kind == wire.OpText {
			return o.Target[strings.LastIndexByte(o.Target, '/')+1:]
		}
	}
	return ""
}

// watchAnew has the watchdog look as often as it does at a program, and count CPU time
// from here on. What an interpreter holds of sockets and locks is no less its own for
// having been there before its text.
func (s *session) watchAnew() error {
	w := newWatchdog(s.box)
	w.owned = s.end.Owned
	if s.box.programWaits() { // else it has used nothing that one made for its run does not
		s.keepBaseline(w)
		w.leaveOut(s.pid, released)
		s.waits.used = w.base
	}
	s.watch.stop()
	s.watch = w
	return w.start(s.pid)
}

// keepBaseline has what an interpreter's sockets hold count as its own, and not as what
// the host had before. One that has none begins as a new sandbox does: all that others
// have taken while it waited would be laid to its charge. Locks are few enough to be
// counted where the host's slabs have grown.
func (s *session) keepBaseline(w *watchdog) {
	if c, ok := countsIn(s.watch.tree(s.pid).net()); !ok || c.used != 0 {
		w.before.udp, w.before.tcp = s.watch.before.udp, s.watch.before.tcp
	}
	w.before.slabs = s.watch.before.slabs
}
