package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sandglass/internal/testkit"
	"sandglass/pkg/sessionclient"
)

// clients are the callers of sessions at the same time: eight sessions have eight of
// them each, and then one has all. In every third leg each session has one, and the
// time to make sandboxes ahead.
const (
	clients = 64
	small   = 8
)

// fleet is the sessions that the whole load goes to.
type fleet struct {
	list []*member
	over bool // they have ended
}

// member is one session.
type member struct {
	*sessionclient.Client
	pid     int
	waits   int // sandboxes that it keeps ready
	began   figures
	samples []figures
}

// launch starts the sessions. Half of them keep sandboxes ready.
func (s *soak) launch() (*fleet, error) {
	f := &fleet{}
	for i := range small + 1 {
		running, warm, waits := clients/small, "", 0
		switch {
		case i == small:
			running, warm, waits = clients, "command=4,python=2", 6
		case i%2 == 0:
			warm, waits = "command=2,python=1", 3
		}
		args := append(s.sessionFlags(), "--max-running", strconv.Itoa(running))
		if warm != "" {
			args = append(args, "--warm", warm)
		}
		before := childrenOf(os.Getpid())
		c, err := sessionclient.Start(context.Background(), sessionclient.Options{Path: s.o.sandglass, Args: args})
		if err != nil {
			return nil, err
		}
		m := &member{Client: c, waits: waits}
		for _, pid := range childrenOf(os.Getpid()) {
			if !slices.Contains(before, pid) {
				m.pid = pid
			}
		}
		f.list = append(f.list, m)
	}
	return f, nil
}

// sessionFlags are what every session starts with: what the programs without flags
// of their own want, so that a sandbox that waits can serve them.
func (s *soak) sessionFlags() []string {
	list := []string{"-m", "64m", "--timeout", "2m", "-v", s.o.prog + ":" + inside}
	if len(s.degraded) > 0 {
		list = append(list, "--allow-degraded", strings.Join(s.degraded, ","))
	}
	return list
}

// member is the session of a client in a leg.
func (f *fleet) member(leg, client int) *member {
	switch {
	case f == nil:
		return nil
	case leg%3 == 0:
		return f.list[client%small]
	case leg%3 == 1:
		return f.list[small]
	}
	return f.list[client%len(f.list)]
}

// width is how many clients a leg has of those that are asked for, and how many runs.
func (f *fleet) width(leg, at, runs int) (int, int) {
	if f == nil || leg%3 != 2 {
		return at, runs
	}
	return min(at, len(f.list)), max(1, runs/4)
}

// unready lists what is not as it should be when no client has a request: each
// session has the sandboxes that it keeps, of one process or two, and nothing else.
func (f *fleet) unready() (wrong []string) {
	for i, m := range f.list {
		kids := childrenOf(m.pid)
		if len(kids) != m.waits {
			wrong = append(wrong, fmt.Sprintf("session: %d has %d sandboxes, and should keep %d", i, len(kids), m.waits))
		}
		for _, k := range kids {
			if n := len(childrenOf(k)); n > 1 {
				wrong = append(wrong, fmt.Sprintf("session: %d keeps a sandbox with %d processes", i, n))
			}
		}
		if groups := len(cgroupsOf(m.pid)); groups != m.began.groups {
			wrong = append(wrong, fmt.Sprintf("session: %d has %d control groups, and had %d", i, groups, m.began.groups))
		}
	}
	return wrong
}

// begin waits for all that is to be kept ready, and notes how each session begins.
func (f *fleet) begin() {
	for _, m := range f.list {
		if m.waits > 0 {
			select {
			case <-m.Ready():
			case <-m.Done():
			}
		}
		m.began = m.figures()
	}
}

// measure notes what each session takes of the host while it waits.
func (f *fleet) measure() {
	for _, m := range f.list {
		m.samples = append(m.samples, m.figures())
	}
}

func (m *member) figures() figures {
	dir := "/proc/" + strconv.Itoa(m.pid)
	text, _ := os.ReadFile(dir + "/status")
	entries, _ := os.ReadDir(dir + "/fd")
	return figures{
		rss: number(string(text), "VmRSS:") << 10, threads: int(number(string(text), "Threads:")),
		descriptors: len(entries), groups: len(cgroupsOf(m.pid)), peak: number(string(text), "VmHWM:") << 10,
	}
}

// pids are those of the sessions.
func (f *fleet) pids() (list []int) {
	for _, m := range f.list {
		list = append(list, m.pid)
	}
	return list
}

// without leaves out the sessions and what waits in them, of lines that begin with
// a PID or a path with one.
func (f *fleet) without(list []string) (rest []string) {
	known := map[int]bool{}
	for _, pid := range f.pids() {
		known[pid] = true
		for _, k := range childrenOf(pid) {
			known[k] = true
			for _, p := range childrenOf(k) {
				known[p] = true
			}
		}
	}
	for _, x := range list {
		word, _, _ := strings.Cut(strings.TrimPrefix(x, "/proc/"), "/")
		word, _, _ = strings.Cut(word, " ")
		if pid, err := strconv.Atoi(word); err != nil || !known[pid] {
			rest = append(rest, x)
		}
	}
	return rest
}

// close ends the sessions by the end of their requests, and looks at the host as it
// was before them.
func (f *fleet) close(w *witness) {
	for i, m := range f.list {
		if err := m.Close(); err != nil {
			w.s.left = append(w.s.left, fmt.Sprintf("session: %d: %v", i, err))
		}
	}
	f.over = true
	w.own = nil // the sessions' pipes are gone
	w.settle()
	w.look()
}

// sessionGrowth is what a session's memory may grow by from the first third of the
// looks to the last: a leak of a kilobyte for each run is more than that.
const sessionGrowth = 8 << 20

// pollers are the descriptors that the Go runtime opens once, for its network poller.
const pollers = 2

// warmUp are the looks until each session has had its full width once.
const warmUp = 3

// grown prints what the sessions took, and whether one has grown.
func (f *fleet) grown() (bad bool) {
	const mb = 1 << 20
	fmt.Printf("\n| session, clients | keeps | RSS MB at looks: first third, last third, peak | descriptors | threads |\n|---|---:|---:|---:|---:|\n")
	for i, m := range f.list {
		if len(m.samples) == 0 {
			continue
		}
		list := m.samples[min(warmUp, len(m.samples)-1):]
		n := max(1, len(list)/3)
		early, late := lowest(list[:n]), lowest(list[len(list)-n:])
		a, b := m.began, list[len(list)-1]
		fmt.Printf("| %d, %d | %d | %.1f, %.1f, %.1f | %d, %d | %d, %d |\n", i, clients/small*map[bool]int{false: 1, true: small}[i == small], m.waits,
			float64(early)/mb, float64(late)/mb, float64(b.peak)/mb, a.descriptors, b.descriptors, a.threads, b.threads)
		if b.descriptors > a.descriptors+pollers || late > early+sessionGrowth {
			fmt.Printf("FAIL: session %d has grown\n", i)
			bad = true
		}
	}
	return bad
}

// lowest is the least memory: what is above it at one look is garbage that is not
// collected yet.
func lowest(list []figures) int64 {
	least := list[0].rss
	for _, f := range list {
		least = min(least, f.rss)
	}
	return least
}

// childrenOf are the processes that a process has, the dead left out.
func childrenOf(pid int) (list []int) {
	files, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	for _, f := range files {
		text, _ := os.ReadFile(f)
		for word := range strings.FieldsSeq(string(text)) {
			if n, err := strconv.Atoi(word); err == nil && !testkit.Dead(n) {
				list = append(list, n)
			}
		}
	}
	return list
}
