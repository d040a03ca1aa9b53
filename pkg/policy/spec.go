// Package policy is what the caller may ask for: a Spec, the flags that fill
// one, and the rules that a Spec must keep. It is strict: what it does not know
// is an error, and nothing is widened silently. It touches nothing on the host
// but to read files that the caller named.
package policy

import "time"

// Spec is one run: what to run, in which root, under which limits. The zero
// value is not valid; start from Default.
type Spec struct {
	Image   string   // "host" (the host's own /usr, read-only), an absolute directory, or the digest of an imported image
	Program Program  // what to run
	Env     []string // K=V, each name once
	Workdir string   // absolute path inside, default /work
	User    User
	Mounts  []Mount
	Venv    string // Python virtual environment on the host, "" for none

	Limits        Limits
	OutputLimit   OutputAction
	Seccomp       string   // profile name, or path of a compiled .bpf when it contains '/'
	AllowDegraded []string // limits that may be held by less: memory, cpu, pids, io
	AllowMounts   []string // dangerous mount sources that the caller named
	Proc          string   // "default" or "none"
	HostID        HostID   // whose the sandbox's processes and files are on the host
	Hosts         []string // HOST[:PORT] that the program may reach by TCP, see hosts.Parse; none: no network
	ServerNames   SNICheck // on which ports a TLS hello must name the host
	Pty           bool     // pseudo-terminals inside, whose echo no CPU limit holds
	CgroupParent  string   // absolute path below the cgroup mount, "" for the default

	Files []File // put into the scratch before the program starts

	Out   string // host directory for artefacts, "" for none
	Keep  bool   // artefacts come with the result instead, see MaxKept
	Force bool   // artefacts may overwrite files in Out
	Stdin bool   // pass the caller's stdin; otherwise it is at end of file
	TTY   bool   // the program's streams are a terminal of the sandbox's own

	// ExplainDenials has the result list what was refused.
	ExplainDenials bool

	// Home is the caller's home directory, "" when unknown. It only helps to
	// tell dangerous mount sources and is not part of Digest.
	Home string

	// ImageName is what the caller calls an imported image, "" for its digest. It is
	// only for messages, and not part of Digest.
	ImageName string
}

// Program says what to run. Exactly one of Command, Code and File is set.
type Program struct {
	Command []string // argv, looked up inside
	Code    []byte   // source text for Lang
	File    string   // host path of a script or an executable
	Lang    string   // interpreter for Code, or for File instead of its extension
	Args    []string // arguments after Code or File
}

// File is one file that is the program's own when it starts.
type File struct {
	Name    string // below /work: relative and clean
	Content []byte
	Source  string // host path to copy from instead of Content, "" for none
	Exec    bool   // mode 0755 instead of 0644
}

// User is the identity inside. It is never the host's.
type User struct{ UID, GID uint32 }

// Mount is one -v: a host path, absolute and existing, at Target inside.
type Mount struct {
	Source string
	Target string
	Write  bool
}

// Limits of one run. Zero means "no limit" only where the comment says so.
type Limits struct {
	Timeout    time.Duration // wall clock from the program's start
	CPUTime    time.Duration // of the whole tree; 0: none
	Memory     int64         // bytes: anonymous, page cache, scratch and kernel memory; swap is off
	MilliCPU   int64         // thousandths of a CPU
	Pids       int64         // processes and threads
	Disk       int64         // bytes of scratch
	DiskInodes int64         // files and directories of scratch
	Output     int64         // bytes kept of stdout and of stderr each
	OpenFiles  int64         // RLIMIT_NOFILE
	FileSize   int64         // bytes, RLIMIT_FSIZE; 0: see MaxFileSize
	Stack      int64         // bytes, RLIMIT_STACK soft limit; argv and env may fill a quarter of it
	IO         []IOLimit     // none by default
	OutFiles   int64         // entries of /out that are collected
	OutBytes   int64         // bytes of all its files together; one may take them all

	Net NetLimits // of a run with Hosts
}

// MaxFileSize is RLIMIT_FSIZE. Where the caller sets none it lies above the
// scratch, so that a program that fills it meets ENOSPC, as on any full disk,
// and not SIGXFSZ, which ends it. It still bounds a file of a writable mount.
func (l *Limits) MaxFileSize() int64 {
	if l.FileSize > 0 {
		return l.FileSize
	}
	return l.Disk + 1<<20
}

// NetLimits bound what a run with listed hosts may do over the network.
type NetLimits struct {
	Open     int64         // connections at the same time; further ones wait
	Total    int64         // connections in all; further ones are refused
	Upload   int64         // bytes from the program, of all connections together
	Download int64         // bytes to it
	Rate     int64         // bytes a second, both directions together; 0: none
	Idle     time.Duration // of one connection, then it is cut
}

// SNICheck says where the server name of a TLS hello is compared with the host.
type SNICheck string

const (
	SNI443 SNICheck = "443" // connections to port 443
	SNIAll SNICheck = "all" // every connection, which must all be TLS
	SNIOff SNICheck = "off" // none
)

// IOLimit bounds one block device.
type IOLimit struct {
	Device   string // path of a block device, e.g. /dev/vda
	ReadBPS  int64  // bytes a second, 0: no limit
	WriteBPS int64
	ReadIOPS int64
	WriteIOP int64
}

// OutputAction is what happens when a stream passes Limits.Output.
type OutputAction string

const (
	// OutputTruncate keeps the head, drops the rest and lets the program end by itself.
	OutputTruncate OutputAction = "truncate"
	// OutputKill ends the run with outcome "output".
	OutputKill OutputAction = "kill"
)

// HostID says whether a sandbox has a user and a group id on the host that are
// nobody else's.
type HostID string

const (
	HostIDAuto   HostID = "auto"   // its own where this host and the run allow it, else the caller's
	HostIDOwn    HostID = "own"    // its own, or the run is refused
	HostIDCaller HostID = "caller" // the caller's
)

// Default is the policy that applies where the caller says nothing.
func Default() Spec {
	return Spec{
		Image:       "host",
		Workdir:     "/work",
		User:        User{UID: 65534, GID: 65534},
		Seccomp:     "default",
		Proc:        "default",
		HostID:      HostIDAuto,
		ServerNames: SNI443,
		OutputLimit: OutputTruncate,
		Limits: Limits{
			Timeout:    10 * time.Second,
			Memory:     256 << 20,
			MilliCPU:   1000,
			Pids:       64,
			Disk:       64 << 20,
			DiskInodes: 16 << 10,
			Output:     1 << 20,
			OpenFiles:  1024,
			Stack:      8 << 20,
			OutFiles:   1000,
			OutBytes:   256 << 20,
			Net:        NetLimits{Open: 64, Total: 4096, Upload: 64 << 20, Download: 1 << 30, Idle: 5 * time.Minute},
		},
	}
}
