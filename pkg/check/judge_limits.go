package check

import (
	"context"
	"strconv"
	"strings"
	"time"

	"sandglass/pkg/check/probes"
	"sandglass/pkg/policy"
	"sandglass/pkg/result"
)

// loopTimes are the time limits that the endless loop meets: a short one, and longer
// ones where its program did not begin within that.
var loopTimes = []time.Duration{500 * time.Millisecond, 5 * time.Second, 50 * time.Second}

// loopStopped lets the loop run into its limit. What was stopped before its first
// word proves nothing: on a slow host any program is, one that would end as well.
func loopStopped(ctx context.Context, s *suite, c *control) verdict {
	loop := *c
	loop.anyEnd, loop.judge = true, judgeLoop
	var v verdict
	for _, limit := range loopTimes {
		loop.spec = limits(func(l *policy.Limits) { l.Timeout = limit })
		w := s.sandbox(ctx, &loop)
		if v = s.judge(&loop, w); v.held || !w.unbegun() {
			break
		}
	}
	return v
}

// unbegun: the time was over before the loop's first word.
func (s *saw) unbegun() bool {
	return s.res.Outcome == result.Timeout && s.answers["loop"] != probes.Done
}

func judgeLoop(_ *bait, s *saw) verdict {
	limit := s.res.Limits["timeout"].Value
	switch {
	case s.res.Outcome != result.Timeout || s.res.ExitCode != result.ExitTimeout:
		return leak("%s", s.ending())
	case s.res.WallMS < limit:
		return leak("stopped after %d ms, before the limit of %d", s.res.WallMS, limit)
	case s.unbegun():
		return leak("the loop did not begin within %d ms", limit)
	}
	return held("stopped at %d ms, exit code %d", limit, s.res.ExitCode)
}

func judgeMemory(_ *bait, s *saw) verdict {
	by, kernel := s.enforced("memory")
	if s.res.Outcome != result.Memory || s.answers["memory"] != "" {
		return leak("%s: %s", s.ending(), s.answers["memory"])
	}
	if !kernel {
		return weak("stopped by the %s", by)
	}
	if s.res.OOMKills < 1 {
		return leak("stopped, but the kernel counts no out-of-memory kill")
	}
	return held("outcome memory at %d MiB, enforced by %s", s.res.Limits["memory"].Value/megabyte, by)
}

// judgeScratch: a watchdog sees the memory of processes, not of files, so that
// without the kernel's limit the size of the scratch alone holds.
func judgeScratch(_ *bait, s *saw) verdict {
	by, kernel := s.enforced("memory")
	if !kernel {
		return weak("files of the scratch do not count where a %s holds the limit; --disk bounds them", by)
	}
	if s.res.Outcome != result.Memory || s.answers["scratch"] != "" {
		return leak("%s: wrote %s%s", s.ending(), s.answers["scratch"], s.answers["write"])
	}
	return held("outcome memory, enforced by %s", by)
}

// judgeFork: the peak must be the limit itself. Below it the bomb did not go
// off, and nothing was proven.
func judgeFork(_ *bait, s *saw) verdict {
	by, kernel := s.enforced("pids")
	limit := s.res.Limits["pids"].Value
	started, fork := s.answers["started"], s.answers["fork"]
	if started == strconv.Itoa(attackForks) {
		return leak("%s processes, each with its threads, were started", started)
	}
	if kernel && s.res.PidsPeak >= 0 {
		if s.res.PidsPeak != limit {
			return leak("at its peak there were %d processes and threads, the limit is %d", s.res.PidsPeak, limit)
		}
		return held("%d processes and threads at most, enforced by %s", s.res.PidsPeak, by)
	}
	// A Go program that gets no thread ends by itself, which is a refusal too.
	if fork != "EAGAIN" && s.res.ExitCode == 0 {
		return leak("fork: %s after %s processes", fork, started)
	}
	if !kernel {
		return weak("refused by the %s", by)
	}
	return held("refused by %s", by)
}

// judgeCPU compares CPU time with wall time, both taken outside. On a busy host
// a program may get little without any limit, so the kernel must also say that
// it held the program back.
func judgeCPU(_ *bait, s *saw) verdict {
	by, kernel := s.enforced("cpus")
	if !kernel {
		return weak("enforced by %s: the program had %d ms of CPU in %d ms", by, s.res.CPUMS, s.res.WallMS)
	}
	if !s.throttled() {
		return leak("%d ms of CPU in %d ms, never held back", s.res.CPUMS, s.res.WallMS)
	}
	if s.res.WallMS < attackCPU/2 || s.res.CPUMS == 0 || s.res.CPUMS > s.res.WallMS/4 {
		return leak("%d ms of CPU in %d ms, at a limit of a tenth", s.res.CPUMS, s.res.WallMS)
	}
	return held("%d ms of CPU in %d ms, at a limit of a tenth, enforced by %s", s.res.CPUMS, s.res.WallMS, by)
}

// throttled: nr_throttled of the program's own cgroup is not 0.
func (s *saw) throttled() bool {
	for _, key := range s.keys("throttling ") {
		for line := range strings.Lines(s.answers[key]) {
			if n, ok := strings.CutPrefix(line, "nr_throttled "); ok && strings.TrimSpace(n) != "0" {
				return true
			}
		}
	}
	return false
}

func judgeDisk(_ *bait, s *saw) verdict {
	return s.full("written", s.res.Limits["disk"].Value, "bytes")
}

func judgeInodes(_ *bait, s *saw) verdict {
	return s.full("made", s.res.Limits["disk_inodes"].Value, "files")
}

// full: every place was full at last, and what they took together is within
// the limit.
func (s *saw) full(key string, limit int64, unit string) verdict {
	n, err := strconv.ParseInt(s.answers[key], 10, 64)
	if err != nil || n == 0 || n > limit {
		return leak("%s %s of at most %d", s.answers[key], unit, limit)
	}
	v := s.only("full ", "ENOSPC")
	if places := len(s.keys("full ")); v.held && places != 5 {
		return leak("only %d places are full", places)
	}
	if v.held {
		v.seen = strconv.FormatInt(n, 10) + " " + unit + " in all places together"
	}
	return v
}

func judgeRlimits(_ *bait, s *saw) verdict {
	return both(s.is("limit core", "1 1"), s.only("raise ", "EPERM"), s.only("nice", "EPERM", "EACCES"))
}

// judgeCore: the crash leaves no file. That no helper behind a pipe in
// core_pattern was started is RLIMIT_CORE's value, see judgeRlimits.
func judgeCore(b *bait, s *saw) verdict {
	if s.res.Outcome != result.Signaled || s.res.Signal != 11 {
		return leak("the crash came to %s", s.ending())
	}
	for _, a := range s.res.Artifacts {
		return leak("%s was left behind", a.Path)
	}
	return held("no file")
}

func judgeCgroup(_ *bait, s *saw) verdict {
	refused := []string{"EROFS", "EACCES", "EPERM", "ENOENT"}
	v := both(s.only("mkdir ", refused...), s.only("write ", refused...), s.only("above ", ""))
	if s.answers["views"] == "0" { // without limits of the kernel there is none to show
		v = held("no cgroup is shown")
	}
	if !v.held {
		return v
	}
	if s.answers["cgroup"] == "" {
		return leak("/proc/self/cgroup says nothing")
	}
	for line := range strings.Lines(s.answers["cgroup"]) {
		if !strings.HasSuffix(line, ":/\n") {
			return leak("/proc/self/cgroup shows %q", line)
		}
	}
	return held("not writable; it is the root of its own view")
}
