package cgroup

import (
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sandglass/pkg/doctor/causes"
	"sandglass/pkg/result"
)

// limitOf is the limit that a v1 controller holds.
func limitOf(ctrl string) string {
	switch ctrl {
	case "blkio":
		return IO
	case "cpuacct", cpuset:
		return ""
	}
	return ctrl
}

// createV1 makes one group in each hierarchy that a limit needs, and in
// cpuacct for the usage. Errors about one limit are recorded as lacks.
func (g *Group) createV1(t *tree) error {
	asked := g.limits.asked()
	for _, ctrl := range v1Names {
		limit := limitOf(ctrl)
		if limit != "" && !slices.Contains(asked, limit) || ctrl == cpuset && len(g.v1) == 0 {
			continue
		}
		d, c := g.dirV1(t, ctrl)
		if c == nil && limit != "" {
			c = g.setV1(t, d, limit)
		}
		switch {
		case c == nil && limit != "":
			g.by[limit] = result.ByCgroup1
		case c != nil && limit != "":
			g.lack(limit, c)
		case c != nil && ctrl == "cpuacct":
			g.note("cpu time of the whole sandbox cannot be read: " + c.what)
		}
	}
	return nil
}

// dirV1 makes the group of a controller, or finds the one that a co-mounted
// controller (cpu,cpuacct) has made already.
func (g *Group) dirV1(t *tree, ctrl string) (*dir, *cause) {
	parent, c := t.parentV1(ctrl, g.opt.Parent)
	if c != nil {
		return nil, c
	}
	path := parent + "/" + prefix + g.opt.ID
	for i := range g.v1 {
		if g.v1[i].path == path {
			g.v1[i].names = append(g.v1[i].names, ctrl)
			if ctrl == cpuset {
				return &g.v1[i], g.setCPUs(&g.v1[i])
			}
			return &g.v1[i], nil
		}
	}
	d, err := makeLocked(path)
	if err != nil {
		return nil, explainV1("mkdir", path, err)
	}
	d.names = []string{ctrl}
	if ctrl == cpuset {
		c = g.setCPUs(&d)
	}
	if c == nil {
		if d.tasks, err = openAt(d.fd, "tasks", unix.O_WRONLY); err != nil {
			c = explain("open", path+"/tasks", err)
		}
	}
	if c != nil {
		unix.Rmdir(path)
		d.close()
		return nil, c
	}
	g.v1 = append(g.v1, d)
	return &g.v1[len(g.v1)-1], nil
}

// explainV1 knows that no v1 hierarchy is ever delegated by systemd.
func explainV1(op, path string, err error) *cause {
	c := explain(op, path, err)
	if err == unix.EACCES && hostsRoot() {
		c.what += " (root without the capability CAP_DAC_OVERRIDE?)"
		c.hints = []string{"capsh --print   # what the bounding set lacks"}
		return c
	}
	if err == unix.EACCES || err == unix.EPERM {
		c.hints = causes.CgroupV1Denied()
	}
	return c
}

func (g *Group) setV1(t *tree, d *dir, limit string) *cause {
	switch limit {
	case Memory:
		return g.memoryV1(d)
	case Pids:
		return d.set("pids.max", strconv.FormatInt(g.limits.PidsMax, 10))
	case CPU:
		return g.cpuV1(t, d)
	}
	g.note("on cgroup v1 the io limit does not hold writes that go through the page cache")
	for _, l := range g.limits.IO {
		dev := device(l)
		for _, w := range []struct {
			file string
			n    int64
		}{{"read_bps", l.ReadBPS}, {"write_bps", l.WriteBPS}, {"read_iops", l.ReadIOPS}, {"write_iops", l.WriteIOPS}} {
			if w.n == 0 {
				continue
			}
			if c := d.set("blkio.throttle."+w.file+"_device", dev+" "+strconv.FormatInt(w.n, 10)); c != nil {
				return c
			}
		}
	}
	return nil
}

