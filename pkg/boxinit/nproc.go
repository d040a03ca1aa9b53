package boxinit

import (
	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// usualThreads is what init has, for a box without /proc.
const usualThreads = 5

// roomForInit adds init's own threads to RLIMIT_NPROC. The kernel counts all
// tasks of the program's user in this user namespace, and init has the same id;
// without room for it the program would get fewer than its policy says, and
// with a guess it would get more where no cgroup bounds it.
func roomForInit(limits []wire.Rlimit) {
	for i := range limits {
		if l := &limits[i]; l.Resource == unix.RLIMIT_NPROC {
			var own unix.Rlimit
			if err := unix.Getrlimit(unix.RLIMIT_NPROC, &own); err != nil {
				return
			}
			n := min(l.Soft+ownThreads(), own.Max)
			l.Soft, l.Hard = n, n
		}
	}
}

// ownThreads reads the link count of /proc/self/task, which is 2 and one for
// each thread. An image's own directory of that name does not count.
func ownThreads() uint64 {
	var fs unix.Statfs_t
	var st unix.Stat_t
	const tasks = "/proc/self/task"
	if unix.Statfs(tasks, &fs) != nil || fs.Type != unix.PROC_SUPER_MAGIC || unix.Stat(tasks, &st) != nil || st.Nlink < 3 {
		return usualThreads
	}
	return uint64(st.Nlink) - 2
}
