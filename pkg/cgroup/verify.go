package cgroup

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"sandglass/pkg/result"
)

// Verify reads every limit that a group is said to hold back from the kernel,
// and compares it with what was asked for. After Kill, which changes some of
// them, there is nothing to compare: what is in the group is dying.
func (g *Group) Verify() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return ErrClosed
	}
	if g.killed {
		return nil
	}
	for _, limit := range g.limits.asked() {
		if by, ok := g.by[limit]; !ok || by == result.ByNone {
			continue
		}
		for _, w := range g.promised(limit) {
			got, err := readAt(w.dir, w.file)
			if err != nil && w.optional {
				continue
			}
			if err != nil {
				return fmt.Errorf("%s limit: %s: %w", limit, w.file, err)
			}
			if got = strings.TrimSpace(got); !w.holds(got) {
				return fmt.Errorf("%s limit: %s is %q, not %q", limit, w.file, got, w.value)
			}
		}
	}
	return nil
}

// promise is what a file must say.
type promise struct {
	dir      int
	file     string
	value    string
	line     bool // one of its lines
	optional bool // not every kernel has the file
}

func (p *promise) holds(got string) bool {
	if !p.line {
		return got == p.value
	}
	for line := range strings.Lines(got) {
		if strings.TrimSpace(line) == p.value {
			return true
		}
	}
	return false
}

func (g *Group) promised(limit string) []promise {
	dec := func(n int64) string { return strconv.FormatInt(n, 10) }
	page := int64(os.Getpagesize())
	memory := dec(g.limits.MemoryMax / page * page) // as the kernel rounds
	switch {
	case limit == IO:
		return g.promisedIO()
	case g.v2 && limit == Memory:
		fd := g.box.fd
		return []promise{{dir: fd, file: "memory.max", value: memory}, {dir: fd, file: "memory.oom.group", value: "1"},
			{dir: fd, file: "memory.swap.max", value: "0", optional: true}}
	case g.v2 && limit == CPU:
		return []promise{{dir: g.box.fd, file: "cpu.max", value: dec(g.limits.CPUQuotaUS) + " " + dec(g.limits.period())}}
	case limit == Memory:
		fd := g.at("memory")
		return []promise{{dir: fd, file: "memory.limit_in_bytes", value: memory}, {dir: fd, file: "memory.memsw.limit_in_bytes", value: memory, optional: true}}
	case limit == CPU:
		quota := dec(g.limits.CPUQuotaUS)
		if g.cpuAbove {
			quota = "-1"
		}
		fd := g.at("cpu")
		return []promise{{dir: fd, file: "cpu.cfs_quota_us", value: quota}, {dir: fd, file: "cpu.cfs_period_us", value: dec(g.limits.period())}}
	}
	return []promise{{dir: g.at(Pids), file: "pids.max", value: dec(g.limits.PidsMax)}}
}

func (g *Group) promisedIO() []promise {
	var list []promise
	for _, l := range g.limits.IO {
		if g.v2 {
			list = append(list, promise{dir: g.box.fd, file: "io.max", line: true, value: device(l) + " rbps=" + orMax(l.ReadBPS) +
				" wbps=" + orMax(l.WriteBPS) + " riops=" + orMax(l.ReadIOPS) + " wiops=" + orMax(l.WriteIOPS)})
			continue
		}
		for _, w := range [...]struct {
			file string
			n    int64
		}{{"read_bps", l.ReadBPS}, {"write_bps", l.WriteBPS}, {"read_iops", l.ReadIOPS}, {"write_iops", l.WriteIOPS}} {
			if w.n != 0 {
				list = append(list, promise{dir: g.at("blkio"), file: "blkio.throttle." + w.file + "_device", line: true,
					value: device(l) + " " + strconv.FormatInt(w.n, 10)})
			}
		}
	}
	return list
}

// errElsewhere is a program that is in another group than its limits.
var errElsewhere = errors.New("the program is not in its cgroup")

// Holds says whether a process is in the groups, by its /proc/PID/cgroup. The
// kernel shows paths from the reader's own namespace on, so the group's own
// name counts, which no other run has.
func (g *Group) Holds(text string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	in := parseSelf(text)
	suffix := "/" + prefix + g.opt.ID
	if g.v2 {
		if g.box.fd >= 0 && !strings.HasSuffix(in.v2, suffix+"/box") {
			return fmt.Errorf("%w but in %q", errElsewhere, in.v2)
		}
		return nil
	}
	for i := range g.v1 {
		for _, name := range g.v1[i].names {
			if got := in.v1(name); !strings.HasSuffix(got, suffix) {
				return fmt.Errorf("%w of %s but in %q", errElsewhere, name, got)
			}
		}
	}
	return nil
}