func device(l IOLimit) string {
	return strconv.FormatUint(uint64(l.Major), 10) + ":" + strconv.FormatUint(uint64(l.Minor), 10)
}

// set writes one limit.
func (d *dir) set(file, value string) *cause {
	if err := writeAt(d.fd, file, value); err != nil {
		return explain("write "+value+" to", d.path+"/"+file, err)
	}
	return nil
}

// memoryV1 bounds memory, then memory and swap together at the same value, in
// that order: memsw may never be below memory.
func (g *Group) memoryV1(d *dir) *cause {
	max := strconv.FormatInt(g.limits.MemoryMax, 10)
	if c := d.set("memory.limit_in_bytes", max); c != nil {
		return c
	}
	if c := g.socketsV1(d); c != nil {
		return c
	}
	err := writeAt(d.fd, "memory.memsw.limit_in_bytes", max)
	if err == nil {
		return nil
	}
	if err != unix.ENOENT {
		return explain("write "+max+" to", d.path+"/memory.memsw.limit_in_bytes", err)
	}
	if !hostSwap() {
		return nil
	}
	if c := d.set("memory.swappiness", "0"); c != nil {
		return c
	}
	g.note("this kernel counts no swap (boot with swapaccount=1): swapping is avoided, not forbidden")
	return nil
}

// socketsFile bounds what v1 does not count as memory: the buffers of TCP and,
// since the kernel has one place for both, UDP sockets. One program could hold
// gigabytes in them. It counts sockets that are made after it was written.
const socketsFile = "memory.kmem.tcp.limit_in_bytes"

// A fourth of the memory limit is what the buffers may take beyond it, but at
// least so much that one connection over the loopback is not slowed down.
const (
	socketsShare = 4
	leastSockets = 8 << 20
)

func (g *Group) socketsV1(d *dir) *cause {
	value := strconv.FormatInt(max(g.limits.MemoryMax/socketsShare, leastSockets), 10)
	err := writeAt(d.fd, socketsFile, value)
	if err == unix.ENOENT || err == unix.EOPNOTSUPP {
		g.note("this kernel's cgroup v1 does not count the buffers of network sockets: the memory limit does not hold them")
		return nil
	}
	if err != nil {
		return explain("write "+value+" to", d.path+"/"+socketsFile, err)
	}
	return nil
}

// hostSwap is whether anything can be swapped out; when in doubt it can.
func hostSwap() bool {
	s, err := readPath("/proc/swaps", maxSmall)
	return err != nil || strings.Count(s, "\n") > 1
}

// cpuV1 sets the bandwidth. On v1 the kernel takes no quota that is wider than
// that of a group above (EINVAL): that group then holds the limit.
func (g *Group) cpuV1(t *tree, d *dir) *cause {
	quota, period := g.limits.CPUQuotaUS, g.limits.period()
	if period != defaultPeriodUS {
		if c := d.set("cpu.cfs_period_us", strconv.FormatInt(period, 10)); c != nil {
			return c
		}
	}
	value := strconv.FormatInt(quota, 10)
	err := writeAt(d.fd, "cpu.cfs_quota_us", value)
	if err == nil {
		return nil
	}
	if err == unix.EINVAL {
		for p := above(d.path); p != "" && strings.HasPrefix(p, t.v1Mount("cpu").point); p = above(p) {
			q, per := readNumber(p+"/cpu.cfs_quota_us"), readNumber(p+"/cpu.cfs_period_us")
			if q > 0 && per > 0 && float64(q)/float64(per) <= float64(quota)/float64(period) {
				g.note("the cpu limit of " + p + " is tighter and holds instead")
				g.cpuAbove = true
				return nil
			}
		}
	}
	return explain("write "+value+" to", d.path+"/cpu.cfs_quota_us", err)
}

func above(path string) string { return path[:max(strings.LastIndexByte(path, '/'), 0)] }

func readNumber(path string) int64 {
	s, err := readPath(path, 64)
	if err != nil {
		return -1
	}
	return number(s)
}
