package rootfs

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Size is what the sandbox is told to be.
type Size struct {
	Memory int64 // bytes
	CPUs   int
}

// File is one file of /proc and what it says inside.
type File struct{ Name, Text string }

// Sized are the files of /proc that programs size themselves by, or stop
// without, as they are inside. They do not change while a program runs: a
// figure that moved with the host's load would be a channel between sandboxes.
func Sized(s Size) []File {
	s.CPUs = max(s.CPUs, 1)
	return []File{
		{"meminfo", meminfo(s.Memory)},
		{"cpuinfo", cpuinfo(s.CPUs)},
		{"stat", stat(s.CPUs)},
		{"loadavg", "0.00 0.00 0.00 1/1 1\n"},
		{"version", version()},
		{"cgroups", cgroups()},
		{"vmstat", "nr_free_pages " + strconv.FormatInt(s.Memory/int64(os.Getpagesize()), 10) + "\npgpgin 0\npgpgout 0\npswpin 0\npswpout 0\npgfault 0\npgmajfault 0\n"},
		{"swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"},
		{"filesystems", "nodev\ttmpfs\nnodev\tproc\nnodev\tdevpts\n"},
	}
}

// meminfo is a machine with the memory limit as its memory, all of it free.
func meminfo(memory int64) string {
	var b strings.Builder
	for _, name := range [...]string{
		"MemTotal", "MemFree", "MemAvailable", "Buffers", "Cached", "SwapCached", "Active", "Inactive", "Active(anon)", "Inactive(anon)",
		"Active(file)", "Inactive(file)", "Unevictable", "Mlocked", "SwapTotal", "SwapFree", "Dirty", "Writeback", "AnonPages", "Mapped",
		"Shmem", "KReclaimable", "Slab", "SReclaimable", "SUnreclaim", "KernelStack", "PageTables", "CommitLimit", "Committed_AS",
		"VmallocTotal", "VmallocUsed", "VmallocChunk", "AnonHugePages", "ShmemHugePages", "Hugepagesize",
	} {
		var kib int64
		switch name {
		case "MemTotal", "MemFree", "MemAvailable", "CommitLimit":
			kib = memory >> 10
		case "Hugepagesize":
			kib = 2048
		}
		fmt.Fprintf(&b, "%-16s%8d kB\n", name+":", kib)
	}
	return b.String()
}

// perCPU are the lines of /proc/cpuinfo that count processors; they are the
// same but for these on all CPUs of most machines.
var perCPU = map[string]func(n, of int) int{
	"processor": number, "core id": number, "apicid": number, "initial apicid": number,
	"physical id": func(int, int) int { return 0 },
	"siblings":    func(_, of int) int { return of }, "cpu cores": func(_, of int) int { return of },
}

func number(n, _ int) int { return n }

// cpuinfo repeats the host's first CPU, which the program can ask for its kind
// and its features itself (cpuid). What it cannot ask is left out: the
// microcode, the frequency of this moment, and which bugs the host works around.
func cpuinfo(n int) string {
	var b strings.Builder
	first := firstCPU()
	for i := range n {
		for _, line := range first {
			key, _, _ := strings.Cut(line, ":")
			key = strings.TrimSpace(key)
			switch key {
			case "microcode", "cpu MHz", "bugs":
				continue
			}
			if f, ok := perCPU[key]; ok {
				line = line[:strings.IndexByte(line, ':')+1] + " " + strconv.Itoa(f(i, n))
			}
			b.WriteString(line + "\n")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// firstCPU reads no more than the first CPU: the kernel asks each one for its
// frequency when its lines are read.
func firstCPU() []string {
	text := head("/proc/cpuinfo", 8<<10)
	block, _, _ := bytes.Cut(text, []byte("\n\n"))
	lines := strings.Split(strings.TrimSuffix(string(block), "\n"), "\n")
	if !strings.HasPrefix(lines[0], "processor") {
		return []string{"processor\t: 0"} // a kernel without one, or another format
	}
	return lines
}

// head reads the start of a small file, "" when it cannot.
func head(path string, limit int) []byte {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	buf := make([]byte, limit)
	n, err := unix.Read(fd, buf)
	if err != nil {
		return nil
	}
	return buf[:n]
}

// stat has the lines that say how many CPUs there are, and when the machine was
// booted: ps reckons with that, and the clocks tell it anyway.
func stat(n int) string {
	var b strings.Builder
	const zeros = " 0 0 0 0 0 0 0 0 0 0\n"
	b.WriteString("cpu " + zeros)
	for i := range n {
		b.WriteString("cpu" + strconv.Itoa(i) + zeros)
	}
	var now, up unix.Timespec
	unix.ClockGettime(unix.CLOCK_REALTIME, &now)
	unix.ClockGettime(unix.CLOCK_BOOTTIME, &up)
	fmt.Fprintf(&b, "intr 0\nctxt 0\nbtime %d\nprocesses 1\nprocs_running 1\nprocs_blocked 0\nsoftirq 0 0 0 0 0 0 0 0 0 0 0\n", (now.Nano()-up.Nano())/1e9)
	return b.String()
}

// version leaves out who built the host's kernel, where and with what. The rest
// is uname(2)'s.
func version() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "Linux version\n"
	}
	return "Linux version " + unix.ByteSliceToString(u.Release[:]) + " (sandglass) " + unix.ByteSliceToString(u.Version[:]) + "\n"
}

// cgroups is the host's list of controllers, which the JVM looks for, without
// the number of groups that the host has in each.
func cgroups() string {
	var b strings.Builder
	for line := range bytes.Lines(head("/proc/cgroups", 4<<10)) {
		f := strings.Fields(string(line))
		switch {
		case len(f) == 4 && f[0][0] != '#':
			b.WriteString(f[0] + "\t" + f[1] + "\t1\t" + f[3] + "\n")
		case len(f) > 0:
			b.Write(line)
		}
	}
	return b.String()
}
