package probes

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// processes lists whatever /proc shows.
func processes([]string) {
	dir, err := os.Open("/proc")
	if !try("open /proc", err) {
		return
	}
	names, _ := dir.Readdirnames(-1)
	dir.Close()
	self := strconv.Itoa(os.Getpid())
	for _, name := range names {
		if _, err := strconv.Atoi(name); err != nil || name == self {
			continue
		}
		read("process "+name, "/proc/"+name+"/cmdline")
	}
	say("self", self)
}

// initProcess tries every door to PID 1, the host's own binary.
func initProcess([]string) {
	for _, file := range []string{"exe", "mem", "environ", "cmdline", "maps", "stack", "status", "root/etc/passwd", "cwd/.", "fd/3", "ns/mnt", "ns/user", "task/1/mem", "map_files"} {
		fd, err := unix.Open("/proc/1/"+file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if try("open /proc/1/"+file, err) {
			unix.Close(fd)
		}
	}
	for _, file := range []string{"exe", "mem", "oom_score_adj", "uid_map", "setgroups"} {
		fd, err := unix.Open("/proc/1/"+file, unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if try("open /proc/1/"+file+" to write", err) {
			unix.Close(fd)
		}
	}
	_, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, 1, 0, 0, 0, 0)
	try("ptrace init", e)
	_, _, e = unix.Syscall6(unix.SYS_PROCESS_VM_READV, 1, 0, 0, 0, 0, 0)
	try("process_vm_readv init", e)
	_, _, e = unix.Syscall6(unix.SYS_PRLIMIT64, 1, unix.RLIMIT_NOFILE, 0, 0, 0, 0)
	try("prlimit init", e)
}

// signals tries to kill host processes by their numbers on the host. Never -1:
// where the sandbox does not hold, that would reach all that the user runs.
func signals(pids []string) {
	for _, text := range pids {
		pid, err := strconv.Atoi(text)
		if err != nil || pid <= 1 {
			continue
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if try("pidfd_open", err) {
			try("pidfd_send_signal", unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0))
			unix.Close(fd)
		}
		try("kill", unix.Kill(pid, unix.SIGKILL))
		try("tgkill", unix.Tgkill(pid, pid, unix.SIGKILL))
		_, err = unix.Getpgid(pid)
		try("getpgid", err)
	}
}

// hold waits for ever. Its end comes from outside.
func hold() {
	for {
		unix.Pause()
	}
}

// loop says that it has begun, and never ends.
func loop([]string) {
	say("loop", Done)
	spin()
}

// spin is the endless loop.
func spin() {
	//lint:ignore SA5002 the probe is meant to burn CPU
	for {
	}
}
