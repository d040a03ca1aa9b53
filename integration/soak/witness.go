package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"sandglass/internal/testkit"
	"sandglass/pkg/hostid"
)

// witness looks from outside for what runs have left. It believes nothing that
// sandglass says.
type witness struct {
	s       *soak
	before  view
	own     view // descriptors and goroutines of this process, by itself
	mu      sync.Mutex
	pending []int // supervisors since the last look
	among   bool  // the look is while sessions wait for the next leg
}

// view is what there is at one time, by kind.
type view map[string][]string

// newWitness looks before the first run.
func newWitness(s *soak) (*witness, error) {
	w := &witness{s: s}
	var err error
	w.before, err = w.host()
	return w, err
}

// settle takes this process as it is now for one that has run sandboxes: what
// the Go runtime keeps from the first of them is no leak.
func (w *witness) settle() {
	w.own = view{}
	w.eventually(func() []string {
		now := ownView()
		same := slices.Equal(now["descriptor"], w.own["descriptor"]) && slices.Equal(now["goroutine"], w.own["goroutine"])
		w.own = now
		if same {
			return nil
		}
		return []string{"unsettled"}
	})
}

// after looks for processes and cgroups of one run that has ended. Run and the
// command have promised that nothing of it lives any more; only the kernel
// can have been late where their process was killed.
func (w *witness) after(e *ended) []string {
	if e.job.via != "session" { // fleet knows its sessions
		w.mu.Lock()
		w.pending = append(w.pending, e.pid)
		w.mu.Unlock()
	}
	processes := func() []string { return marked(mark(e.job.n)) }
	if e.killed() {
		return w.eventually(processes)
	}
	left := processes()
	if e.job.via == "cli" && e.pid != 0 {
		left = append(left, w.eventually(func() []string { return beyond(nil, view{"cgroup": cgroupsOf(e.pid)}) })...)
	}
	return left
}

// look compares the host and this process with how they were, when nothing
// runs. First a run that sweeps: what a killed supervisor left is its work.
func (w *witness) look() {
	left := w.sweep()
	if w.among = w.s.fleet != nil && !w.s.fleet.over; w.among {
		left = append(left, w.eventually(w.s.fleet.unready)...)
		w.s.fleet.measure()
	}
	left = append(left, w.eventually(func() []string {
		now, err := w.host()
		if err != nil {
			return []string{"look: " + err.Error()}
		}
		return append(beyond(w.before, now), beyond(w.own, ownView())...)
	})...)
	if n := w.s.arrived.Swap(0); n > 0 {
		left = append(left, fmt.Sprintf("connection: %d arrived", n))
	}
	w.pending = nil
	w.s.looks++
	for _, x := range left {
		fmt.Fprintln(os.Stderr, "soak: left behind:", x)
		if strings.HasPrefix(x, "goroutine") {
			pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
		}
	}
	w.s.left = append(w.s.left, left...)
	w.forget(left)
	w.s.progress()
}

// forget takes what was told for known, so that it counts once.
func (w *witness) forget(left []string) {
	if len(left) == 0 {
		return
	}
	if now, err := w.host(); err == nil {
		w.before = now
	}
	w.own = ownView()
}

// sweep is a run of the command, the next after whatever was killed.
func (w *witness) sweep() []string {
	args := []string{"run", "-m", "64m"}
	if len(w.s.degraded) > 0 {
		args = append(args, "--allow-degraded", strings.Join(w.s.degraded, ","))
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	text, err := exec.CommandContext(ctx, w.s.o.sandglass, append(args, "--", "true")...).CombinedOutput()
	if err != nil {
		return []string{fmt.Sprintf("sweep: %v: %s", err, text)}
	}
	return nil
}

// host is what there is on the host.
func (w *witness) host() (view, error) {
	t, err := testkit.Look(w.s.dir)
	if w.among {
		t.Processes = w.s.fleet.without(t.Processes)
	}
	v := view{"process": t.Processes, "mount": t.Mounts, "file": t.Files, "ipc": t.IPC, "net": t.Net, "namespace": w.namespaces(), "key": keys(), "socket": sockets()}
	slices.Sort(w.pending)
	w.pending = slices.Compact(w.pending)
	v["cgroup"] = cgroupsOf(w.pending...)
	if w.s.fleet != nil && w.s.fleet.over {
		v["cgroup"] = cgroupsOf(append(w.s.fleet.pids(), w.pending...)...)
	}
	return v, err
}

// ownView is what this process holds. A descriptor is told by what it is open
// on, without the number that the kernel gives to each pipe and socket anew.
func ownView() view {
	v := view{}
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err != nil {
			continue // the one of ReadDir itself
		}
		v["descriptor"] = append(v["descriptor"], e.Name()+" "+target)
	}
	v["goroutine"] = make([]string, runtime.NumGoroutine())
	for i := range v["goroutine"] {
		v["goroutine"][i] = strconv.Itoa(i + 1)
	}
	return v
}

// beyond lists what is in now and was not before.
func beyond(before, now view) []string {
	var left []string
	for kind, list := range now {
		for _, x := range list {
			if !slices.Contains(before[kind], x) {
				left = append(left, kind+": "+x)
			}
		}
	}
	slices.Sort(left)
	return left
}

// eventually looks again until nothing is left. What goes away without an event
// may take a while: processes that the kernel kills, keys that it collects,
// another's cgroup of the same name.
func (w *witness) eventually(look func() []string) []string {
	for deadline := time.Now().Add(w.s.o.grace); ; time.Sleep(5 * time.Millisecond) {
		if left := look(); len(left) == 0 || time.Now().After(deadline) {
			return left
		}
	}
}

// marked are the processes with a word in their environment.
func marked(word string) []string {
	var list []string
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		env, err := os.ReadFile("/proc/" + e.Name() + "/environ")
		if err == nil && bytes.Contains(env, []byte(word)) {
			cmdline, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
			list = append(list, fmt.Sprintf("process: %s %q", e.Name(), cmdline))
		}
	}
	return list
}

// cgroupsOf are the cgroups that supervisors with these PIDs have made.
func cgroupsOf(pids ...int) []string {
	var list []string
	for _, path := range testkit.Cgroups() {
		for _, pid := range pids {
			if strings.HasPrefix(filepath.Base(path), "sandglass-"+strconv.Itoa(pid)+"-") {
				list = append(list, path)
			}
		}
	}
	return list
}

// namespaces are the namespaces of all processes but those that wait in a session.
// One without a process is held by a mount or a descriptor, and those are looked at
// as well.
func (w *witness) namespaces() []string {
	var list []string
	links, _ := filepath.Glob("/proc/[0-9]*/ns/*")
	if w.among {
		links = w.s.fleet.without(links)
	}
	for _, l := range links {
		if target, err := os.Readlink(l); err == nil && !slices.Contains(list, target) {
			list = append(list, target)
		}
	}
	return list
}

// keys counts the keys and keyrings that are charged to the ids of sandboxes.
func keys() []string {
	text, _ := os.ReadFile("/proc/key-users")
	var list []string
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		uid, err := strconv.Atoi(strings.TrimSuffix(f[0], ":"))
		if err != nil || uid < hostid.First && (os.Getuid() == 0 || uid != os.Getuid()) {
			continue
		}
		n, _ := strconv.Atoi(f[1])
		for i := range n {
			list = append(list, fmt.Sprintf("%d of uid %d", i+1, uid))
		}
	}
	return list
}
