package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"

	"sandglass/pkg/result"
	"sandglass/pkg/sandbox"

	"golang.org/x/sys/unix"
)

// judge says what is wrong with the end of a run, "" for nothing.
func (s *soak) judge(e *ended) string {
	j, w := e.job, e.job.want
	if j.name == s.o.lie {
		w.exit++
	}
	if j.via != "api" && e.err != nil {
		return e.err.Error()
	}
	if e.killed() {
		return s.judgeKilled(e, w)
	}
	if !e.said {
		return fmt.Sprintf("no result, exit %d", e.exit)
	}
	if j.end.cancel() {
		w.exit = map[string]int{"cli": 143, "api": result.ExitCanceled, "session": result.ExitCanceled}[j.via]
	}
	if e.res.Outcome != w.outcome || e.res.ExitCode != w.exit {
		return fmt.Sprintf("%s, exit_code %d, want %s, %d: %s", e.res.Outcome, e.res.ExitCode, w.outcome, w.exit, e.res.Error)
	}
	if j.via == "cli" && e.exit != w.exit {
		return fmt.Sprintf("the command's exit code is %d, want %d", e.exit, w.exit)
	}
	if why := judgeError(e); why != "" {
		return why
	}
	if why := judgeOutput(e, w); why != "" {
		return why
	}
	if lists := strings.Contains(j.flags, "--allow-host"); e.res.Network != nil && !lists {
		return fmt.Sprintf("a network without a list: %+v", e.res.Network)
	}
	if limit := e.res.Limits["timeout"].Value; w.outcome != result.Timeout && limit > 0 && e.res.WallMS >= limit {
		return fmt.Sprintf("%s, but only at the time limit, after %d ms", w.outcome, e.res.WallMS)
	}
	if w.outcome == result.Refused || w.outcome == result.Canceled {
		return ""
	}
	return s.confined(&e.res)
}

// judgeKilled is for a supervisor that could say nothing any more.
func (s *soak) judgeKilled(e *ended, w want) string {
	w.exit = 128 + int(e.job.signalOf())
	if e.job.name == s.o.lie {
		w.exit++
	}
	if e.exit != w.exit || e.said {
		return fmt.Sprintf("exit %d, result %t, want %d and none", e.exit, e.said, w.exit)
	}
	return judgeOutput(e, w)
}

// judgeError wants an error of the API exactly where nothing was run.
func judgeError(e *ended) string {
	var refused *sandbox.Error
	if e.job.via == "api" && errors.As(e.err, &refused) != (e.job.want.outcome == result.Refused) || e.err != nil && refused == nil {
		return fmt.Sprintf("the error is %v", e.err)
	}
	return ""
}

// judgeOutput compares the streams. What sandglass itself says on stderr
// depends on the end; a program that ends by itself gets no word of ours.
func judgeOutput(e *ended, w want) string {
	if e.job.end.soon() && len(e.stdout) == 0 {
		return ""
	}
	if w.check != nil {
		if why := w.check(e); why != "" {
			return why
		}
	} else if why := differs("stdout", string(e.stdout), w.stdout); why != "" {
		return why
	}
	if w.outcome == result.Exited && len(e.stderr) > 0 {
		return fmt.Sprintf("stderr is %.300q", e.stderr)
	}
	return ""
}

// confined reads what the result says of the controls: none may have been
// weaker in a run than the host allows, however busy the host was.
func (s *soak) confined(r *result.Result) string {
	back := map[string]string{}
	for _, l := range r.Layers {
		for k, v := range l.ReadBack {
			back[l.Name+" "+k] = v
		}
	}
	for key, want := range map[string]string{
		"seccomp Seccomp": "2", "capabilities NoNewPrivs": "1", "capabilities CapInh": none,
		"capabilities CapPrm": none, "capabilities CapEff": none, "capabilities CapBnd": none, "capabilities CapAmb": none,
	} {
		got := strings.TrimSpace(back[key])
		if got == "3" && key == "seccomp Seccomp" && r.Signal == int(unix.SIGSYS) {
			continue // killed by the filter before anybody looked
		}
		if got != want {
			return fmt.Sprintf("%s is %q, want %q", key, got, want)
		}
	}
	for _, name := range [...]string{"user", "mnt", "pid", "ipc", "uts", "net"} {
		layer := map[string]string{"user": "user namespace", "mnt": "mount"}[name]
		if layer == "" {
			layer = name
		}
		own, _ := os.Readlink("/proc/self/ns/" + name)
		if got := back[layer+" "+name]; got == "" || strings.Contains(own, got) || strings.Contains(got, own) {
			return fmt.Sprintf("the %s namespace is %q, the caller's is %q", name, got, own)
		}
	}
	for name, want := range s.enforced {
		if got := r.Limits[name].EnforcedBy; got != want {
			return fmt.Sprintf("the limit %s is held by %q, want %q", name, got, want)
		}
	}
	return ""
}

const none = "0000000000000000"

// captured are the bytes of a stream that the API kept.
func captured(s result.Stream) []byte {
	if s.Base64 != "" {
		b, _ := base64.StdEncoding.DecodeString(s.Base64)
		return b
	}
	return []byte(s.Text)
}
