package policy

import (
	"strings"

	"sandglass/internal/refusal"
)

func limitFlags() []Flag {
	return []Flag{
		{Name: "timeout", Arg: "DURATION", Default: "10s", Group: groupLimits,
			Set: duration(func(l *Limits) durationField { return &l.Timeout }), Help: "wall clock time"},
		{Name: "cpu-time", Arg: "DURATION", Group: groupLimits,
			Set: unlimited("--cpu-time", duration(func(l *Limits) durationField { return &l.CPUTime })), Help: "CPU time of all processes together (default none)"},
		{Name: "memory", Short: "m", Arg: "SIZE", Default: "256m", Group: groupLimits,
			Set: size(func(l *Limits) *int64 { return &l.Memory }), Help: "memory and scratch disk together; there is no swap"},
		{Name: "memory-swap", Arg: "SIZE", Group: groupLimits, Set: setMemorySwap,
			Help: "accepted when equal to --memory, which means no swap"},
		{Name: "cpus", Arg: "N", Default: "1", Group: groupLimits, Set: setCPUs, Help: "CPUs' worth of time, 0.01 to 4096"},
		{Name: "pids-limit", Arg: "N", Default: "64", Group: groupLimits,
			Set: count(func(l *Limits) *int64 { return &l.Pids }), Help: "processes and threads"},
		{Name: "disk", Arg: "SIZE", Default: "64m", Group: groupLimits,
			Set: size(func(l *Limits) *int64 { return &l.Disk }), Help: "scratch: /tmp, /work, HOME and /dev/shm together"},
		{Name: "disk-inodes", Arg: "N", Default: "16k", Group: groupLimits,
			Set: count(func(l *Limits) *int64 { return &l.DiskInodes }), Help: "files and directories of the scratch"},
		{Name: "output-limit", Arg: "SIZE", Default: "1m", Group: groupLimits,
			Set: size(func(l *Limits) *int64 { return &l.Output }), Help: "bytes kept of stdout and of stderr, each"},
		{Name: "on-output-limit", Arg: "ACTION", Default: "truncate", Group: groupLimits, Set: setOutputAction,
			Help: "truncate: drop the rest, let the program go on; kill: end it"},
		{Name: "open-files", Arg: "N", Default: "1024", Group: groupLimits,
			Set: count(func(l *Limits) *int64 { return &l.OpenFiles }), Help: "open descriptors of one process"},
		{Name: "ulimit", Arg: "NAME=N", Group: groupLimits, Many: true, Set: setUlimit,
			Help: "nofile, fsize, stack or core=0, in docker's units"},
	}
}

func ioFlags() []Flag {
	bytes := func(name string, at func(*IOLimit) *int64) Flag {
		return Flag{Name: name, Arg: "DEV:SIZE", Group: groupLimits, Many: true, Set: deviceRate(ParseSize, at),
			Help: "bytes a second of a block device"}
	}
	ops := func(name string, at func(*IOLimit) *int64) Flag {
		return Flag{Name: name, Arg: "DEV:N", Group: groupLimits, Many: true, Set: deviceRate(ParseCount, at),
			Help: "operations a second of a block device"}
	}
	return []Flag{
		bytes("device-read-bps", func(l *IOLimit) *int64 { return &l.ReadBPS }),
		bytes("device-write-bps", func(l *IOLimit) *int64 { return &l.WriteBPS }),
		ops("device-read-iops", func(l *IOLimit) *int64 { return &l.ReadIOPS }),
		ops("device-write-iops", func(l *IOLimit) *int64 { return &l.WriteIOP }),
	}
}

// setMemorySwap only notes the value; --memory may still follow.
func setMemorySwap(p *Parsed, v string) error {
	if v == "-1" {
		return refusal.Newf("swap is always off, -1 would make it unlimited").Hint("leave --memory-swap out")
	}
	n, err := ParseSize(v)
	p.pending.memorySwap = n
	return err
}

func setCPUs(p *Parsed, v string) (err error) {
	p.Spec.Limits.MilliCPU, err = ParseCPUs(v)
	return err
}

func setOutputAction(p *Parsed, v string) error {
	switch a := OutputAction(v); a {
	case OutputTruncate, OutputKill:
		p.Spec.OutputLimit = a
		return nil
	}
	return refusal.Newf("%s is neither truncate nor kill", quote(v))
}

// setUlimit is docker's --ulimit for the four limits that mean the same here.
// nproc and cpu are not: the kernel counts them per user and per process.
func setUlimit(p *Parsed, v string) error {
	name, value, ok := strings.Cut(v, "=")
	if !ok {
		return refusal.Newf("%s has no value", quote(v)).Hint("--ulimit nofile=1024")
	}
	soft, hard, both := strings.Cut(value, ":")
	if both && soft != hard {
		return refusal.Newf("%s: soft and hard must be the same, or the program raises it", quote(v)).
			Hint("--ulimit %s", refusal.Shell(name+"="+soft))
	}
	switch name {
	case "nofile":
		return p.same("open-files", soft, count(func(l *Limits) *int64 { return &l.OpenFiles }))
	case "fsize":
		return p.same("ulimit fsize", soft, size(func(l *Limits) *int64 { return &l.FileSize }))
	case "stack":
		return p.same("ulimit stack", soft, size(func(l *Limits) *int64 { return &l.Stack }))
	case "core":
		if soft == "0" {
			return nil
		}
		return refusal.Newf("core is always 0: a core dump leaves the sandbox").Hint("--ulimit core=0")
	case "nproc":
		return refusal.Newf("nproc does not bound a sandbox: it counts per user").Hint("--pids-limit 64")
	case "cpu":
		return refusal.Newf("cpu does not bound a sandbox: it counts per process").Hint("--cpu-time 10s")
	case "as", "data", "rss", "memlock":
		return refusal.Newf("%s does not bound a sandbox: it counts per process", name).Hint("--memory 256m")
	}
	return refusal.Newf("%s is not a limit known here: nofile, fsize, stack, core", quote(name))
}

// deviceRate reads DEV:RATE into the entry of that device.
func deviceRate(parse func(string) (int64, error), at func(*IOLimit) *int64) func(*Parsed, string) error {
	return func(p *Parsed, v string) error {
		i := strings.LastIndexByte(v, ':')
		if i <= 0 {
			return refusal.Newf("%s is not DEVICE:RATE", quote(v)).Hint("--device-read-bps /dev/vda:10m")
		}
		n, err := parse(v[i+1:])
		if err != nil {
			return err
		}
		field := at(p.device(v[:i]))
		if *field != 0 && *field != n {
			return refusal.Newf("%s has two rates: %d and %d", quote(v[:i]), *field, n)
		}
		*field = n
		return nil
	}
}

func (p *Parsed) device(name string) *IOLimit {
	io := &p.Spec.Limits.IO
	for i := range *io {
		if (*io)[i].Device == name {
			return &(*io)[i]
		}
	}
	*io = append(*io, IOLimit{Device: name})
	return &(*io)[len(*io)-1]
}
