package sandbox

import (
	"slices"
	"strconv"

	"sandglass/pkg/cgroup"
	"sandglass/pkg/launch"
	"sandglass/pkg/result"
)

// fill turns what launch saw into the result.
func (r *runner) fill(e *launch.Ending) {
	res := r.result
	res.Outcome, res.Error, res.Hints = e.Outcome, e.Error, e.Hints
	if e.Outcome == result.Canceled {
		e.Signal = 0 // the SIGKILL was ours; the caller knows what it was told by
	}
	res.SetExit(e.ExitCode, e.Signal)
	res.WallMS, res.SetupMS = e.Wall.Milliseconds(), e.Setup.Milliseconds()
	res.Stdout, res.Stderr = e.Stdout, e.Stderr
	res.CPUMS = e.CPU.Milliseconds()
	if e.Stats.CPUUsec >= 0 {
		res.CPUMS = e.Stats.CPUUsec / 1000
	}
	res.MemoryPeakBytes, res.PidsPeak, res.OOMKills = e.Stats.MemoryPeak, e.Stats.PidsPeak, e.Stats.OOMKills
	if res.MemoryPeakBytes < 0 && e.MemorySeen > 0 {
		res.MemoryPeakBytes = e.MemorySeen
	}
	// What could not be measured is 0 in a result, as its schema says.
	for _, n := range []*int64{&res.MemoryPeakBytes, &res.PidsPeak, &res.OOMKills} {
		*n = max(*n, 0)
	}
	if e.Outcome != result.Refused {
		res.HostID = r.hostIdentity()
	}
	r.fillLimits()
	r.fillWeaker(e.Stats.CPUUsec >= 0)
	r.fillDenials()
	for _, m := range r.plan.Input.Mounts {
		if slices.Contains(r.box.Unmapped, m.Path) {
			res.Unmapped = append(res.Unmapped, m.Path)
		}
	}
	res.Layers = r.layers(e)
}

// fillLimits lists every limit with what holds it.
func (r *runner) fillLimits() {
	l := &r.spec.Limits
	cg := func(name string) result.Enforcer { return r.group.EnforcedBy(name) }
	memory, pids := cg(cgroup.Memory), cg(cgroup.Pids)
	if memory == result.ByNone {
		memory = result.ByWatchdog
	}
	if pids == result.ByNone {
		pids = result.ByRlimit
	}
	set := func(name string, value int64, unit result.Unit, by result.Enforcer) {
		r.result.Limits[name] = result.Limit{Value: value, Unit: unit, EnforcedBy: by}
	}
	set("timeout", l.Timeout.Milliseconds(), "ms", result.ByClock)
	if l.CPUTime > 0 {
		set("cpu_time", l.CPUTime.Milliseconds(), "ms", result.ByWatchdog)
	}
	set("memory", l.Memory, "bytes", memory)
	set("cpus", l.MilliCPU, "millicpu", cg(cgroup.CPU))
	set("pids", l.Pids, "count", pids)
	set("disk", l.Disk, "bytes", result.ByTmpfs)
	set("disk_inodes", l.DiskInodes, "count", result.ByTmpfs)
	set("output", l.Output, "bytes", result.ByClock)
	set("open_files", r.plan.OpenFiles(), "count", result.ByRlimit)
	set("file_size", l.MaxFileSize(), "bytes", result.ByRlimit)
	set("stack", l.Stack, "bytes", result.ByRlimit)
	set("core", 0, "bytes", result.ByRlimit)
	if r.spec.Out != "" || r.spec.Keep {
		set("out_files", l.OutFiles, "count", result.ByClock)
		set("out_bytes", l.OutBytes, "bytes", result.ByClock)
	}
	if n := &l.Net; len(r.spec.Hosts) > 0 {
		set("net_connections", n.Open, "count", result.ByClock)
		set("net_connections_total", n.Total, "count", result.ByClock)
		set("net_upload", n.Upload, "bytes", result.ByClock)
		set("net_download", n.Download, "bytes", result.ByClock)
		set("net_rate", n.Rate, "bytes/s", result.ByClock)
		set("net_idle", n.Idle.Milliseconds(), "ms", result.ByClock)
	}
	if len(l.IO) > 0 {
		set("io", int64(len(l.IO)), "count", cg(cgroup.IO))
	}
}

// fillWeaker says of each limit that no control group holds what is weaker. CPU
// time is counted by whatever group there is.
func (r *runner) fillWeaker(counted bool) {
	for name, of := range map[string]string{"memory": cgroup.Memory, "cpus": cgroup.CPU, "pids": cgroup.Pids, "io": cgroup.IO, "cpu_time": ""} {
		l, ok := r.result.Limits[name]
		held := counted
		if of != "" {
			held = r.group.EnforcedBy(of) != result.ByNone
		}
		if ok && !held {
			l.Weaker = result.Weaker(name)
			r.result.Limits[name] = l
		}
	}
}

// layers says of each layer of the design what was read back from the kernel.
// One that was asked for and not read back is absent, never enforced.
func (r *runner) layers(e *launch.Ending) []result.Layer {
	status, ns := e.ReadBack.Status, e.ReadBack.Namespaces
	pick := func(m map[string]string, keys ...string) map[string]string {
		out := map[string]string{}
		for _, k := range keys {
			if v, ok := m[k]; ok {
				out[k] = v
			}
		}
		return out
	}
	layer := func(name string, back map[string]string) result.Layer {
		state := result.State("enforced")
		if len(back) == 0 {
			state = "absent"
		}
		return result.Layer{Name: name, Requested: true, State: state, ReadBack: back}
	}
	list := []result.Layer{
		layer("user namespace", merge(pick(ns, "user"), pick(status, "Uid", "Gid", "Groups"))),
		layer("mount", pick(ns, "mnt")),
		layer("pid", pick(ns, "pid")),
		layer("ipc", pick(ns, "ipc")),
		layer("uts", pick(ns, "uts")),
		layer("net", pick(ns, "net")),
		layer("cgroup", e.ReadBack.Cgroup),
		layer("capabilities", pick(status, "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs")),
		layer("seccomp", pick(status, "Seccomp", "Seccomp_filters")),
		layer("landlock", landlock(e.ReadBack.Landlock)),
	}
	for i := range list {
		if list[i].Name == "cgroup" && list[i].State == "enforced" && len(r.spec.AllowDegraded) > 0 {
			list[i].State = r.cgroupState()
		}
	}
	return list
}

func (r *runner) cgroupState() result.State {
	for _, name := range []string{cgroup.Memory, cgroup.CPU, cgroup.Pids} {
		if r.group.EnforcedBy(name) == result.ByNone {
			return "degraded"
		}
	}
	return "enforced"
}

// landlock is empty, and the layer absent, where the kernel has none: it is a
// second line that not every host can give.
func landlock(abi int) map[string]string {
	if abi == 0 {
		return nil
	}
	return map[string]string{"abi": strconv.Itoa(abi)}
}

func merge(a, b map[string]string) map[string]string {
	for k, v := range b {
		a[k] = v
	}
	return a
}
