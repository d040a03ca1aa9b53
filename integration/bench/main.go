// Command bench measures what sandboxes cost beside the peers that are installed:
// cold starts, runs of a session, sandboxes a second, memory, and what programs
// inside lose. Every contender runs in turn, so that what else the machine does
// meets all of them alike; the ratios compare the two samples of one round.
// docs/PERFORMANCE.md has the figures and how to read them.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sandglass/internal/testkit/machine"
	"sandglass/pkg/sandbox"
)

// options are the flags.
type options struct {
	rounds, warmup   int
	sandglass, tool  string
	install          bool
	relay, parallel  int
	loops            int
	slice            time.Duration
	fill, limit      time.Duration
	only, custom     list
	pauses           pauses
	cold, warm       bool
	throughput       bool
	memory, overhead bool
	images           bool
}

type list []string

func (l *list) String() string     { return strings.Join(*l, ",") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

// pauses are lengths of pauses between two runs.
type pauses []time.Duration

func (p *pauses) String() string { return fmt.Sprint([]time.Duration(*p)) }
func (p *pauses) Set(s string) error {
	d, err := time.ParseDuration(s)
	*p = append(*p, d)
	return err
}

// main is also the program of some measurements, by its first argument.
func main() {
	if len(os.Args) > 1 {
		if verb := verbs[os.Args[1]]; verb != nil {
			if err := verb(os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, "bench:", err)
				os.Exit(1)
			}
			return
		}
	}
	sandbox.Init() // the contender "sandglass (Go)" starts this binary as init
	o := parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// verbs are what this binary is inside a sandbox.
var verbs = map[string]func([]string) error{clientVerb: relayClient, callsVerb: callLoops}

func parse() *options {
	var o options
	flag.IntVar(&o.rounds, "n", 100, "runs of each contender")
	flag.IntVar(&o.loops, "loops", 9, "rounds of -overhead")
	flag.IntVar(&o.warmup, "warmup", 5, "rounds of cold starts before the clock")
	flag.Var(&o.pauses, "pause", "pause between two runs; repeated for a table each (default 0s and 10ms)")
	flag.StringVar(&o.sandglass, "sandglass", "bin/sandglass", "the binary to measure")
	flag.StringVar(&o.tool, "tool", "bin/sandglass-image", "the binary that imports images")
	flag.BoolVar(&o.install, "install", false, "install what is missing with apt-get (root only)")
	flag.BoolVar(&o.cold, "cold", false, "cold starts beside other tools; the part without another one named")
	flag.BoolVar(&o.warm, "warm", false, "runs of a session, cold and in sandboxes that are ready")
	flag.BoolVar(&o.throughput, "throughput", false, "sandboxes a second, several at once")
	flag.DurationVar(&o.slice, "slice", time.Second, "how long -throughput measures each")
	flag.IntVar(&o.parallel, "parallel", 64, "the most at once of -throughput")
	flag.BoolVar(&o.memory, "memory", false, "memory of sandboxes that wait and that run")
	flag.DurationVar(&o.fill, "fill", 30*time.Second, "the longest that -memory fills a session for")
	flag.BoolVar(&o.overhead, "overhead", false, "what system calls and computing cost inside")
	flag.IntVar(&o.relay, "relay", 0, "rounds of the relay of --allow-host beside loopback alone")
	flag.DurationVar(&o.limit, "limit", 20*time.Minute, "after which a part that is not done ends the whole")
	flag.BoolVar(&o.images, "images", false, "imports of a large image, and twenty that share layers")
	flag.Var(&o.only, "only", "cold starts, calls and computing whose name contains this (repeatable)")
	flag.Var(&o.custom, "cmd", "NAME=COMMAND ARG…, instead of the usual contenders (repeatable): two builds, say")
	flag.Parse()
	if len(o.pauses) == 0 {
		o.pauses = pauses{0, 10 * time.Millisecond}
		if len(o.custom) > 0 {
			o.pauses = pauses{0}
		}
	}
	return &o
}

// part is one of the measurements. dir is removed after it.
type part struct {
	name    string
	wanted  bool
	measure func(o *options, dir string) error
}

func run(o *options) error {
	if o.rounds < 1 || o.loops < 1 || o.parallel < 1 || o.relay < 0 {
		return errors.New("-n, -loops and -parallel want at least 1")
	}
	var err error
	for _, p := range []*string{&o.sandglass, &o.tool} {
		if *p, err = filepath.Abs(*p); err != nil {
			return err
		}
	}
	parts := []part{
		{"cold starts", o.cold, measureCold}, {"sessions", o.warm, measureWarm}, {"throughput", o.throughput, measureThroughput},
		{"memory", o.memory, measureMemory}, {"overhead", o.overhead, measureOverhead}, {"relay", o.relay > 0, measureRelay},
		{"images", o.images, measureImages},
	}
	if !(o.warm || o.throughput || o.memory || o.overhead || o.relay > 0 || o.images) {
		parts[0].wanted = true
	}
	if o.install {
		install()
	}
	plainEnvironment()
	fmt.Println(machine.Line())
	var failed error
	for _, p := range parts {
		if !p.wanted {
			continue
		}
		// One part that fails does not take the figures of the others with it.
		if err := p.inDirectory(o); err != nil {
			fmt.Printf("\n%s: failed: %v\n", p.name, err)
			failed = errors.Join(failed, fmt.Errorf("%s: %w", p.name, err))
		}
	}
	return failed
}

// inDirectory measures one part, between two looks at what else the machine does.
func (p part) inDirectory(o *options) error {
	dir, err := os.MkdirTemp("", "sandglass-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	fmt.Printf("\n## %s\n\n", p.name)
	// What hangs is ended with this process: all of it hangs on its pipes.
	hung := time.AfterFunc(o.limit, func() {
		fmt.Printf("\n%s: not done after %v\n", p.name, o.limit)
		os.Exit(1)
	})
	defer hung.Stop()
	began, before := time.Now(), machine.Load()
	err = p.measure(o, dir)
	fmt.Printf("\n%.0f s, load before and after: %s, %s\n", time.Since(began).Seconds(), before, machine.Load())
	return err
}

// plainEnvironment leaves the contenders what a sandbox has, and what podman and
// systemd-run ask for. The first interpreters on a developer's PATH may be scripts that
// look for others, and NODE_EXTRA_CA_CERTS alone doubles the start of a bare node.
func plainEnvironment() {
	keep := map[string]string{"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
	for _, k := range []string{"HOME", "TMPDIR", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"} {
		if v, ok := os.LookupEnv(k); ok {
			keep[k] = v
		}
	}
	os.Clearenv()
	for k, v := range keep {
		os.Setenv(k, v)
	}
}

// degraded is what an ordinary user needs on a host that delegates no cgroups.
func degraded() []string {
	if os.Geteuid() == 0 {
		return nil
	}
	return []string{"--allow-degraded", "memory,cpu,pids"}
}
