// Command bench measures how long a cold start takes, beside the peers that
// are installed. Every contender runs once per round, in turn, so that what
// else the machine does meets all of them alike; the ratios compare the two
// samples of one round. With -relay it measures the relay of runs with a list of
// hosts, with -images imports of images, with -warm runs of a session.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"sandglass/internal/testkit/machine"
	"sandglass/pkg/sandbox"
)

// options are the flags.
type options struct {
	rounds, warmup int
	sandglass      string
	tool           string
	install        bool
	relay          int
	images, warm   bool
	only           list
	custom         list
}

type list []string

func (l *list) String() string     { return strings.Join(*l, ",") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

func main() {
	if len(os.Args) == 3 && os.Args[1] == clientVerb {
		if err := relayClient(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	sandbox.Init() // the contender "sandglass (Go)" starts this binary as init
	var o options
	flag.IntVar(&o.rounds, "n", 100, "rounds; each contender runs once in each")
	flag.IntVar(&o.warmup, "warmup", 5, "rounds before the clock")
	flag.StringVar(&o.sandglass, "sandglass", "bin/sandglass", "the binary to measure")
	flag.StringVar(&o.tool, "tool", "bin/sandglass-image", "the binary that imports images")
	flag.BoolVar(&o.images, "images", false, "imports of a large image, and twenty that share layers, instead of cold starts")
	flag.BoolVar(&o.warm, "warm", false, "runs of a session, cold and in sandboxes that are ready, instead of cold starts")
	flag.BoolVar(&o.install, "install", false, "install missing peers with apt-get (root only)")
	flag.IntVar(&o.relay, "relay", 0, "rounds of the relay of --allow-host beside loopback alone, instead of cold starts")
	flag.Var(&o.only, "only", "run contenders whose name contains this (repeatable)")
	flag.Var(&o.custom, "cmd", "NAME=COMMAND ARG…, instead of the usual contenders (repeatable): two builds, say")
	flag.Parse()
	if err := run(&o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(o *options) error {
	if o.rounds < 1 {
		return fmt.Errorf("-n %d: want at least 1", o.rounds)
	}
	if o.relay > 0 {
		fmt.Println(machine.Line())
		return measureRelay(o)
	}
	if o.warm {
		fmt.Println(machine.Line())
		return measureWarm(o)
	}
	dir, err := os.MkdirTemp("", "sandglass-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if o.images {
		fmt.Println(machine.Line())
		return measureImages(o, dir)
	}
	if o.install {
		install()
	}
	all, err := contenders(o, dir)
	if err != nil {
		return err
	}
	fmt.Println(machine.Line())
	runners := starting(all)
	if len(runners) == 0 {
		return fmt.Errorf("no contender starts here")
	}
	if err := measure(runners, o); err != nil {
		return err
	}
	report(runners)
	return nil
}

// starting drops the contenders that do not start on this host, and says why.
func starting(all []*contender) []*contender {
	var ok []*contender
	for _, c := range all {
		if c.missing == "" {
			if _, err := c.run(); err != nil {
				c.missing = err.Error()
			}
		}
		if c.missing != "" {
			fmt.Printf("left out: %s: %s\n", c.name, c.missing)
			continue
		}
		ok = append(ok, c)
	}
	return ok
}

// tries is how often a run may fail before the whole comparison does: runc does
// so on a busy machine now and then.
const tries = 5

// try is one run that counts. Failed ones are told in the table.
func (c *contender) try() (s sample, err error) {
	for range tries {
		if s, err = c.run(); err == nil {
			return s, nil
		}
		c.failed++
	}
	return s, err
}

// measure runs the rounds. The order turns by one each round, so that no
// contender always runs behind the same other one.
func measure(runners []*contender, o *options) error {
	for round := range o.warmup + o.rounds {
		for i := range runners {
			c := runners[(round+i)%len(runners)]
			s, err := c.try()
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			if round >= o.warmup {
				c.samples = append(c.samples, s)
			}
		}
	}
	return nil
}
