// Package launch is the supervisor's side of one run: it clones init into new
// namespaces and into the limits' cgroup, sends it the plan, passes the
// program's output on, keeps the clock, and says in the end what happened.
//
// It trusts no byte from inside: messages are bounded, output is counted while
// it streams, and whatever init says is checked against the kernel's own files.
package launch

import (
	"io"
	"os"
	"time"

	"sandglass/internal/refusal"
	"sandglass/internal/sys"
	"sandglass/pkg/cgroup"
	"sandglass/pkg/denials"
	"sandglass/pkg/result"
	"sandglass/pkg/wire"
)

// Box is one sandbox ready to be started. Run uses it up.
type Box struct {
	Config   wire.Config
	Identity Identity
	Group    *cgroup.Group
	Init     *Init // see Boot

	Timeout time.Duration // wall clock from the program's start
	CPUTime time.Duration // of the whole tree, 0: none
	// MemoryMax and the tree's CPU time are sampled when no cgroup holds them.
	MemoryMax int64
	// FreeCPUs is for how many CPUs the tree may have threads that run, where no
	// cgroup gives it a share; more are made nice. 0: one does.
	FreeCPUs int
	// UnchargedMax bounds what the kernel charges no cgroup for: buffers of some
	// sockets, and file locks.
	UnchargedMax int64

	Stdin          io.Reader // nil: end of file
	Stdout, Stderr io.Writer
	OutputLimit    int64
	// Terminal gives the program a terminal of the sandbox's own instead of pipes:
	// what it writes goes to Stdout, and nothing to Stderr. Window is its size,
	// and Resize, which may be nil, has later ones.
	Terminal   bool
	Window     Window
	Resize     <-chan Window
	OutputKill bool

	// Network answers on the sockets for listed hosts, nil for no network.
	Network Network

	// Denials answers for the program's filter, nil when it needs nobody.
	Denials *denials.Watch

	// Around is for the words of a refusal.
	Around Around

	// Hold is for a box that waits for its program, nil for an ordinary one.
	Hold *Hold

	// Unmapped are the sources of a root caller whose file system cannot map ids, so
	// that they are shown as they are. Set by Realize.
	Unmapped []string

	files []*os.File
}

// AddFile passes f to init and returns its number there. Run closes f.
func (b *Box) AddFile(f *os.File) int32 {
	b.files = append(b.files, f)
	return int32(wire.FirstFile + len(b.files) - 1)
}

// AddFD is AddFile for a bare descriptor, which is taken over.
func (b *Box) AddFD(fd int, name string) int32 { return b.AddFile(os.NewFile(uintptr(fd), name)) }

// Close releases the descriptors of a box that was not run.
func (b *Box) Close() {
	for _, f := range b.files {
		f.Close()
	}
	b.files = nil
}

// Identity is who the sandbox is on the host and inside.
type Identity struct {
	HostUID, HostGID     int
	InsideUID, InsideGID int
	// Mapped: the host id is one of the sandbox's own; otherwise the host id is
	// the caller's.
	Mapped bool
	// UIDHelper and GIDHelper are newuidmap and newgidmap where the caller is not
	// root and has a sandbox with an id of its own, "" otherwise.
	UIDHelper, GIDHelper string
}

// helped says that the caller is an ordinary user and the host id not its own.
func (id *Identity) helped() bool { return id.UIDHelper != "" }

// owner is whom the kernel's quotas for users are charged to, 0 for the caller.
// An ordinary user can have nobody else charged, and as the namespace's owner
// may end and look at what has another id in it.
func (id *Identity) owner() int {
	if id.Mapped && !id.helped() {
		return id.HostUID
	}
	return 0
}

// Ending is what became of a run, before the verdict's words are put together.
type Ending struct {
	Outcome  result.Outcome
	ExitCode int
	Signal   int
	Error    string
	Hints    []string

	Wall, Setup    time.Duration
	CPU            time.Duration // of all processes, as far as known without a cgroup
	MemorySeen     int64         // highest sample of the watchdog, 0 when it took none
	Stats          cgroup.Stats
	Stdout, Stderr result.Stream
	// StdoutErr and StderrErr say why the caller's writer did not take a stream.
	StdoutErr, StderrErr error

	ReadBack ReadBack
	// OutDir is the artefact directory of the dead sandbox, nil when not asked
	// for or never reached. The caller closes it.
	OutDir *os.File
	gone   <-chan *refusal.Error // nil when nothing is left, see Wait
	// Lives: what was killed has not ended, and nothing says when it will. Where the
	// kernel is not done with the sandbox it is known after Wait.
	Lives bool

	// Owned is the sandbox's user namespace where its files are not the caller's
	// to read, nil otherwise. The caller closes it.
	Owned *sys.Owned
}
