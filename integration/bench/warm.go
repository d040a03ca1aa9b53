package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// ready is how many sandboxes a measured session keeps ready, and settle what an
// interpreter is given to start in after that many are there again. A request
// that comes sooner waits for what is left of that: see the pauses of a caller.
const (
	ready  = 2
	settle = 150 * time.Millisecond
)

// session is one sandglass session with its two pipes.
type session struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	n   int
}

func openSession(o *options, warm string) (*session, error) {
	args := []string{"session", "--max-running", "1"}
	if os.Geteuid() != 0 {
		args = append(args, "--allow-degraded", "memory,cpu,pids")
	}
	if warm != "" {
		args = append(args, "--warm", fmt.Sprintf("%s=%d", warm, ready))
	}
	self, err := filepath.Abs(o.sandglass)
	if err != nil {
		return nil, err
	}
	s := &session{cmd: exec.Command(self, args...)}
	s.cmd.Stderr = os.Stderr
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.out = bufio.NewReaderSize(out, 1<<20)
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	_, err = s.out.ReadSlice('\n')
	if err == nil && warm != "" {
		_, err = s.out.ReadSlice('\n') // ready
	}
	return s, err
}

// ask is one request from its first byte to its reply's last.
func (s *session) ask(fields string, warm bool) (sample, error) {
	s.n++
	if warm {
		s.full()
	}
	began := time.Now()
	if _, err := fmt.Fprintf(s.in, `{"type":"run","id":"%d",%s}`+"\n", s.n, fields); err != nil {
		return sample{}, err
	}
	line, err := s.out.ReadSlice('\n')
	took := time.Since(began)
	good := bytes.Contains(line, []byte(`"outcome":"exited","exit_code":0`)) && bytes.Contains(line, fmt.Appendf(nil, `"warm":%v`, warm))
	if err == nil && !good {
		err = fmt.Errorf("not what was asked for: %.300s", line)
	}
	return sample{wall: took}, err
}

// full waits until all are there again.
func (s *session) full() {
	for {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", s.cmd.Process.Pid))
		n := 0
		for _, path := range tasks {
			text, _ := os.ReadFile(path)
			n += len(strings.Fields(string(text)))
		}
		if n == ready {
			break
		}
		time.Sleep(time.Millisecond)
	}
	time.Sleep(settle)
}

// warmContenders are each program bare, and in a session cold and warm.
func warmContenders(o *options) (list []*contender, stop func(), err error) {
	var open []*session
	stop = func() {
		for _, s := range open {
			s.in.Close()
			s.cmd.Wait()
		}
	}
	for _, p := range []struct {
		name, kind, fields string
		bare               []string
	}{
		{"true", "command", `"command":["/bin/true"]`, []string{program}},
		{"python", "python", `"code":"print(1)","lang":"python"`, []string{"python3", "-c", "print(1)"}},
		{"node", "node", `"code":"console.log(1)","lang":"node"`, []string{"node", "-e", "console.log(1)"}},
	} {
		bare := command("bare "+p.name, p.bare[0], p.bare[1:]...)
		if list = append(list, bare); bare.missing != "" {
			continue
		}
		for _, kind := range []string{"", p.kind} {
			s, err := openSession(o, kind)
			if err != nil {
				stop()
				return nil, nil, err
			}
			open = append(open, s)
			name := map[bool]string{true: "session, cold ", false: "session, warm "}[kind == ""]
			list = append(list, &contender{name: name + p.name, run: func() (sample, error) { return s.ask(p.fields, kind != "") }})
		}
	}
	return list, stop, nil
}

// measureWarm compares them, in turn.
func measureWarm(o *options) error {
	// The same interpreters for all: the first ones on a developer's PATH may be
	// scripts that look for others.
	os.Setenv("PATH", "/usr/bin:/bin")
	list, stop, err := warmContenders(o)
	if err != nil {
		return err
	}
	defer stop()
	runners := starting(list)
	if err := measure(runners, o); err != nil {
		return err
	}
	report(runners)
	return nil
}
