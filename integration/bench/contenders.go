package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sandglass/pkg/policy"
	"sandglass/pkg/result"
	"sandglass/pkg/sandbox"

	"golang.org/x/sys/unix"
)

// contender is one way to run /bin/true.
type contender struct {
	name    string
	missing string // why it cannot run here
	env     []string
	run     func() (sample, error)
	samples []sample
	failed  int
}

// program is what all of them run.
const program = "/bin/true"

func contenders(o *options, dir string) ([]*contender, error) {
	if len(o.custom) > 0 {
		return customContenders(o.custom)
	}
	self, err := filepath.Abs(o.sandglass)
	if err != nil {
		return nil, err
	}
	args := []string{"run"}
	if os.Geteuid() != 0 {
		args = append(args, "--allow-degraded", "memory,cpu,pids")
	}
	list := []*contender{
		command("bare "+program, program),
		command("sandglass run", self, append(slices.Clone(args), "--", program)...),
		command("sandglass, a list", self, append(slices.Clone(args), "--allow-host", "127.0.0.1:443", "--", program)...),
		fromImage(o, dir, self, append(slices.Clone(args), imageName, program)),
		api("sandglass (Go)"),
		command("bwrap", "bwrap", bwrapArgs()...),
	}
	if os.Geteuid() != 0 { // a user without ids in /etc/subuid is told so: the second is left out
		for _, id := range []string{"caller", "own"} {
			list = append(list, command("sandglass, --host-id "+id, self, append(slices.Clone(args), "--host-id", id, "--", program)...))
		}
	}
	for _, name := range []string{"crun", "runc"} {
		list = append(list, oci(name, dir))
	}
	var kept []*contender
	for _, c := range list {
		if wanted(o.only, c.name) {
			kept = append(kept, c)
		}
	}
	return kept, nil
}

func wanted(only []string, name string) bool {
	for _, s := range only {
		if strings.Contains(name, s) {
			return true
		}
	}
	return len(only) == 0
}

func customContenders(specs []string) ([]*contender, error) {
	var list []*contender
	for _, s := range specs {
		name, line, ok := strings.Cut(s, "=")
		argv := strings.Fields(line)
		if !ok || len(argv) == 0 {
			return nil, fmt.Errorf("-cmd %q: want NAME=COMMAND", s)
		}
		list = append(list, command(name, argv[0], argv[1:]...))
	}
	return list, nil
}

// command measures one command: the rusage of the wait covers what the command
// itself has waited for.
func command(name, path string, args ...string) *contender {
	c := &contender{name: name}
	full, err := exec.LookPath(path)
	if err != nil {
		c.missing = "not installed"
		return c
	}
	c.run = func() (sample, error) {
		cmd := exec.Command(full, args...)
		cmd.Env = c.env
		errs, err := os.CreateTemp("", "bench-stderr-") // a file: a pipe would cost every one a goroutine
		if err != nil {
			return sample{}, err
		}
		defer errs.Close()
		os.Remove(errs.Name())
		cmd.Stderr = errs
		began := time.Now()
		err = cmd.Run()
		wall := time.Since(began)
		if err != nil {
			text := make([]byte, 512)
			n, _ := errs.ReadAt(text, 0)
			first, _, _ := strings.Cut(strings.TrimSpace(string(text[:n])), "\n")
			return sample{}, fmt.Errorf("%w: %s", err, first)
		}
		return sample{wall: wall, cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}, nil
	}
	return c
}

// api measures pkg/sandbox in this process, as an embedder would use it.
func api(name string) *contender {
	return &contender{name: name, run: func() (sample, error) {
		spec := sandbox.Default()
		spec.Program = policy.Program{Command: []string{program}}
		if os.Geteuid() != 0 {
			spec.AllowDegraded = []string{"memory", "cpu", "pids"}
		}
		before := usage()
		began := time.Now()
		res, err := sandbox.Run(context.Background(), spec)
		s := sample{wall: time.Since(began), cpu: usage() - before}
		if err != nil {
			return s, err
		}
		if res.Outcome != result.Exited || res.ExitCode != 0 {
			return s, errors.New(string(res.Outcome) + " " + res.Error)
		}
		return s, nil
	}}
}

// usage is the CPU time of this process and of the children it has waited for.
func usage() time.Duration {
	var sum time.Duration
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		if unix.Getrusage(who, &u) == nil {
			sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return sum
}
