package boxinit

import (
	"strconv"

	"sandglass/pkg/mount"
	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// Quotas of the sandbox's own user namespace (/proc/sys/user, see
// namespaces(7)). What the program uses of these counts for the namespace's
// owner on the host too: an ordinary caller's sandbox could take all inotify
// instances of the host that the caller has, 128 by default, and with them
// every other program's of that user.
const (
	// Watchers take one each; the file watchers of Node, Python and the JVM do
	// with one for each process.
	inotifyInstances = 16
	inotifyWatches   = 2048
)

type quota struct {
	name string
	max  int
}

// timeStamps is the network namespace's. What is sent can ask for a copy of
// itself in the socket's queue of errors, with the time: of TCP nobody counts
// these, and no filter sees the question, it is in a message. With 0 a copy is
// for those who may see packets (CAP_NET_RAW on the host).
var timeStamps = quota{"../net/core/tstamp_allow_data", 0}

// quotas lists what is set. The namespaces are a second line after the filter,
// which refuses to make any. cgroupNS says that the program's own process has
// yet to make one.
func quotas(cgroupNS bool) []quota {
	list := []quota{
		{"max_inotify_instances", inotifyInstances}, {"max_inotify_watches", inotifyWatches},
		{"max_fanotify_groups", 0}, {"max_fanotify_marks", 0},
		{"max_user_namespaces", 0}, {"max_mnt_namespaces", 0}, {"max_pid_namespaces", 0}, {"max_net_namespaces", 0},
		{"max_ipc_namespaces", 0}, {"max_uts_namespaces", 0}, {"max_time_namespaces", 0}, {"max_cgroup_namespaces", 0},
	}
	if cgroupNS {
		list[len(list)-1].max = 1
	}
	return append(list, timeStamps)
}

// findQuotas opens the directory while the host's /proc is still there: the
// root may have none. The kernel shows each process its own namespace's values
// under one name. Where the host's is read-only (in a container, in a service
// with ProtectKernelTunables=) a new /proc does, if the kernel allows one.
func findQuotas(b *box) error {
	const path = "/proc/sys/user"
	how := unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC
	dir, err := unix.Open(path, how, 0)
	if err == nil {
		var fs unix.Statfs_t
		if err = unix.Fstatfs(dir, &fs); err == nil && fs.Type == unix.PROC_SUPER_MAGIC && fs.Flags&unix.ST_RDONLY == 0 {
			b.quotas = dir
			return nil
		}
		unix.Close(dir)
		err = unix.EROFS
	}
	proc, e := mount.Detached("proc", wire.NoSuid|wire.NoDev|wire.NoExec)
	if e != nil {
		return &mount.Error{Op: "open " + path, Errno: err.(unix.Errno), Note: quotaNote(err)}
	}
	defer unix.Close(proc)
	if b.quotas, err = unix.Openat(proc, "sys/user", how, 0); err != nil {
		return &mount.Error{Op: "open " + path, Errno: err.(unix.Errno)}
	}
	return nil
}

// setQuotas needs CAP_SYS_RESOURCE in the user namespace. It stands after the
// mounts: each detached one is a mount namespace to the kernel.
func setQuotas(b *box) error {
	defer unix.Close(b.quotas)
	for _, q := range quotas(b.cfg.CgroupNS) {
		err := writeQuota(b.quotas, q)
		if err == unix.ENOENT {
			continue // this kernel has no such thing to limit
		}
		if err != nil {
			return &mount.Error{Op: "write /proc/sys/user/" + q.name, Errno: err.(unix.Errno), Note: quotaNote(err)}
		}
	}
	return nil
}

func quotaNote(err error) string {
	if err == unix.EROFS {
		return "/proc/sys is read-only on this host, so the caller's inotify instances and watches could not be kept from the program"
	}
	return ""
}

func writeQuota(dir int, q quota) error {
	fd, err := unix.Openat(dir, q.name, unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte(strconv.Itoa(q.max)))
	return err
}
