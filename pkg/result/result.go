// Package result is the one vocabulary for what became of a run: the command
// line, the Go API, the JSON result and the tests all use it. It imports
// nothing of ours.
//
// docs/result.schema.json is the JSON Schema of Result; a test validates real
// results against it. Fields are only ever added while Schema stays 1.
package result

// Schema is the version of the JSON form.
const Schema = 1

// Outcome says who ended the run and why. Exited to Output are the program's
// doing; Refused and Failed are ours.
type Outcome string

const (
	Exited   Outcome = "exited"   // the program ended with ExitCode
	Signaled Outcome = "signaled" // a signal that was not ours ended it
	Timeout  Outcome = "timeout"  // the wall clock limit ended it
	CPUTime  Outcome = "cpu_time" // the CPU time limit of the whole tree ended it
	Memory   Outcome = "memory"   // the kernel's out-of-memory events name the sandbox
	Output   Outcome = "output"   // the output limit ended it (only with --on-output-limit kill)
	Canceled Outcome = "canceled" // the caller ended it (context, SIGINT, SIGTERM)
	Refused  Outcome = "refused"  // nothing was run: bad input or a control this host cannot give
	Failed   Outcome = "failed"   // sandglass itself failed; nothing untrusted went on running
)

// Enforcer says what holds a limit.
type Enforcer string

const (
	ByCgroup2  Enforcer = "cgroup2"
	ByCgroup1  Enforcer = "cgroup1"
	ByRlimit   Enforcer = "rlimit"
	ByWatchdog Enforcer = "watchdog" // the supervisor samples the tree: late, but it comes
	ByTmpfs    Enforcer = "tmpfs"
	ByClock    Enforcer = "supervisor"
	ByNone     Enforcer = "none"
)

// Result is what one run came to. Times are milliseconds, sizes bytes.
type Result struct {
	Schema   int     `json:"schema"`
	Outcome  Outcome `json:"outcome"`
	ExitCode int     `json:"exit_code"` // what sandglass run exits with, unless Error goes with an outcome of the program's
	Signal   int     `json:"signal,omitempty"`
	// Error is the one-line cause when Outcome is refused or failed. With any
	// other outcome it is what did not reach the caller, and sandglass run exits
	// with 125: the run was as the Result says, but not all of it is there.
	Error string   `json:"error,omitempty"`
	Hints []string `json:"hints,omitempty"`

	// Warm: the sandbox was made before the request for it came, see docs/SESSION.md.
	Warm bool `json:"warm"`

	WallMS          int64 `json:"wall_ms"`
	SetupMS         int64 `json:"setup_ms"` // from the call to the program's exec
	CPUMS           int64 `json:"cpu_ms"`
	MemoryPeakBytes int64 `json:"memory_peak_bytes"`
	PidsPeak        int64 `json:"pids_peak"`
	OOMKills        int64 `json:"oom_kills"`

	Stdout Stream `json:"stdout"`
	Stderr Stream `json:"stderr"`

	HostID *HostID `json:"host_id,omitempty"` // of a run that began

	Limits map[string]Limit `json:"limits"`
	Layers []Layer          `json:"layers"`

	PolicySHA256 string     `json:"policy_sha256"`
	Denied       []Denial   `json:"denied"` // filled only for a run that explains denials
	DeniedMore   int64      `json:"denied_more,omitempty"`
	Artifacts    []Artifact `json:"artifacts"`
	Network      *Network   `json:"network,omitempty"` // of a run with a list of hosts

	// Unmapped are mounts of a root caller whose file system cannot map ids (overlay,
	// FUSE, 9p): the program reads there what everybody may read, and nothing else.
	Unmapped []string `json:"unmapped,omitempty"`
}

// Stream counts one output stream. Text or Base64 is filled only when the
// caller asked for captured output: Text when it is valid UTF-8.
type Stream struct {
	Bytes     int64  `json:"bytes"` // written by the program
	Kept      int64  `json:"kept"`  // passed on or captured
	Truncated bool   `json:"truncated"`
	Text      string `json:"text,omitempty"`
	Base64    string `json:"base64,omitempty"`

	capture *Capture // stands for Text and Base64, see Attach
}

// HostID is who the program was on the host.
type HostID struct {
	UID int    `json:"uid"`
	GID int    `json:"gid"`
	Own bool   `json:"own"`           // of this sandbox alone while it ran
	Why string `json:"why,omitempty"` // why it was the caller's
}

// Unit is what Limit.Value counts.
type Unit string

const (
	Bytes        Unit = "bytes"
	Milliseconds Unit = "ms"
	Count        Unit = "count"
	MilliCPU     Unit = "millicpu" // thousandths of a CPU
	BytesPerSec  Unit = "bytes/s"
	OpsPerSec    Unit = "ops/s"
)

// Limit is one limit's value and what held it. Value 0 is no limit.
type Limit struct {
	Value      int64    `json:"value"`
	Unit       Unit     `json:"unit"`
	EnforcedBy Enforcer `json:"enforced_by"`
	// Weaker is set where the caller let the control group be missing by name:
	// what holds the limit instead, and what that does not see.
	Weaker string `json:"weaker,omitempty"`
}

// State is how far a layer or control was put in place.
type State string

const (
	Enforced State = "enforced"
	Degraded State = "degraded" // by weaker means, which the caller allowed by name
	Absent   State = "absent"
)

// Layer is one layer of the design's table, as read back from the kernel.
type Layer struct {
	Name      string            `json:"name"`
	Requested bool              `json:"requested"`
	State     State             `json:"state"`
	ReadBack  map[string]string `json:"read_back,omitempty"` // e.g. Seccomp: 2, NoNewPrivs: 1
}

// Denial is something the policy stopped. What the program chose in it is
// bounded and printable, and still hostile text.
type Denial struct {
	Kind    string `json:"kind"`              // syscall, host, file
	What    string `json:"what"`              // the call's name, or as the program gave it
	Args    string `json:"args,omitempty"`    // of a syscall: what the profile decides by
	Errno   string `json:"errno,omitempty"`   // what the program got, by name
	Program string `json:"program,omitempty"` // the thread's own name for itself
	Count   int64  `json:"count"`
}

// Artifact is one entry that the program left in /out. Path is relative and
// uses the program's own bytes (escaped as base64 in PathBase64 when they are
// not UTF-8). Skipped says why an entry was left out.
type Artifact struct {
	Path       string `json:"path"`
	PathBase64 string `json:"path_base64,omitempty"`
	Type       string `json:"type"` // file, dir, symlink, fifo, socket, device, unknown
	Size       int64  `json:"size"`
	Mode       string `json:"mode"` // octal permission bits as written on the host, no set-uid
	SHA256     string `json:"sha256,omitempty"`
	Target     string `json:"target,omitempty"` // a symlink's text; links are never made or followed
	Skipped    string `json:"skipped,omitempty"`
	// Text or Base64 is a file's content where the result brings it, as in a Stream.
	Text   string `json:"text,omitempty"`
	Base64 string `json:"base64,omitempty"`
}
