package plan

import (
	"os"
	"strconv"

	"sandglass/internal/refusal"
	"sandglass/pkg/cgroup"
	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// cpuPeriodUS is the period of cpu.max. At 100 ms a program with half a CPU
// waits at most 50 ms for its next slice.
const cpuPeriodUS = 100_000

// spareTasks is room in RLIMIT_NPROC above pids.max, which is the exact limit
// where there is a cgroup. Init adds its own threads.
const spareTasks = 24

// Bounds on what the kernel counts for a user, on the host too (see boxinit's
// quotas): signals that wait and POSIX timers, bytes of POSIX message queues (of
// the default size three fit), locked memory.
const (
	maxSignals = 512
	maxQueues  = 256 << 10
	maxLocked  = 8 << 20
)

// noCore as RLIMIT_CORE: no file is that small, and it is the one value that
// also keeps a helper behind a pipe in core_pattern from starting, which with 0
// would get hostile memory as the host's root (do_coredump in fs/coredump.c).
// The filter keeps the program from lowering it.
const noCore = 1

// limits translates the Spec's limits into the kernel's.
func (b *builder) limits() error {
	l := &b.plan.Spec.Limits
	b.plan.Cgroup = cgroup.Limits{
		MemoryMax: l.Memory, PidsMax: l.Pids,
		CPUQuotaUS: l.MilliCPU * cpuPeriodUS / 1000, CPUPeriodUS: cpuPeriodUS,
	}
	for _, io := range l.IO {
		var st unix.Stat_t
		if err := unix.Stat(io.Device, &st); err != nil {
			return refusal.Newf("device %s: %v", strconv.Quote(io.Device), err).Hint("lsblk -p   # the block devices of this host")
		}
		if st.Mode&unix.S_IFMT != unix.S_IFBLK {
			return refusal.Newf("device %s is not a block device", strconv.Quote(io.Device)).Hint("lsblk -p   # the block devices of this host")
		}
		b.plan.Cgroup.IO = append(b.plan.Cgroup.IO, cgroup.IOLimit{
			Major: unix.Major(uint64(st.Rdev)), Minor: unix.Minor(uint64(st.Rdev)),
			ReadBPS: io.ReadBPS, WriteBPS: io.WriteBPS, ReadIOPS: io.ReadIOPS, WriteIOPS: io.WriteIOP,
		})
	}
	b.plan.Rlimits = []wire.Rlimit{
		rlimit(unix.RLIMIT_CORE, noCore),
		openFiles(l.OpenFiles),
		rlimit(unix.RLIMIT_FSIZE, l.MaxFileSize()),
		rlimit(unix.RLIMIT_NPROC, l.Pids+spareTasks),
		rlimit(unix.RLIMIT_STACK, l.Stack),
		rlimit(unix.RLIMIT_SIGPENDING, maxSignals),
		rlimit(unix.RLIMIT_MSGQUEUE, maxQueues),
		rlimit(unix.RLIMIT_MEMLOCK, min(maxLocked, l.Memory)),
		// Without these a caller's own (limits.conf of an audio group) would let
		// the program raise itself above the CPU limit and its neighbours.
		rlimit(unix.RLIMIT_RTPRIO, 0),
		rlimit(unix.RLIMIT_NICE, 0),
	}
	return nil
}

// spareFiles keeps descriptors on their way through sockets for the supervisor.
// The kernel lets a process send one while all processes of its user have no
// more of them on their way than its own limit, plus the 253 of one message:
// with the same limit inside, one sandbox of an ordinary user would leave that
// user none to send a next one its plan with (ETOOMANYREFS of unix(7)). The
// supervisor's own is at its hard limit, as of every Go program.
const spareFiles = 512

func openFiles(value int64) wire.Rlimit {
	r := rlimit(unix.RLIMIT_NOFILE, value)
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &own); err == nil && os.Geteuid() != 0 && own.Max > 2*spareFiles-1 {
		r.Soft = min(r.Soft, own.Max-spareFiles)
		r.Hard = r.Soft
	}
	return r
}

// OpenFiles is the limit that the program really gets.
func (p *Plan) OpenFiles() int64 {
	for _, r := range p.Rlimits {
		if r.Resource == unix.RLIMIT_NOFILE {
			return int64(r.Soft)
		}
	}
	return p.Spec.Limits.OpenFiles
}

// WithoutCgroup are the rlimits where no cgroup bounds the tasks: RLIMIT_NPROC
// is then the limit itself.
func (p *Plan) WithoutCgroup() []wire.Rlimit {
	list := append([]wire.Rlimit{}, p.Rlimits...)
	for i := range list {
		if list[i].Resource == unix.RLIMIT_NPROC {
			list[i] = rlimit(unix.RLIMIT_NPROC, p.Spec.Limits.Pids)
		}
	}
	return list
}

// rlimit never asks for more than the caller's own hard limit, which only
// CAP_SYS_RESOURCE could raise.
func rlimit(resource int, value int64) wire.Rlimit {
	v := uint64(value)
	var own unix.Rlimit
	if err := unix.Getrlimit(resource, &own); err == nil {
		v = min(v, own.Max)
	}
	return wire.Rlimit{Resource: int32(resource), Soft: v, Hard: v}
}
