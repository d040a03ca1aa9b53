package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// kind is what a measured sandbox waits as, or runs.
type kind struct {
	name   string
	memory string // each one's limit: a session refuses more than the host has for all
	fields string // a request that says a line and then sleeps
}

var kinds = []kind{
	{"command", "32m", `"command":["/bin/sh","-c","echo 1; exec sleep 1000"]`},
	{"python", "32m", `"lang":"python","code":"import time\nprint(1, flush=True)\ntime.sleep(1000)"`},
	{"node", "48m", `"lang":"node","code":"console.log(1); setTimeout(() => {}, 1e6)"`},
}

// sizes are how many sandboxes wait at a time.
var sizes = []int{1, 10, 50, 100, 250, 500}

// running is how many run when their memory is read.
const running = 10

// footprint is what a session with n sandboxes takes, in KiB. A page that several
// share counts for each with its part.
type footprint struct {
	n                     int
	session, init, others int
	host                  int // by how much less the host has, with what the kernel holds
	files, threads        int // of the session
	fill                  time.Duration
}

// measureMemory reads the memory of sandboxes that wait, as they get more, and of
// ones that run.
func measureMemory(o *options, _ string) error {
	var rows [][]string
	for _, k := range kinds {
		var last footprint
		for _, n := range sizes {
			why := tooMany(last, n, o.fill)
			if why == "" {
				f, err := idle(o, k, n)
				if err == nil {
					last, rows = f, append(rows, f.row(k.name))
					continue
				}
				why = err.Error()
			}
			fmt.Printf("left out: %d %s: %s\n", n, k.name, why)
			break
		}
	}
	heads := []string{"that many", "session MB", "init KB each", "program MB each", "all PSS MB each", "host MB each", "session's files", "threads"}
	table(append([]string{"waiting", "ready after s"}, heads...), rows)
	rows = nil
	for _, k := range kinds {
		f, err := busy(o, k)
		if err != nil {
			return fmt.Errorf("%s, running: %w", k.name, err)
		}
		row := f.row(k.name)
		rows = append(rows, append(row[:1:1], row[2:]...))
	}
	table(append([]string{"running"}, heads...), rows)
	return nil
}

// row is a row of the tables.
func (f footprint) row(name string) []string {
	mb := func(kib int) string { return fmt.Sprintf("%.1f", float64(kib)/1024) }
	host := "–" // of few it is lost in what else the host does
	if f.n >= 50 {
		host = mb(f.host / f.n)
	}
	return []string{name, fmt.Sprintf("%.2f", f.fill.Seconds()), strconv.Itoa(f.n), mb(f.session), strconv.Itoa(f.init / f.n), mb(f.others / f.n),
		mb((f.session + f.init + f.others) / f.n), host, strconv.Itoa(f.files), strconv.Itoa(f.threads)}
}

// tooMany says why n are not tried: from what the last ones took.
func tooMany(last footprint, n int, longest time.Duration) string {
	if last.n == 0 {
		return ""
	}
	if want, have := max(last.host, last.session+last.init+last.others)/last.n*n, available(); want > have/4*3 {
		return fmt.Sprintf("they would take %d MB of the %d MB that are free here", want>>10, have>>10)
	}
	if want := last.fill / time.Duration(last.n) * time.Duration(n); want > longest {
		return fmt.Sprintf("to fill it would take %.0f s, more than -fill %v", want.Seconds(), longest)
	}
	return ""
}

// idle fills a session with n that wait.
func idle(o *options, k kind, n int) (footprint, error) {
	before, began := available(), time.Now()
	s, err := openSession(o, "--memory", k.memory, "--warm", fmt.Sprintf("%s=%d", k.name, n))
	if err != nil {
		return footprint{}, err
	}
	defer s.end()
	if err := s.filled(); err != nil {
		return footprint{}, err
	}
	fill := time.Since(began)
	f, err := s.footprint(n, before)
	f.fill = fill
	return f, err
}

// busy has some run, until each has said a line.
func busy(o *options, k kind) (footprint, error) {
	before := available()
	s, err := openSession(o, "--max-running", strconv.Itoa(running), "--timeout", "5m")
	if err != nil {
		return footprint{}, err
	}
	defer s.end()
	defer func() { // what still runs is cancelled
		for id := 1; id <= s.n; id++ {
			fmt.Fprintf(s.in, `{"type":"cancel","id":"%d"}`+"\n", id)
		}
	}()
	for range running {
		if err := s.send(k.fields + `,"output":"stream"`); err != nil {
			return footprint{}, err
		}
	}
	for said := 0; said < running; {
		line, err := s.out.ReadSlice('\n')
		if err != nil {
			return footprint{}, err
		}
		if bytes.HasPrefix(line, []byte(`{"type":"output"`)) {
			said++
		} else if !bytes.HasPrefix(line, []byte(`{"type":"started"`)) {
			return footprint{}, fmt.Errorf("%.300s", line)
		}
	}
	return s.footprint(running, before)
}

// footprint reads what a session and its n sandboxes have, once that does not
// change any more: interpreters still start when they are there.
func (s *session) footprint(n, before int) (footprint, error) {
	last, same := -1, 0
	for end := time.Now().Add(time.Minute); ; time.Sleep(settleTime) {
		f, err := s.look(n)
		if err != nil {
			return f, err
		}
		sum := f.session + f.init + f.others
		if same++; max(sum-last, last-sum) > last/200 {
			same = 0
		}
		if same == 3 {
			f.host = before - available()
			return f, nil
		}
		if last = sum; time.Now().After(end) {
			return f, fmt.Errorf("the memory of %d sandboxes still changes after a minute", n)
		}
	}
}

func (s *session) look(n int) (f footprint, err error) {
	f.n = n
	if f.session, err = pss(s.pid()); err != nil {
		return f, err
	}
	for file, count := range map[string]*int{"fd": &f.files, "task": &f.threads} {
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/%s", s.pid(), file))
		if err != nil {
			return f, err
		}
		*count = len(entries)
	}
	inits := children(s.pid())
	if len(inits) != n {
		return f, fmt.Errorf("the session has %d sandboxes, want %d", len(inits), n)
	}
	for _, init := range inits {
		size, err := pss(init)
		if err != nil {
			return f, err
		}
		f.init += size
		for _, pid := range children(init) {
			if size, err = pss(pid); err != nil {
				return f, err
			}
			f.others += size
		}
	}
	return f, nil
}

// pss is a process's memory in KiB, with its part of what it shares.
func pss(pid int) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	return field(string(text), "Pss")
}

// available is what the host has left, in KiB.
func available() int {
	text, _ := os.ReadFile("/proc/meminfo")
	n, _ := field(string(text), "MemAvailable")
	return n
}

// field is a number of a file of lines like "Pss:   12 kB".
func field(text, name string) (int, error) {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == name+":" {
			return strconv.Atoi(f[1])
		}
	}
	return 0, fmt.Errorf("no line %s", name)
}
