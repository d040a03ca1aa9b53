package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// session is one sandglass session with its two pipes.
type session struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	n   int
}

// openSession starts one and reads its hello.
func openSession(o *options, flags ...string) (*session, error) {
	s := &session{cmd: exec.Command(o.sandglass, append(append([]string{"session"}, degraded()...), flags...)...)}
	var errs bytes.Buffer
	s.cmd.Stderr = &errs
	var err error
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
	if _, err = s.out.ReadSlice('\n'); err != nil {
		s.in.Close()
		s.cmd.Wait()
		return nil, fmt.Errorf("session %s: %s", strings.Join(flags, " "), firstLine(errs.Bytes()))
	}
	return s, nil
}

// filled waits for the reply that all sandboxes which are kept ready are there.
func (s *session) filled() error {
	line, err := s.out.ReadSlice('\n')
	if err == nil && !bytes.HasPrefix(line, []byte(`{"type":"ready"`)) {
		err = fmt.Errorf("want ready, have %.200s", line)
	}
	return err
}

// send is one request, whose id is its number.
func (s *session) send(fields string) error {
	s.n++
	_, err := fmt.Fprintf(s.in, `{"type":"run","id":"%d",%s}`+"\n", s.n, fields)
	return err
}

// reply is the next one; it must be a run's that went well.
func (s *session) reply(warm bool) error {
	line, err := s.out.ReadSlice('\n')
	good := bytes.Contains(line, []byte(`"outcome":"exited","exit_code":0`)) && bytes.Contains(line, fmt.Appendf(nil, `"warm":%v`, warm))
	if err == nil && !good {
		err = fmt.Errorf("not what was asked for: %.300s", line)
	}
	return err
}

// ask is one request from its first byte to its reply's last.
func (s *session) ask(fields string, warm bool) (sample, error) {
	began := time.Now()
	err := s.send(fields)
	if err == nil {
		err = s.reply(warm)
	}
	return sample{wall: time.Since(began)}, err
}

func (s *session) pid() int { return s.cmd.Process.Pid }

// end is the end of its input: it answers what it has, and goes.
func (s *session) end() error {
	s.in.Close()
	io.Copy(io.Discard, s.out)
	return s.cmd.Wait()
}

// full waits until n sandboxes are there, and for what an interpreter is given to
// start in after that: a request that comes sooner waits for what is left of it.
func (s *session) full(n int) error {
	end := time.Now().Add(time.Minute)
	for len(children(s.pid())) != n {
		if time.Now().After(end) {
			return fmt.Errorf("%d sandboxes are there after a minute, want %d", len(children(s.pid())), n)
		}
		time.Sleep(time.Millisecond)
	}
	if n > 0 {
		time.Sleep(settleTime)
	}
	return nil
}

const settleTime = 150 * time.Millisecond

// children are the processes that one has started.
func children(pid int) (list []int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, path := range tasks {
		text, _ := os.ReadFile(path)
		for _, f := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(f); err == nil {
				list = append(list, n)
			}
		}
	}
	return list
}

// cpuTime is the CPU time of a process, and of the children that it has waited for.
func cpuTime(pid int, withChildren bool) time.Duration {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return parseStat(string(text), withChildren)
}

// parseStat reads a line of /proc/PID/stat. Its clock has a hundred ticks a second.
func parseStat(text string, withChildren bool) time.Duration {
	f := strings.Fields(text[strings.LastIndex(text, ")")+1:])
	if len(f) < 15 {
		return 0
	}
	last := 13
	if withChildren {
		last = 15
	}
	var ticks int64
	for _, s := range f[11:last] {
		n, _ := strconv.ParseInt(s, 10, 64)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
