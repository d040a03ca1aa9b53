package pool

import (
	"sandglass/internal/refusal"
	"sandglass/pkg/policy"

	"golang.org/x/sys/unix"
)

// filesEach is how many descriptors the supervisor holds for one sandbox that
// waits: 21, and 23 with an interpreter, where each limit has a hierarchy of its
// own, fewer on cgroup v2. A session that runs out of them could run nothing.
const filesEach = 24

// room is what sandboxes that wait may take.
type room struct{ memory, files int64 }

// hostRoom is the memory of this host, and the descriptors of this process.
func hostRoom() (room, error) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return room{}, err
	}
	var files unix.Rlimit // Go has raised it as far as it may
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return room{}, err
	}
	return room{int64(info.Totalram) * int64(info.Unit), int64(min(files.Cur, 1<<40))}, nil
}

// holds refuses more than there is room for: what waits may use all of its limit
// one day.
func (r room) holds(c Config) error {
	n := int64(0)
	for _, s := range c.Sizes {
		n += s.N
	}
	if each := c.Spec.Limits.Memory; n*each > r.memory {
		return refusal.Newf("--warm: %d sandboxes of %s each are more than the %s of this host", n, policy.FormatSize(each), policy.FormatSize(r.memory)).
			Hint("--warm command=%d", max(r.memory/each/2, 1)).Hint("--memory %s", policy.FormatSize(max(r.memory/n/2, 1<<20)))
	}
	if want := n * filesEach; want > r.files {
		return refusal.Newf("--warm: %d sandboxes take up to %d open files, and this session may have %d", n, want, r.files).
			Hint("--warm command=%d", max(r.files/filesEach/2, 1)).Hint("ulimit -n %d   # before it, in the same shell", 2*want)
	}
	return nil
}
