package probes

import (
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sandglass/internal/sys"

	"golang.org/x/sys/unix"
)

// number is the first argument. Every probe here is bounded by it, so that a
// limit that does not hold costs the host little.
func number(args []string) int {
	if len(args) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(args[0])
	return n
}

// heldFor is how long memory that nobody has refused is kept: where no control
// group counts it, somebody has to look while it is there, on a busy host too.
const heldFor = 3 * time.Second

// eatMemory touches MiB after MiB of memory.
func eatMemory(args []string) {
	for i := range number(args) {
		m, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			try("mmap", err)
			return
		}
		for at := 0; at < len(m); at += 4096 {
			m[at] = byte(i)
		}
	}
	time.Sleep(heldFor)
	say("memory", "all of it")
}

// fillMemory takes memory through files of the scratch.
func fillMemory(args []string) {
	fd, err := unix.Open("/dev/shm/fill", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if !try("open", err) {
		return
	}
	block := make([]byte, 1<<20)
	for range number(args) {
		if _, err := unix.Write(fd, block); err != nil {
			try("write", err)
			return
		}
	}
	say("scratch", "all of it")
}

// forkBomb starts processes that stay, until it cannot or has had enough.
func forkBomb(args []string) {
	started := 0
	for range number(args) {
		_, err := start("hold", false)
		if err != nil {
			try("fork", err)
			break
		}
		started++
	}
	say("started", strconv.Itoa(started))
}

// start runs another probe of this binary, in a session of its own or not.
func start(probe string, session bool, args ...string) (int, error) {
	return syscall.ForkExec("/proc/self/exe", append([]string{Arg0, probe}, args...), &syscall.ProcAttr{
		Files: []uintptr{0, 1, 2},
		Sys:   &syscall.SysProcAttr{Setsid: session},
	})
}

// cpuStats are where a program finds how often the kernel held it back.
var cpuStats = []string{"/sys/fs/cgroup/cpu.stat", "/sys/fs/cgroup/cpu/cpu.stat"}

// burn keeps several threads busy for the given milliseconds, and repeats how
// often the kernel held them back. Where the host is so busy that they get less
// than their limit, it goes on until they once got more, five times as long at most.
func burn(args []string) {
	began, least := time.Now(), time.Duration(number(args))*time.Millisecond
	runtime.GOMAXPROCS(4)
	for range 3 {
		go spin()
	}
	for round := least; round <= 5*least; round += least {
		for time.Since(began) < round {
		}
		if heldBack() {
			break
		}
	}
	for _, path := range cpuStats {
		read("throttling "+path, path)
	}
}

// heldBack is false only where the kernel says that it never did.
func heldBack() bool {
	for _, path := range cpuStats {
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), "nr_throttled 0\n") {
			return false
		}
	}
	return true
}

// writable are the places where a program may write.
var writable = []string{"/tmp", "/work", "/out", "/dev/shm", "/home/sandbox"}

// fillDisk writes to all writable places in turn until none takes more. The
// argument bounds it in MiB.
func fillDisk(args []string) {
	block := make([]byte, 64<<10)
	var written int64
	full := map[string]bool{}
	for i := 0; written < int64(number(args))<<20 && len(full) < len(writable); i++ {
		dir := writable[i%len(writable)]
		if full[dir] {
			continue
		}
		fd, err := unix.Open(dir+"/fill", unix.O_CREAT|unix.O_WRONLY|unix.O_APPEND|unix.O_CLOEXEC, 0o600)
		n := 0
		if err == nil {
			n, err = unix.Write(fd, block)
			unix.Close(fd)
		}
		written += int64(max(n, 0))
		if err != nil {
			try("full "+dir, err)
			full[dir] = true
		}
	}
	say("written", strconv.FormatInt(written, 10))
}

// fillInodes makes empty files everywhere.
func fillInodes(args []string) {
	made := 0
	full := map[string]bool{}
	for i := 0; made < number(args) && len(full) < len(writable); i++ {
		dir := writable[i%len(writable)]
		fd, err := unix.Open(dir+"/"+strconv.Itoa(i), unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
		if err != nil {
			if !full[dir] {
				try("full "+dir, err)
			}
			full[dir] = true
			continue
		}
		unix.Close(fd)
		made++
	}
	say("made", strconv.Itoa(made))
}

// flood writes MiB after MiB to stdout.
func flood(args []string) {
	block := make([]byte, 1<<20)
	for i := range block {
		block[i] = 'x'
	}
	for range number(args) {
		if _, err := os.Stdout.Write(block); err != nil {
			return
		}
	}
}

// rlimits tries to raise what was lowered, and to lower the one limit that is
// only safe as it is.
func rlimits([]string) {
	for _, value := range []uint64{0, 1 << 30} {
		unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: value, Max: value})
		var now unix.Rlimit
		unix.Getrlimit(unix.RLIMIT_CORE, &now)
		say("limit core", strconv.FormatUint(now.Cur, 10)+" "+strconv.FormatUint(now.Max, 10))
	}
	for _, l := range []struct {
		name string
		id   int
	}{{"nofile", unix.RLIMIT_NOFILE}, {"fsize", unix.RLIMIT_FSIZE}, {"nproc", unix.RLIMIT_NPROC}, {"rtprio", unix.RLIMIT_RTPRIO}} {
		var now unix.Rlimit
		unix.Getrlimit(l.id, &now)
		say("limit "+l.name, strconv.FormatUint(now.Max, 10))
		try("raise "+l.name, unix.Setrlimit(l.id, &unix.Rlimit{Cur: now.Max + 1, Max: now.Max + 1}))
	}
	try("nice", unix.Setpriority(unix.PRIO_PROCESS, 0, -5))
}

// dumpCore dies the way that leaves a core file.
func dumpCore([]string) {
	unix.Chdir("/out")
	unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1 << 30, Max: 1 << 30})
	// The kernel's own action, not the Go runtime's handler.
	sys.DefaultSignal(unix.SIGSEGV)
	unix.Kill(unix.Getpid(), unix.SIGSEGV)
	hold()
}

// daemons leaves processes behind that nobody waits for, each with the marker
// in its arguments.
func daemons(args []string) {
	for range 3 {
		if _, err := start("stay", true, args...); err != nil {
			try("daemon", err)
			return
		}
	}
	say("daemons", "3")
}

// stay ignores what can be ignored and waits for ever.
func stay([]string) {
	signal.Ignore(unix.SIGTERM, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGPIPE)
	say("staying", Done)
	hold()
}
