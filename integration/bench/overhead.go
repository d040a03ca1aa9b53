package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// callsVerb makes this binary a loop of one system call.
const callsVerb = "calls"

// loopCalls is how many there are in a loop.
const loopCalls = 300_000

// The loops' memory is global: its address stays what it is.
var (
	oneByte [1]byte
	word    uint32
)

// calls are what is called in a loop, with the numbers of a system call: the
// filter is all that differs inside. Nobody waits for the wake.
var calls = []struct {
	name string
	call func(zero uintptr) (nr, a, b, c uintptr)
}{
	{"getppid", func(uintptr) (nr, a, b, c uintptr) { return unix.SYS_GETPPID, 0, 0, 0 }},
	{"read of a byte", func(zero uintptr) (nr, a, b, c uintptr) {
		return unix.SYS_READ, zero, reflect.ValueOf(&oneByte).Pointer(), 1
	}},
	{"futex wake", func(uintptr) (nr, a, b, c uintptr) {
		return unix.SYS_FUTEX, reflect.ValueOf(&word).Pointer(), 1 | 128, 1 // FUTEX_WAKE, private
	}},
}

// callLoops prints the nanoseconds of a loop, by the clock and of CPU time.
func callLoops(args []string) error {
	zero, err := os.Open("/dev/zero")
	if err != nil {
		return err
	}
	defer zero.Close()
	for _, c := range calls {
		if !slices.Equal(args, []string{c.name}) {
			continue
		}
		nr, a, b, d := c.call(zero.Fd())
		runtime.LockOSThread()
		cpu, began := usage(), time.Now()
		for range loopCalls {
			if _, _, errno := unix.RawSyscall(nr, a, b, d); errno != 0 {
				return fmt.Errorf("%s: %w", c.name, errno)
			}
		}
		wall := time.Since(began)
		_, err := fmt.Println(wall.Nanoseconds(), (usage() - cpu).Nanoseconds())
		return err
	}
	return fmt.Errorf("no such call: %q", args)
}

// What computes. Each prints the nanoseconds of its loop as callLoops does: its
// start is no part of them. V8 sizes its heap by the memory that it sees: here both
// have the same one.
const (
	matrices = `import time, numpy
a = numpy.random.default_rng(1).random((600, 600))
a @ a
w, c = time.perf_counter_ns(), time.process_time_ns()
for _ in range(50):
    a @ a
print(time.perf_counter_ns() - w, time.process_time_ns() - c)`
	sorts = `const text = JSON.stringify(Array.from({length: 20000}, (_, i) => ({id: (i * 7919) % 20011, name: "n" + i})));
function round() { const a = JSON.parse(text); a.sort((x, y) => x.id - y.id); return JSON.stringify(a).length; }
for (let i = 0; i < 5; i++) round();
const w = process.hrtime.bigint(), c = process.cpuUsage();
for (let i = 0; i < 30; i++) round();
const d = process.cpuUsage(c);
console.log(String(process.hrtime.bigint() - w), (d.user + d.system) * 1000);`
)

// controlName is a limit that must be seen: a comparison that does not see that
// cannot see an overhead either.
const controlName = "inside, --cpus 0.5 (control)"

// timedWays are a program bare and inside. It tells its own times.
func timedWays(o *options, argv []string, flags []string, limits bool) []*contender {
	inside := func(name string, more ...string) *contender {
		args := slices.Concat([]string{"run", "--timeout", "2m", "--memory", "1g", "-e", "OPENBLAS_NUM_THREADS=1"}, degraded(), flags, more, []string{"--"}, argv)
		return selfTimed(name, o.sandglass, args...)
	}
	bare := selfTimed("bare", argv[0], argv[1:]...)
	bare.env = append(os.Environ(), "OPENBLAS_NUM_THREADS=1")
	list := []*contender{bare, inside("inside", "--cpus", strconv.Itoa(runtime.NumCPU()))}
	if limits {
		list = append(list, inside("inside, by default --cpus 1"), inside(controlName, "--cpus", "0.5"))
	}
	return list
}

