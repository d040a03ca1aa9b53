// Package denials tells what the filter of a run refused. The filter of an
// explained run asks a listener (seccomp_unotify(2)) where it would have
// refused; the supervisor holds the listener, asks the filter that the profile
// compiles to, answers with the errno that this one gives, and counts.
//
// No answer lets through what the profile refuses. A call is continued only when
// the profile allows it by its registers, which nobody can change while it
// waits; what its memory says is for the report alone. When nobody answers any
// more, because the supervisor is gone, the kernel answers ENOSYS.
package denials

import (
	"net/netip"
	"strconv"
	"sync"
	"time"

	"sandglass/internal/sys"
	"sandglass/pkg/result"
	"sandglass/pkg/seccomp/bpfvm"

	"golang.org/x/sys/unix"
)

// Watch is the listener's side of one run.
type Watch struct {
	// Local are more addresses that are the sandbox's own, beside loopback.
	Local []netip.Prefix
	// Ports are those that somebody answers on for them, sorted, and NameOf is the
	// listed name that such an address stands for; it is needed where Local is.
	Ports  []uint16
	NameOf func(netip.Addr) (string, bool)
	// Writable are the places inside that may be written, as absolute paths. Only
	// with some are writes elsewhere told.
	Writable []string
	// Readlink reads a link of /proc that is not the caller's to read, of at most
	// size bytes, and Getxattr an attribute of what one leads to: where the sandbox
	// has an id of its own. nil otherwise.
	Readlink func(path string, size int) (string, error)
	Getxattr func(path, attr string, size int) (string, error)

	base     []bpfvm.Insn // what the profile says
	filter   []byte       // what the program gets
	observed map[uint32]*observed
	seen     table
	// observe is told of every call, and whether it was refused, when learning.
	observe func(number uint32, args [6]uint64, refused bool)

	once     sync.Once
	listener int
	stop     int // an eventfd, readable from the end on
	done     chan struct{}
}

// New makes the filter that asks from the one that refuses, both compiled.
func New(bpf []byte) (*Watch, error) { return watch(bpf, explaining) }

// NewLearning makes a filter that asks about everything: observe is told, from
// one goroutine, of each call by its registers, and whether it was refused. What
// bpf refuses stays refused. Each call costs what a refused one does otherwise,
// and takes as much of the supervisor's time as the program makes calls.
func NewLearning(bpf []byte, observe func(number uint32, args [6]uint64, refused bool)) (*Watch, error) {
	w, err := watch(bpf, learning)
	if err != nil {
		return nil, err
	}
	w.observe = observe
	return w, nil
}

func watch(bpf []byte, ask func(base []bpfvm.Insn) ([]bpfvm.Insn, error)) (*Watch, error) {
	base, err := bpfvm.Decode(bpf)
	if err != nil {
		return nil, err
	}
	asking, err := ask(base)
	if err != nil {
		return nil, err
	}
	return &Watch{base: base, filter: bpfvm.Encode(asking), observed: observedByNumber(), listener: -1, stop: -1}, nil
}

// Filter is what to install in place of what New was given.
func (w *Watch) Filter() []byte { return w.filter }

// Start answers on the listener, which it takes over, until Stop.
func (w *Watch) Start(listener int) error {
	stop, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		unix.Close(listener)
		return err
	}
	w.listener, w.stop, w.done = listener, stop, make(chan struct{})
	go w.serve()
	return nil
}

// stopTime bounds the wait for an answer under way: it may read memory of a
// process that waits in the kernel, for a network file system say.
const stopTime = 5 * time.Second

// Stop closes the listener. Calls that still wait fail with ENOSYS.
func (w *Watch) Stop() {
	w.once.Do(func() {
		if w.done == nil {
			return
		}
		unix.Write(w.stop, []byte{1, 0, 0, 0, 0, 0, 0, 0})
		late := time.NewTimer(stopTime)
		defer late.Stop()
		select {
		case <-w.done:
			unix.Close(w.stop)
			unix.Close(w.listener)
		case <-late.C:
		}
	})
}

// Denied is what was counted, and how much more there was no room for.
func (w *Watch) Denied() ([]result.Denial, int64) { return w.seen.list() }

func (w *Watch) serve() {
	defer close(w.done)
	fds := []unix.PollFd{{Fd: int32(w.listener), Events: unix.POLLIN}, {Fd: int32(w.stop), Events: unix.POLLIN}}
	var p pace
	for {
		_, err := unix.Poll(fds, -1)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil || fds[1].Revents != 0:
			return
		case fds[0].Revents&unix.POLLIN == 0:
			return // the last process with this filter is gone
		}
		p.begin()
		var n sys.Notification
		if err := sys.ReceiveNotification(w.listener, &n); err == nil {
			w.answer(&n)
		} else if err != unix.ENOENT {
			return
		}
		if d := p.end(); w.observe == nil {
			pause(w.stop, d)
		}
	}
}

// answer ends one call's wait, and counts it when it was refused.
func (w *Watch) answer(n *sys.Notification) {
	verdict, err := bpfvm.Run(w.base, &bpfvm.Data{Nr: n.Nr, Arch: n.Arch, IP: n.IP, Args: n.Args})
	if err != nil {
		verdict = retErrno | uint32(unix.EPERM)
	}
	refused := verdict&actionMask != retAllow && verdict&actionMask != retLog && verdict != retErrno
	if w.observe != nil {
		w.observe(n.Nr, n.Args, refused)
	}
	switch verdict & actionMask {
	case retAllow, retLog:
		w.allowed(n)
		sys.ContinueNotification(w.listener, n.ID)
		return
	case retErrno:
		if verdict == retErrno { // answered as done, and not made
			sys.RefuseNotification(w.listener, n.ID, 0)
			return
		}
	default: // it kills, which a listener cannot
		verdict = retErrno | uint32(unix.EPERM)
	}
	errno := unix.Errno(verdict & errnoMask)
	r := row{kind: "syscall", what: callName(n.Nr), args: arguments(n), errno: unix.ErrnoName(errno), program: program(n.PID)}
	if !sys.NotificationValid(w.listener, n.ID) {
		r.program = "" // the PID may be another process's by now
	}
	w.seen.add(r)
	sys.RefuseNotification(w.listener, n.ID, errno)
}

// program is the name of the thread, which the program chooses: at most 15 bytes.
func program(pid uint32) string {
	fd, err := unix.Open("/proc/"+strconv.Itoa(int(pid))+"/comm", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	var b [64]byte
	k, err := unix.Read(fd, b[:])
	if err != nil || k < 1 {
		return ""
	}
	return clean(b[:k-1]) // without its newline
}

// clean is text that cannot steer a terminal, whoever prints it.
func clean(b []byte) string {
	out := make([]byte, len(b))
	for i, c := range b {
		if c < ' ' || c >= 0x7f {
			c = '?'
		}
		out[i] = c
	}
	return string(out)
}
