package cgroup

import (
	"errors"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ErrClosed is the error of a Group's methods after Close.
var ErrClosed = errors.New("cgroup: group is closed")

// ErrNoUsage is the error of CPUUsage where nothing counts the CPU time.
var ErrNoUsage = errors.New("cgroup: nothing counts cpu time on this host")

// Stats is what the box has used. -1 is unknown: the kernel has no such count
// or the limit's controller was not asked for.
type Stats struct {
	CPUUsec       int64 // user and system time of all processes, living and dead
	MemoryCurrent int64 // bytes
	MemoryPeak    int64 // bytes; with swap on v1 where the kernel counts it
	// MemoryPeakSampled: the kernel keeps no peak (v2 before 5.19). MemoryPeak
	// is the highest MemoryCurrent that a call of Stats has seen.
	MemoryPeakSampled bool
	PidsCurrent       int64
	PidsPeak          int64 // -1 before 6.1
	PidsMaxHits       int64 // forks that the limit refused
	OOMEvents         int64 // times the limit was hit and could not be met; v2 only
	OOMKills          int64 // processes killed for memory; v2 counts the first victim twice
	OOMGroupKills     int64 // times it killed the whole box; v2, since 5.17
	ThrottledPeriods  int64
	ThrottledUsec     int64
}

// Stats reads all counts. It fails only after Close.
func (g *Group) Stats() (Stats, error) {
	s, err := g.Used()
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil || g.closed {
		return Stats{}, ErrClosed
	}
	memory, pids, cpu := g.at("memory"), g.at("pids"), g.at("cpu")
	s.PidsCurrent = numberAt(pids, "pids.current")
	s.PidsMaxHits = field(textAt(pids, "pids.events"), "max")
	text := textAt(cpu, "cpu.stat")
	if g.v2 {
		s.MemoryCurrent = numberAt(memory, "memory.current")
		s.ThrottledPeriods, s.ThrottledUsec = field(text, "nr_throttled"), field(text, "throttled_usec")
		return s, nil
	}
	s.MemoryCurrent = numberAt(memory, "memory.usage_in_bytes")
	s.ThrottledPeriods, s.ThrottledUsec = field(text, "nr_throttled"), field(text, "throttled_time")
	if s.ThrottledUsec > 0 {
		s.ThrottledUsec /= 1000 // nanoseconds on v1
	}
	return s, nil
}

// Used reads what is left of a run at its end: its CPU time, the peaks and what was
// killed for memory. The rest of Stats is not read: every file delays the result.
func (g *Group) Used() (Stats, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return Stats{}, ErrClosed
	}
	memory := g.at("memory")
	s := Stats{CPUUsec: g.cpuUsec(), PidsPeak: numberAt(g.at("pids"), "pids.peak")}
	if g.v2 {
		g.memoryStatsV2(&s, memory)
		return s, nil
	}
	s.MemoryPeak = numberAt(memory, "memory.memsw.max_usage_in_bytes")
	if s.MemoryPeak < 0 {
		s.MemoryPeak = numberAt(memory, "memory.max_usage_in_bytes")
	}
	s.OOMKills = field(textAt(memory, "memory.oom_control"), "oom_kill")
	s.OOMEvents, s.OOMGroupKills = -1, -1
	return s, nil
}

func (g *Group) memoryStatsV2(s *Stats, memory int) {
	s.MemoryPeak = numberAt(memory, "memory.peak")
	if s.MemoryPeak < 0 {
		if now := numberAt(memory, "memory.current"); now >= 0 {
			g.peak = max(g.peak, now)
			s.MemoryPeak, s.MemoryPeakSampled = g.peak, true
		}
	}
	text := textAt(memory, "memory.events")
	s.OOMEvents = field(text, "oom")
	s.OOMKills = field(text, "oom_kill")
	s.OOMGroupKills = field(text, "oom_group_kill")
}

// at is the directory descriptor where a controller's files are, -1 for none.
func (g *Group) at(ctrl string) int {
	if g.v2 {
		return g.box.fd
	}
	for i := range g.v1 {
		if slices.Contains(g.v1[i].names, ctrl) {
			return g.v1[i].fd
		}
	}
	return -1
}

// textAt and numberAt take a missing file for an unknown value. Without the
// check openat would take -1 for an error and a relative name for the working
// directory's on AT_FDCWD.
func textAt(dir int, name string) string {
	if dir < 0 {
		return ""
	}
	s, _ := readAt(dir, name)
	return s
}

func numberAt(dir int, name string) int64 { return number(textAt(dir, name)) }

// CPUUsage is the CPU time of the whole box so far: one pread of a descriptor
// that stays open.
func (g *Group) CPUUsage() (time.Duration, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return 0, ErrClosed
	}
	n := g.cpuUsec()
	if n < 0 {
		return 0, ErrNoUsage
	}
	return time.Duration(n) * time.Microsecond, nil
}

func (g *Group) cpuUsec() int64 {
	name, dir := "cpuacct.usage", g.at("cpuacct")
	if g.v2 {
		name = "cpu.stat" // its first line, usage_usec, needs no controller
	}
	if g.usage < 0 {
		if dir < 0 {
			return -1
		}
		fd, err := openAt(dir, name, unix.O_RDONLY)
		if err != nil {
			return -1
		}
		g.usage = fd
	}
	var buf [1024]byte
	s, err := readFD(g.usage, buf[:], len(buf))
	if err != nil {
		return -1
	}
	if g.v2 {
		return field(s, "usage_usec")
	}
	if n := number(s); n >= 0 {
		return n / 1000 // nanoseconds
	}
	return -1
}

// ReadBack is what the kernel holds now in the files of the limits that were
// asked for, by file name. Files that do not exist are absent. Memory values
// are rounded down to pages by the kernel. Call it before Kill, which may set
// pids.max to 0.
func (g *Group) ReadBack() map[string]string {
	g.mu.Lock()
	defer g.mu.Unlock()
	back := map[string]string{}
	if g.closed {
		return back
	}
	for limit := range g.by {
		ctrl, files := limit, filesV2(limit)
		if !g.v2 {
			files = filesV1(limit)
			if limit == IO {
				ctrl = "blkio"
			}
		}
		dir := g.at(ctrl)
		for _, f := range files {
			if s := strings.TrimSpace(textAt(dir, f)); s != "" {
				back[f] = s
			}
		}
	}
	return back
}

// A switch and not a map: a map is built at every start of the binary.
func filesV2(limit string) []string {
	switch limit {
	case Memory:
		return []string{"memory.max", "memory.swap.max", "memory.oom.group"}
	case Pids:
		return []string{"pids.max"}
	case CPU:
		return []string{"cpu.max"}
	}
	return []string{"io.max"}
}

func filesV1(limit string) []string {
	switch limit {
	case Memory:
		return []string{"memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.swappiness", socketsFile}
	case Pids:
		return []string{"pids.max"}
	case CPU:
		return []string{"cpu.cfs_quota_us", "cpu.cfs_period_us"}
	}
	return []string{"blkio.throttle.read_bps_device", "blkio.throttle.write_bps_device",
		"blkio.throttle.read_iops_device", "blkio.throttle.write_iops_device"}
}
