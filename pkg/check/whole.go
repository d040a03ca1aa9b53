package check

import (
	"bytes"
	"context"
	"io"
	"os"
	"strconv"

	"sandglass/pkg/check/probes"
	"sandglass/pkg/result"
	"sandglass/pkg/sandbox"
)

// twoSandboxes lets one leave a note everywhere and, while it lives, the other
// look for it.
func twoSandboxes(ctx context.Context, s *suite, c *control) verdict {
	stop, hold, err := os.Pipe()
	if err != nil {
		return leak("pipe: %v", err)
	}
	defer stop.Close()
	release := func() { hold.Close() }
	defer release()
	first := *c
	first.probe, first.args = "neighbour", func(b *bait) []string { return []string{"leave", b.secret} }
	spec := s.spec(&first)
	spec.Spec.Stdin, spec.Stdin = true, stop
	ready := &signaler{want: []byte(`"ready"`), seen: make(chan struct{})}
	spec.Stdout = ready
	ended := make(chan error, 1)
	go func() {
		_, err := sandbox.Run(ctx, spec)
		ended <- err
	}()
	select {
	case <-ready.seen:
	case err := <-ended:
		return leak("the first sandbox ended early: %v", err)
	}
	second := *c
	second.probe, second.args = "neighbour", func(b *bait) []string { return []string{"look", b.secret} }
	second.judge = judgeNeighbour
	v := s.judge(&second, s.sandbox(ctx, &second))
	release()
	if err := <-ended; err != nil && v.held {
		return leak("the first sandbox: %v", err)
	}
	return v
}

func judgeNeighbour(_ *bait, w *saw) verdict {
	return both(w.only("look ", "ENOENT"), w.is("connect", "ECONNREFUSED"), judgeProcesses(nil, w),
		held("%d places, an abstract socket and /proc show nothing", len(w.keys("look "))))
}

// signaler tells when a text came by, and keeps the rest out of memory.
type signaler struct {
	want []byte
	tail []byte
	seen chan struct{}
	done bool
}

func (w *signaler) Write(p []byte) (int, error) {
	if w.done {
		return len(p), nil
	}
	w.tail = append(w.tail, p...)
	if bytes.Contains(w.tail, w.want) {
		w.done = true
		close(w.seen)
	}
	w.tail = w.tail[max(0, len(w.tail)-len(w.want)):]
	return len(p), nil
}

// outputFlood compares this process's own peak of memory before and after.
func outputFlood(ctx context.Context, s *suite, c *control) verdict {
	flood := *c
	flood.probe, flood.args = "flood", number(attackOutput)
	spec := s.spec(&flood)
	spec.Stdout, spec.Stderr = io.Discard, io.Discard
	before := peakMemory()
	res, err := sandbox.Run(ctx, spec)
	after := peakMemory()
	if err != nil {
		return leak("no sandbox: %v", err)
	}
	const limit = megabyte
	switch {
	case res.Outcome != result.Exited || res.ExitCode != 0:
		return leak("the probe ended with outcome %s", res.Outcome)
	case res.Stdout.Bytes != attackOutput*megabyte:
		return leak("only %d bytes came", res.Stdout.Bytes)
	case !res.Stdout.Truncated || res.Stdout.Kept != limit:
		return leak("%d bytes were passed on, the limit is %d", res.Stdout.Kept, limit)
	case before == 0 || after-before > growth:
		return leak("the supervisor grew from %d to %d bytes", before, after)
	}
	return held("%d of %d bytes passed on", res.Stdout.Kept, res.Stdout.Bytes)
}

// peakMemory is the most that this process ever had in memory, in bytes.
func peakMemory() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(status) {
		if value, ok := bytes.CutPrefix(line, []byte("VmHWM:")); ok {
			if f := bytes.Fields(value); len(f) > 0 {
				kb, _ := strconv.ParseInt(string(f[0]), 10, 64)
				return kb << 10
			}
		}
	}
	return 0
}

// daemonsGone: the program leaves three behind and ends.
func daemonsGone(ctx context.Context, s *suite, c *control) verdict {
	d := *c
	d.probe, d.args = "daemons", func(b *bait) []string { return []string{b.mark + "d"} }
	d.judge = func(b *bait, w *saw) verdict {
		if v := w.is("daemons", "3"); !v.held {
			return v
		}
		if left := marked(b.mark + "d"); len(left) > 0 {
			return leak("process %d of the host is one of them", left[0])
		}
		return held("three were started, none is left")
	}
	return s.judge(&d, s.sandbox(ctx, &d))
}

// marked are the host's processes that have the mark among their arguments.
func marked(mark string) []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var pids []int
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		args, err := os.ReadFile("/proc/" + name + "/cmdline")
		if err != nil {
			continue
		}
		list := bytes.Split(args, []byte{0})
		if len(list) > 1 && string(list[0]) == probes.Arg0 && bytes.Contains(args, []byte(mark)) {
			pids = append(pids, pid)
		}
	}
	return pids
}
