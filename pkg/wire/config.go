// Package wire holds the messages between the supervisor (launch) and the
// sandbox's init (boxinit), and their binary form. It imports nothing of ours,
// and no reflection: init pays for everything that is linked before it runs.
//
//	supervisor                              init
//	    ── IDs{user, group} ────────────────▶  takes them (only where helpers map them)
//	    ── Files + [descriptors] ───────────▶  keeps them; any number of times
//	    ── Config ──────────────────────────▶  builds the sandbox, step by step
//	    ◀── Failed{step, errno} ─────────────  a step failed; init is gone after it
//	    ◀── NotStarted{errno, path} ─────────  execve of the program failed
//	    ◀── Network + [sockets] ─────────────  the resolver's and a listener for each port (only with a list of hosts)
//	    ◀── Terminal + [master] ─────────────  the program's terminal is made (only with one)
//	    ◀── Ready + [out dir] ────────────────  the program is about to start (only with an out dir)
//	    ◀── Waits ───────────────────────────  all is done but the program's start (only where init waits)
//	    ◀── Text + [dir, file, FIFO] ─────────  where the program's text will go (only where the program waits)
//	    ── Release ─────────────────────────▶  there is a program (instead of Ack where it runs already)
//	    ◀── Started + [pidfd, listener] ──────  the program runs (listener: only when asked for)
//	    ── Ack ─────────────────────────────▶  the supervisor has read back what it needs
//	    ◀── Exited{status, usage} ───────────  the program ended; init exits after Ack
//
// End of file on either side means that the peer is gone: init then exits, and
// the kernel kills what is left in its PID namespace.
package wire

// NoFD marks a descriptor field that is not used.
const NoFD = int32(-1)

// FirstFile is the number of the first descriptor that came with Files. The
// ones below are stdio and the control socket.
const FirstFile = 4

// MaxFiles is how many descriptors one Files frame carries (SCM_MAX_FD is 253).
const MaxFiles = 128

// Config is everything init needs. Descriptor fields count the descriptors that
// came with Files, from FirstFile on.
type Config struct {
	Hostname string
	Mounts   []Op
	Loopback bool // bring lo up
	// Routes are the addresses that are local inside, and Ports the TCP ports that
	// init listens on for the supervisor, where there is a list of hosts.
	Routes []Route
	Ports  []uint16

	// The program's cgroup. On v2 Box is the directory for CLONE_INTO_CGROUP;
	// on v1 the program writes itself into each tasks file before its exec.
	Box   int32
	Tasks []int32
	// CgroupNS makes a cgroup namespace rooted at the program's own cgroup.
	CgroupNS bool

	Rlimits []Rlimit
	// SmallPages keeps the kernel from giving the program huge pages, for one byte
	// of which it holds 2 MiB.
	SmallPages bool

	Seccomp []byte // classic BPF, struct sock_filter in native byte order
	// InitSeccomp is init's own filter. The program's would allow it more than it
	// needs, or, where the caller wrote it, less than it needs to report the end.
	InitSeccomp []byte
	// Listener: the program's filter has one, whose descriptor init sends with
	// Started.
	Listener bool

	Stdin, Stdout, Stderr int32
	// Terminal asks for a terminal of the sandbox's own as all three instead.
	Terminal   bool
	Rows, Cols uint16 // its first size

	Paths []string // candidates for execve, tried in order
	Argv  []string
	Env   []string
	Dir   string // working directory inside
	// CPUs is the program's CPU set as sched_setaffinity(2) takes it, empty for
	// the caller's own.
	CPUs []byte

	// Writable are the paths inside that Landlock lets the program write below.
	Writable []string

	// OutDir is the directory whose descriptor init sends with Ready, so
	// that the supervisor can collect from it when all processes are dead.
	OutDir string

	// Limit is after how many milliseconds of the program init ends the run by
	// itself: later than the supervisor's own clock, which stands still while the
	// supervisor is stopped (SIGSTOP, a debugger).
	Limit uint64

	// Waits is what is kept ready, and Idle after how many milliseconds of waiting
	// init ends.
	Waits Waits
	Idle  uint64
}

// MaxLimit bounds Config.Limit: more than the longest time limit, and no number
// that a clock could not count to.
const MaxLimit = 31 * 24 * 3600 * 1000

// Rlimit is one setrlimit(2) pair.
type Rlimit struct {
	Resource int32
	Soft     uint64
	Hard     uint64
}

// Kind says what an Op does.
type Kind uint8

// The kinds of mount operation, see Op.
const (
	OpRoot   Kind = iota + 1 // tmpfs over "/" that becomes the new root
	OpDir                    // directory Target with Mode, parents 0755
	OpFile                   // regular file Target with Mode and Data
	OpCopy                   // regular file Target with Mode and the bytes of FD from Offset on, at most Size
	OpLink                   // symbolic link Target with text Source
	OpBind                   // host path Source, verified to be Dev:Ino, on Target
	OpTree                   // detached mount FD on Target
	OpInner                  // path Source of the new root on Target
	OpTmpfs                  // new tmpfs with Size, Inodes, Mode on Target
	OpProc                   // proc of the new PID namespace on Target, Data are its options
	OpDevpts                 // own devpts on Target
	OpMask                   // hide Target if it exists: a file below Source of the new root, a directory below an empty one
	OpFreeze                 // everything attached so far becomes Attr, recursively
	OpPivot                  // pivot_root, detach the old root
	OpRest                   // mask what the directory Target holds, but for processes and the names in Data
	OpText                   // FIFO Target for a text that is to come, and TextFile beside it with Mode, see ProgramWaits
)

func (k Kind) String() string {
	names := [...]string{"", "root", "dir", "file", "copy", "link", "bind", "tree", "inner", "tmpfs", "proc", "devpts", "mask", "freeze", "pivot", "rest", "text"}
	if int(k) < len(names) {
		return names[k]
	}
	return "unknown"
}

// Attr are mount attributes.
type Attr uint8

const (
	ReadOnly Attr = 1 << iota
	NoSuid
	NoDev
	NoExec
)

// Op is one step of building the root. Targets are absolute paths inside the
// new root; they are resolved below it without following links.
type Op struct {
	Kind      Kind
	Source    string
	Target    string
	FD        int32
	Attr      Attr
	Recursive bool
	Mode      uint32
	Size      uint64
	Offset    uint64
	Inodes    uint64
	Dev, Ino  uint64 // identity of Source as the supervisor checked it; 0 is not checked
	Data      []byte
}
