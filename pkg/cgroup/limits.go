package cgroup

import (
	"os"
	"strings"

	"sandglass/internal/refusal"
)

// Limits of one run. 0 means that the limit is not asked for.
type Limits struct {
	// MemoryMax is bytes of memory, page cache and kernel memory together; swap
	// is off. The kernel rounds it down to whole pages.
	MemoryMax int64
	PidsMax   int64 // processes and threads
	// CPUQuotaUS is microseconds of CPU time in each CPUPeriodUS. The kernel
	// takes no quota below 1000 µs and no period outside 1000 µs to 1 s; 0 is
	// its default period, 100000 µs.
	CPUQuotaUS, CPUPeriodUS int64
	// CPUs are those that a v1 cpuset group gets, e.g. "0-1,4"; "" for all of the
	// group above. They are no limit of their own, and on v2 they are not set.
	CPUs string
	IO   []IOLimit
}

// IOLimit bounds one block device. 0 is no limit.
type IOLimit struct {
	Major, Minor        uint32
	ReadBPS, WriteBPS   int64 // bytes a second
	ReadIOPS, WriteIOPS int64 // operations a second
}

const (
	defaultPeriodUS = 100_000
	minQuotaUS      = 1_000         // min_cfs_quota_period in kernel/sched/core.c
	maxPeriodUS     = 1_000_000     // max_cfs_quota_period, same place
	maxQuotaUS      = 1<<44 - 1     // max_cfs_runtime: MAX_BW in kernel/sched/sched.h
	maxPids         = 4 << 20       // PID_MAX_LIMIT on 64 bits; pids.max takes no more
	maxMemory       = 1<<63 - 1<<16 // PAGE_COUNTER_MAX pages, for the largest page
	maxIOPS         = 1<<32 - 1     // io.max and blkio.throttle keep iops in an unsigned int
)

func (l Limits) period() int64 {
	if l.CPUPeriodUS == 0 {
		return defaultPeriodUS
	}
	return l.CPUPeriodUS
}

// asked lists the limits in the order in which they are made and reported.
func (l Limits) asked() []string {
	var a []string
	if l.MemoryMax != 0 {
		a = append(a, Memory)
	}
	if l.PidsMax != 0 {
		a = append(a, Pids)
	}
	if l.CPUQuotaUS != 0 {
		a = append(a, CPU)
	}
	if len(l.IO) != 0 {
		a = append(a, IO)
	}
	return a
}

func (l Limits) validate() error {
	page := int64(os.Getpagesize())
	if m := l.MemoryMax; m != 0 && (m < page || m > maxMemory) {
		return refusal.Newf("memory limit of %d bytes is not between one page (%d) and %d", m, page, int64(maxMemory))
	}
	if p := l.PidsMax; p < 0 || p > maxPids {
		return refusal.Newf("pids limit of %d is not between 1 and %d", p, int64(maxPids))
	}
	if p := l.CPUPeriodUS; p != 0 && (p < minQuotaUS || p > maxPeriodUS) {
		return refusal.Newf("cpu period of %d µs is not between %d and %d", p, minQuotaUS, maxPeriodUS)
	}
	if q := l.CPUQuotaUS; q != 0 && (q < minQuotaUS || q > maxQuotaUS) {
		return refusal.Newf("cpu quota of %d µs in %d µs is not between %d and %d", q, l.period(), minQuotaUS, int64(maxQuotaUS)).
			Hint("--cpus 0.01")
	}
	return validateIO(l.IO)
}

func validateIO(limits []IOLimit) error {
	for i, d := range limits {
		if d.ReadBPS < 0 || d.WriteBPS < 0 || d.ReadIOPS < 0 || d.WriteIOPS < 0 {
			return refusal.Newf("io limit of device %d:%d is negative", d.Major, d.Minor)
		}
		if d.ReadIOPS > maxIOPS || d.WriteIOPS > maxIOPS {
			return refusal.Newf("io limit of device %d:%d is above %d operations a second", d.Major, d.Minor, int64(maxIOPS))
		}
		if d.ReadBPS|d.WriteBPS|d.ReadIOPS|d.WriteIOPS == 0 {
			return refusal.Newf("io limit of device %d:%d limits nothing", d.Major, d.Minor)
		}
		for _, e := range limits[:i] {
			if e.Major == d.Major && e.Minor == d.Minor {
				return refusal.Newf("two io limits for device %d:%d", d.Major, d.Minor)
			}
		}
	}
	return nil
}

func (o Options) validate() error {
	if !validID(o.ID) {
		return refusal.Newf("cgroup id %q is not 1 to 64 letters, digits, '_' or '-'", o.ID)
	}
	if o.HostUID < 0 {
		return refusal.Newf("host uid %d is negative", o.HostUID)
	}
	for limit, ok := range o.Allow {
		if ok && limit != Memory && limit != CPU && limit != Pids && limit != IO {
			return refusal.Newf("--allow-degraded: unknown limit %q", limit).Hint("--allow-degraded memory,cpu,pids,io")
		}
	}
	return validateParent(o.Parent)
}

func validID(id string) bool {
	return refusal.Plain(id, "-_", "", 64) && prefix+id != supervisorLeaf
}

// validateParent keeps a parent below the mount: ".." would climb out of the
// cgroup tree, and the directories are made and removed by path.
func validateParent(p string) error {
	if p == "" || p == "/" {
		return nil
	}
	bad := p[0] != '/' || len(p) > 1024 || strings.ContainsAny(p, "\x00\n")
	if !bad {
		for e := range strings.SplitSeq(p[1:], "/") {
			bad = bad || e == "" || e == "." || e == ".." || len(e) > 255
		}
	}
	if bad {
		return refusal.Newf("--cgroup-parent %q is not a clean absolute path below the cgroup mount", p).
			Hint("--cgroup-parent /sandglass")
	}
	return nil
}
