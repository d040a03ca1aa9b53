// Command soak runs a mixed load of good and hostile programs, through the
// sandglass command and through the Go API of one long-lived process, and
// compares every verdict with the right one. From outside it looks for what is
// left: processes, cgroups, mounts, namespaces, files, IPC objects, keys, and
// the caller's own descriptors, goroutines and memory.
//
// It does so in a host of its own (new PID, mount, IPC and network namespaces),
// so that whatever is found there is of its own making. As root, or as an
// ordinary user; as root with -uid for an ordinary user.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"sandglass/pkg/sandbox"
)

// options are the flags.
type options struct {
	minutes   float64
	runs      int
	seed      uint64
	at        int
	leg       int
	uid       int
	sandglass string
	prog      string
	lie       string
	only      string
	grace     time.Duration
	initPath  bool
	quiet     bool
	sessions  bool
}

// envStage says which of the three processes this one is: the outer one makes
// the namespaces, the host is PID 1 in them, the load is the caller under test.
const envStage = "SANDGLASS_SOAK_STAGE"

func main() {
	sandbox.Init() // the API starts this binary as init
	os.Exit(stage())
}

func stage() int {
	o, err := parse(os.Args[1:])
	var code int
	if err == nil {
		switch os.Getenv(envStage) {
		case "host":
			code, err = host(o)
		case "load":
			code, err = load(o)
		default:
			code, err = outer(o)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		return 1
	}
	return code
}

func parse(args []string) (*options, error) {
	o := &options{}
	f := flag.NewFlagSet("soak", flag.ExitOnError)
	f.Float64Var(&o.minutes, "minutes", 10, "how long")
	f.IntVar(&o.runs, "runs", 0, "how many runs, instead of a time")
	f.Uint64Var(&o.seed, "seed", 0, "of the order of programs; 0 takes one from the clock")
	f.BoolVar(&o.sessions, "sessions", false, "the load of clients of sandglass session, instead of runs by the command and the Go API")
	f.IntVar(&o.at, "at", 0, "runs at once; 0 is two for each CPU, as far as the memory goes, and 64 with -sessions")
	f.IntVar(&o.leg, "leg", 0, "runs between two looks at the host; 0 is 100, and 512 with -sessions")
	f.IntVar(&o.uid, "uid", os.Getuid(), "the user who runs sandglass, when root starts the soak")
	f.StringVar(&o.sandglass, "sandglass", "bin/sandglass", "the command")
	f.StringVar(&o.prog, "prog", "", "testdata/soak.c, compiled; empty compiles it")
	f.StringVar(&o.lie, "lie", "", "expect a wrong exit code of this program: the soak must fail")
	f.StringVar(&o.only, "only", "", "the programs with this in their names alone")
	f.DurationVar(&o.grace, "grace", 30*time.Second, "how long what goes away without an event may take")
	f.BoolVar(&o.initPath, "init", false, "the API's sandboxes have the command for PID 1, as those of a program with cgo must")
	f.BoolVar(&o.quiet, "quiet", false, "no line for each look")
	f.Parse(args)
	if f.NArg() > 0 || o.minutes <= 0 || o.runs < 0 || o.at < 0 || o.leg < 0 {
		return nil, fmt.Errorf("want flags with positive numbers alone, see -h")
	}
	if o.uid != os.Getuid() && os.Getuid() != 0 {
		return nil, fmt.Errorf("-uid %d: only root can become another user", o.uid)
	}
	var err error
	if o.sandglass, err = filepath.Abs(o.sandglass); err != nil {
		return nil, err
	}
	if o.seed == 0 {
		o.seed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	if o.leg == 0 {
		o.leg = map[bool]int{false: 100, true: 512}[o.sessions]
	}
	if o.at == 0 && o.sessions {
		o.at = clients
	}
	if o.at == 0 {
		o.at = max(2, min(2*runtime.NumCPU(), int(available()/perRun)))
	}
	return o, nil
}

// perRun is the most that one run of the load takes, with its supervisor. It is
// more where no cgroup holds the hogs.
const perRun = 256 << 20

// available is the memory that is to be had.
func available() int64 {
	text, _ := os.ReadFile("/proc/meminfo")
	kb := number(string(text), "MemAvailable:")
	return kb << 10
}

// pass are the arguments for the next stage: what was found or made in this one
// replaces what was asked.
func (o *options) pass(args []string) []string {
	return append(args, "-seed", strconv.FormatUint(o.seed, 10), "-at", strconv.Itoa(o.at), "-uid", strconv.Itoa(o.uid),
		"-sandglass", o.sandglass, "-prog", o.prog)
}
