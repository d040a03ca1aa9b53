package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"sandglass/pkg/policy"
	"sandglass/pkg/result"
	"sandglass/pkg/sandbox"

	"golang.org/x/sys/unix"
)

// program is what all of them run.
const program = "/bin/true"

// measureCold is each of them beside the others, with each of the pauses.
func measureCold(o *options, dir string) error {
	all, err := contenders(o, dir)
	if err != nil {
		return err
	}
	defer stopAll(all)
	runners := starting(all)
	what, refs := program, []string{floorName, "bwrap", filteredName}
	if len(o.custom) > 0 {
		what, refs = "command", nil
		for _, c := range runners {
			refs = append(refs, c.name)
		}
	}
	n := o.rounds
	for _, pause := range o.pauses {
		if runners, err = measure(runners, rounds{n: n, warmup: o.warmup, burst: 1, pause: pause}); err != nil {
			return err
		}
		report(fmt.Sprintf("%s, n=%d, %s", what, n, between(pause)), runners, refs...)
	}
	return nil
}

func contenders(o *options, dir string) ([]*contender, error) {
	if len(o.custom) > 0 {
		return customContenders(o.custom)
	}
	run := func(args ...string) []string { return slices.Concat([]string{"run"}, degraded(), args) }
	list := []*contender{command("bare "+program, program)}
	list = append(list, floors(o, dir)...)
	list = append(list,
		command("sandglass run", o.sandglass, run("--", program)...),
		command("sandglass, a list", o.sandglass, run("--allow-host", "127.0.0.1:443", "--", program)...),
		fromImage(o, dir, o.sandglass, run(imageName, program)),
		api("sandglass (Go)"),
		command("bwrap", "bwrap", bwrapArgs("--", program)...),
		filtered(dir),
	)
	if os.Geteuid() != 0 { // a user without ids in /etc/subuid is told so: the second is left out
		for _, id := range []string{"caller", "own"} {
			list = append(list, command("sandglass, --host-id "+id, o.sandglass, run("--host-id", id, "--", program)...))
		}
	}
	list = append(list, nsjail(), isolate())
	for _, name := range []string{"crun", "runc"} {
		list = append(list, oci(name, dir))
	}
	list = append(list, podman(dir)...)
	list = append(list, runsc(dir), systemdRun())
	return slices.DeleteFunc(list, func(c *contender) bool { return !wanted(o.only, c.name) }), nil
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
		if c.fd3 != "" {
			f, err := os.Open(c.fd3)
			if err != nil {
				return sample{}, err
			}
			defer f.Close()
			cmd.ExtraFiles = []*os.File{f}
		}
		errs, err := os.CreateTemp("", "bench-stderr-") // a file: a pipe would cost every one a goroutine
		if err != nil {
			return sample{}, err
		}
		defer errs.Close()
		os.Remove(errs.Name())
		cmd.Stderr = errs
		began := time.Now()
		err = bounded(cmd)
		wall := time.Since(began)
		if err != nil {
			text := make([]byte, 512)
			n, _ := errs.ReadAt(text, 0)
			return sample{}, fmt.Errorf("%w: %s", err, firstLine(text[:n]))
		}
		return sample{wall: wall, cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}, nil
	}
	return c
}

// hangs is when a run is given up: it takes milliseconds, or waits for something that
// this host does not have.
const hangs = time.Minute

// bounded is cmd.Run with that bound. A context would cost every run a goroutine.
func bounded(cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	var late atomic.Bool
	kill := time.AfterFunc(hangs, func() { late.Store(true); cmd.Process.Kill() })
	defer kill.Stop()
	err := cmd.Wait()
	if late.Load() {
		err = fmt.Errorf("not done after %v", hangs)
	}
	return err
}

// firstLine is the first one of an error, or the first: podman warns before.
func firstLine(text []byte) string {
	first := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if strings.Contains(line, "rror") {
			return line
		}
		first = cmp.Or(first, line)
	}
	return first
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
