package boxinit

import (
	"runtime"
	"sync"

	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// roomForInit adds init's own threads to RLIMIT_NPROC. The kernel counts all
// tasks of the program's user in this user namespace, and init has the same id;
// without room for it the program would get fewer than its policy says, and
// with a guess it would get more where no cgroup bounds it.
func roomForInit(cfg *wire.Config) {
	if cfg.Box == wire.NoFD && len(cfg.Tasks) == 0 {
		settle() // no cgroup: the number must be exact
	}
	for i := range cfg.Rlimits {
		if l := &cfg.Rlimits[i]; l.Resource == unix.RLIMIT_NPROC {
			var own unix.Rlimit
			if err := unix.Getrlimit(unix.RLIMIT_NPROC, &own); err != nil {
				return
			}
			n := min(l.Soft+ownThreads(), own.Max)
			l.Soft, l.Hard = n, n
		}
	}
}

// settle makes the threads that init will ever need: the runtime keeps an idle
// one for the next use and never ends it. One that it made later would be
// counted against the program.
func settle() {
	const threads = 3 // watch, the runtime's own work, one more
	var ready, done sync.WaitGroup
	release := make(chan struct{})
	for range threads {
		ready.Add(1)
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			ready.Done()
			<-release
		})
	}
	ready.Wait()
	close(release)
	done.Wait()
}

// ownThreads counts this process's threads by asking for each: in its new PID
// namespace nobody else has a number, and there may be no /proc to read.
func ownThreads() uint64 {
	const numbers = 64
	n := uint64(0)
	pid := unix.Getpid()
	for tid := pid; tid < pid+numbers; tid++ {
		if unix.Tgkill(pid, tid, 0) == nil {
			n++
		}
	}
	return n
}
