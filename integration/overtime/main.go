// Command overtime measures by how much runs pass their time limit: programs
// that only the clock can end, on a quiet machine and on one whose CPUs are all
// taken by others. The figures are the result's own: wall_ms from the program's
// start to the moment when nothing of it was left, less the limit.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

type options struct {
	runs, hogs, uid int
	sandglass, dir  string
	only            string
}

// limit of each run, in milliseconds.
const limit = 1000

// program is one that does not end by itself. What it holds, the kernel has to
// undo after the kill.
type program struct{ name, flags, source, args string }

var programs = []program{
	{"sleeps", "", "tree.c", "vforked 1 -1"},
	{"spins in 64 threads", "", "hog.c", "spinners 63"},
	{"64 deaf or stopped processes", "", "tree.c", "many"},
	{"500 deaf or stopped processes", "--pids-limit 500", "tree.c", "many"},
	{"threads in a relay", "", "tree.c", "relay 20"},
	{"a fork after the other", "", "hog.c", "brief 1"},
	{"holds 200 MB", "", "hog.c", "memory anon 200"},
	{"holds 200 MB, a twentieth of a CPU", "--cpus 0.05", "hog.c", "memory anon 200"},
}

func main() {
	var o options
	flag.IntVar(&o.runs, "n", 20, "runs of each program")
	flag.IntVar(&o.hogs, "hogs", 0, "processes that take all CPU that they get, meanwhile")
	flag.IntVar(&o.uid, "uid", os.Getuid(), "run as this user")
	flag.StringVar(&o.sandglass, "sandglass", "bin/sandglass", "the binary to measure")
	flag.StringVar(&o.only, "only", "", "programs whose name contains this")
	flag.Parse()
	if err := run(&o); err != nil {
		fmt.Fprintln(os.Stderr, "overtime:", err)
		os.Exit(1)
	}
}

func run(o *options) error {
	dir, err := os.MkdirTemp("", "sandglass-overtime-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	o.dir = dir
	// The measured binary may lie where the other user cannot reach it.
	text, err := os.ReadFile(o.sandglass)
	if err != nil {
		return err
	}
	o.sandglass = filepath.Join(dir, "sandglass")
	if err := os.WriteFile(o.sandglass, text, 0o755); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	stop := hogs(o.hogs)
	defer stop()
	fmt.Printf("%d CPUs, %d hogs, uid %d, limit %d ms; milliseconds above it\n\n", runtime.NumCPU(), o.hogs, o.uid, limit)
	fmt.Printf("| %-36s | runs | median | p90 | max |\n|%s|---:|---:|---:|---:|\n", "program", strings.Repeat("-", 38))
	for _, p := range programs {
		if !strings.Contains(p.name, o.only) {
			continue
		}
		over, err := p.measure(o)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		slices.Sort(over)
		fmt.Printf("| %-36s | %4d | %6d | %3d | %3d |\n", p.name, len(over), over[len(over)/2], over[len(over)*9/10], over[len(over)-1])
	}
	return nil
}

// hogs starts processes of ordinary priority that only compute.
func hogs(n int) (stop func()) {
	var list []*exec.Cmd
	for range n {
		c := exec.Command("sh", "-c", "while :; do :; done")
		c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := c.Start(); err == nil {
			list = append(list, c)
		}
	}
	return func() {
		for _, c := range list {
			c.Process.Kill()
			c.Wait()
		}
	}
}

func (p *program) measure(o *options) ([]int64, error) {
	source, err := os.ReadFile("integration/limits/testdata/" + p.source)
	if err != nil {
		return nil, err
	}
	bin, err := testkit.Compile(o.dir, string(source))
	if err != nil {
		return nil, err
	}
	args := []string{"run", "--result-fd", "3", "--timeout", strconv.Itoa(limit) + "ms", "-e", "HOLD=1", "-v", bin + ":" + testkit.Inside}
	if o.uid != 0 {
		args = append(args, "--allow-degraded", "memory,cpu,pids")
	}
	args = append(append(args, strings.Fields(p.flags)...), "--", testkit.Inside)
	args = append(args, strings.Fields(p.args)...)
	over := make([]int64, o.runs)
	for i := range over {
		r, err := once(o, args)
		if err != nil {
			return nil, err
		}
		if r.Outcome != result.Timeout {
			return nil, fmt.Errorf("%s, want %s: %s", r.Outcome, result.Timeout, r.Error)
		}
		over[i] = r.WallMS - limit
	}
	return over, nil
}

// once is one run and its result.
func once(o *options, args []string) (*result.Result, error) {
	out, err := os.CreateTemp(o.dir, "result-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	cmd := exec.Command(o.sandglass, args...)
	cmd.Dir, cmd.ExtraFiles = "/", []*os.File{out}
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent"}
	if o.uid != os.Getuid() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(o.uid), Gid: uint32(o.uid)}}
	}
	cmd.Run() // 124: the result says it
	text, err := os.ReadFile(out.Name())
	if err != nil {
		return nil, err
	}
	var r result.Result
	return &r, json.Unmarshal(text, &r)
}
