package probes

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// devices lists /dev and tries to make what it lacks.
func devices([]string) {
	dir, err := os.Open("/dev")
	if try("list /dev", err) {
		names, _ := dir.Readdirnames(-1)
		dir.Close()
		slices.Sort(names)
		say("list", strings.Join(names, " "))
	}
	try("mknod block", unix.Mknod("/tmp/disk", unix.S_IFBLK|0o600, int(unix.Mkdev(8, 0))))
	try("mknod char", unix.Mknod("/tmp/mem", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 1))))
	try("mknod null", unix.Mknod("/tmp/null", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))))
	try("mknod in /dev", unix.Mknod("/dev/plain", unix.S_IFREG|0o600, 0))
	for _, name := range []string{"mem", "kmsg", "kvm", "fuse", "net/tun", "sda", "vda", "loop-control", "uinput"} {
		fd, err := unix.Open("/dev/"+name, unix.O_RDWR|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if try("open "+name, err) {
			unix.Close(fd)
		}
	}
}

// readOnly tries to make a file at every mount, and to change what is there.
// What works is said as "made PATH".
func readOnly([]string) {
	info, err := os.ReadFile("/proc/self/mountinfo")
	if !try("mountinfo", err) {
		return
	}
	for line := range bytes.Lines(info) {
		if f := bytes.Fields(line); len(f) > 4 {
			plant(string(f[4]))
		}
	}
	for _, dir := range []string{"/etc", "/usr/bin", "/code", "/opt", "/var", "/run", "/dev", "/sys", "/home", "/root"} {
		plant(dir)
	}
	for _, path := range []string{"/etc/passwd", "/etc/hosts", "/usr"} {
		try("chmod "+path, unix.Chmod(path, 0o777))
		try("rename "+path, unix.Rename(path, path+".old"))
	}
}

func plant(dir string) {
	path := strings.TrimSuffix(dir, "/") + "/sandglass-planted"
	fd, err := unix.Open(path, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err == nil {
		unix.Close(fd)
		unix.Unlink(path)
		say("made "+dir, Done)
		return
	}
	say("refused "+dir, outcome(err))
}

// sysctl opens the kernel's knobs for writing, and turns none.
func sysctl([]string) {
	for _, path := range []string{
		"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sys/kernel/modprobe", "/proc/sys/vm/drop_caches",
		"/proc/sys/net/ipv4/ip_forward", "/proc/sys/fs/binfmt_misc/register", "/proc/sysrq-trigger", "/proc/irq/default_smp_affinity",
		"/sys/kernel/uevent_helper", "/sys/power/state",
	} {
		fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if path == "/proc/sysrq-trigger" && err == nil && isNull(fd) {
			err = unix.ENOENT // /dev/null stands there
		}
		if try(path, err) {
			unix.Close(fd)
		}
	}
	adj, err := os.ReadFile("/proc/self/oom_score_adj")
	n, _ := strconv.Atoi(strings.TrimSpace(string(adj)))
	if try("oom_score_adj", err) {
		try("lower oom_score_adj", os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.Itoa(n-1)), 0))
	}
	for _, path := range []string{"/proc/kcore", "/proc/kallsyms", "/proc/kmsg", "/proc/keys", "/proc/timer_list", "/proc/cmdline", "/proc/config.gz"} {
		data, err := readHead(path)
		if err == nil && len(data) == 0 {
			say("read "+path, "empty")
			continue
		}
		try("read "+path, err)
	}
}

func readHead(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	buf := make([]byte, 64)
	n, err := unix.Read(fd, buf)
	return buf[:max(n, 0)], err
}

func isNull(fd int) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && st.Rdev == unix.Mkdev(1, 3)
}

// cgroupFiles tries to lift the limits through the view of the own group.
func cgroupFiles([]string) {
	// On v1 there is a directory for each controller, on v2 there are files.
	roots := slices.DeleteFunc(append(glob("/sys/fs/cgroup"), glob("/sys/fs/cgroup/*")...), func(path string) bool {
		var st unix.Stat_t
		return unix.Lstat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR
	})
	say("views", strconv.Itoa(len(roots)))
	for _, root := range roots {
		try("mkdir "+root, unix.Mkdir(root+"/child", 0o755))
		for _, name := range []string{"cgroup.procs", "tasks", "memory.max", "memory.limit_in_bytes", "pids.max", "cpu.max", "cpu.cfs_quota_us", "cgroup.subtree_control", "release_agent"} {
			fd, err := unix.Open(root+"/"+name, unix.O_WRONLY|unix.O_CLOEXEC, 0)
			if try("write "+root+"/"+name, err) {
				unix.Close(fd)
			}
		}
		say("above "+root, strings.Join(glob(root+"/../sandglass-*"), " "))
	}
	read("cgroup", "/proc/self/cgroup")
}

// plantLinks leaves in /out what a careless collector would follow.
func plantLinks(args []string) {
	unix.Symlink(args[0], "/out/link")
	unix.Symlink("/", "/out/root")
	unix.Symlink(args[0], "/out/again")
	unix.Mkfifo("/out/fifo", 0o666)
	try("plain", os.WriteFile("/out/plain", []byte("plain"), 0o644))
}

// sysvIPC looks for a shared memory segment of the host by key and by id.
func sysvIPC(args []string) {
	key, id := 0, 0
	if len(args) == 2 {
		key, _ = strconv.Atoi(args[0])
		id, _ = strconv.Atoi(args[1])
	}
	_, err := unix.SysvShmGet(key, 0, 0)
	try("shmget", err)
	data, err := unix.SysvShmAttach(id, 0, unix.SHM_RDONLY)
	if try("shmat", err) {
		say("content", string(data[:min(len(data), 64)]))
		unix.SysvShmDetach(data)
	}
	list, err := os.ReadFile("/proc/sysvipc/shm")
	try("open /proc/sysvipc/shm", err)
	say("segments", strconv.Itoa(max(bytes.Count(list, []byte("\n"))-1, 0)))
}

// sharedPlaces are where two sandboxes could meet.
var sharedPlaces = []string{"/tmp", "/work", "/home/sandbox", "/dev/shm", "/out", "/var/tmp"}

// neighbour is one of two sandboxes. "leave TOKEN" puts the token everywhere
// and stays until its stdin ends; "look TOKEN" reads everything.
func neighbour(args []string) {
	if len(args) != 2 {
		return
	}
	if args[0] == "leave" {
		for _, dir := range sharedPlaces {
			try("leave "+dir, os.WriteFile(dir+"/note", []byte(args[1]), 0o666))
		}
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Bind(fd, &unix.SockaddrUnix{Name: "@" + args[1]})
		}
		if err == nil {
			err = unix.Listen(fd, 1)
		}
		try("listen", err)
		say("ready", Done)
		os.Stdin.Read(make([]byte, 1))
		return
	}
	for _, dir := range sharedPlaces {
		read("look "+dir, dir+"/note")
	}
	abstract(args[1:])
	processes(nil)
}