// selfTimed is a command that prints what it took.
func selfTimed(name, path string, args ...string) *contender {
	c := &contender{name: name}
	c.run = func() (sample, error) {
		cmd := exec.Command(path, args...)
		cmd.Env = c.env
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			return sample{}, fmt.Errorf("%w: %s", err, firstLine([]byte(errs.String())))
		}
		var s sample
		_, err = fmt.Sscan(string(out), &s.wall, &s.cpu)
		return s, err
	}
	return c
}

// measureOverhead compares what system calls and computing take inside with what
// they take outside.
func measureOverhead(o *options, _ string) error {
	n := o.loops
	heads := []string{"median", "CPU, least", "by bare: median", "of half the rounds", "least by least", "CPU time by bare"}
	rows, err := overCalls(o, n)
	if err != nil {
		return err
	}
	table(append([]string{fmt.Sprintf("a call, n=%d loops of %d", n, loopCalls)}, heads...), rows)
	table(append([]string{fmt.Sprintf("computing, n=%d", n)}, heads...), overComputing(o, n))
	return nil
}

func overCalls(o *options, n int) (rows [][]string, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	perCall := func(d time.Duration) string { return fmt.Sprintf("%.0f ns", float64(d)/loopCalls) }
	for _, c := range calls {
		if !wanted(o.only, c.name) {
			continue
		}
		inside := timedWays(o, []string{"/opt/bench", callsVerb, c.name}, []string{"-v", self + ":/opt/bench"}, false)
		list, err := besideBare([]*contender{selfTimed("bare", self, callsVerb, c.name), inside[1]}, n)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		for _, x := range list {
			rows = append(rows, overheadRow(c.name+", "+x.name, x, list[0], perCall))
		}
	}
	return rows, nil
}

// computing are the programs that compute. Nothing but their loops is measured.
var computing = []struct {
	name string
	argv []string
}{
	{"numpy, matrix products", []string{"/usr/bin/python3", "-c", matrices}},
	{"node, JSON and sorts", []string{"/usr/bin/node", "--max-old-space-size=512", "--max-semi-space-size=16", "-e", sorts}},
}

func overComputing(o *options, n int) (rows [][]string) {
	for _, p := range computing {
		if !wanted(o.only, p.name) {
			continue
		}
		list, err := besideBare(timedWays(o, p.argv, nil, true), n)
		if err != nil {
			fmt.Printf("left out: %s: %v\n", p.name, err)
			continue
		}
		for _, x := range list {
			rows = append(rows, overheadRow(p.name+", "+x.name, x, list[0], func(d time.Duration) string { return ms(d) + " ms" }))
			if r := median(ratios(x.walls(), list[0].walls())); x.name == controlName && r < 1.5 {
				fmt.Printf("\n%s: half a CPU takes only %.2f times as long: these figures cannot tell an overhead\n", p.name, r)
			}
		}
	}
	return rows
}

// besideBare measures ways of which the bare one is the first.
func besideBare(list []*contender, n int) ([]*contender, error) {
	list, err := measure(starting(list), rounds{n: n, warmup: 1, burst: 1})
	if err == nil && list[0].name != "bare" {
		err = errors.New("it does not run bare")
	}
	return list, err
}

// overheadRow compares one way with the bare one.
func overheadRow(name string, x, bare *contender, show func(time.Duration) string) []string {
	r := ratios(x.walls(), bare.walls())
	cpu := func(c *contender) (d []time.Duration) {
		for _, s := range c.samples {
			d = append(d, s.cpu)
		}
		return d
	}
	return []string{name, show(median(x.walls())), show(quantile(cpu(x), 0)), fmt.Sprintf("%.3f", median(r)), fmt.Sprintf("%.3f–%.3f", quantile(r, 0.25), quantile(r, 0.75)),
		fmt.Sprintf("%.3f", float64(quantile(x.walls(), 0))/float64(quantile(bare.walls(), 0))), fmt.Sprintf("%.3f", median(ratios(cpu(x), cpu(bare))))}
}
