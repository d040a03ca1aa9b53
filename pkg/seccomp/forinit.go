package seccomp

import (
	"runtime"

	"sandglass/pkg/seccomp/bpfvm"

	"golang.org/x/sys/unix"
)

// More words of struct seccomp_data. The arguments have 64 bits, the low half first
// on both architectures.
const (
	dataArg0     = 16
	dataArg0High = 20
	dataArg2     = 32
)

// noCall is the number that a tracer gives to a call which is not to be made.
const noCall = 0xffffffff

const (
	retKillProcess = 0x80000000
	retNoSuchCall  = 0x00050000 | uint32(unix.ENOSYS)
)

// What init does when the program runs: it waits, tells the end, and ends. The
// rest is for Go's runtime, which may collect garbage, wake and start threads, and
// keep timers meanwhile. There is no call here that opens, makes, changes or
// executes a file, makes a socket or a process, or sees or signals another one.
var initCalls = []uint32{
	// Waiting, telling, ending.
	unix.SYS_PPOLL, unix.SYS_RECVMSG, unix.SYS_WAIT4, unix.SYS_SENDMSG, unix.SYS_CLOSE, unix.SYS_EXIT_GROUP,
	// Threads, and the runtime's locks.
	unix.SYS_FUTEX, unix.SYS_EXIT, unix.SYS_SCHED_YIELD, unix.SYS_GETTID, unix.SYS_GETPID, unix.SYS_SCHED_GETAFFINITY,
	// Signals, but for tgkill.
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK,
	// Time. The kernel itself goes on with a wait by restart_syscall, after a stop.
	unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME, unix.SYS_GETTIMEOFDAY, unix.SYS_RESTART_SYSCALL,
	// Memory, but for mmap.
	unix.SYS_MUNMAP, unix.SYS_MADVISE, unix.SYS_MINCORE, unix.SYS_GETRANDOM,
	// The runtime's poller, which timers need.
	unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2, unix.SYS_READ, unix.SYS_WRITE,
}

// goThread is clone's flags for a thread of Go's runtime, and setTLS one more on
// amd64.
const (
	goThread = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_SYSVSEM | unix.CLONE_THREAD
	setTLS   = unix.CLONE_SETTLS
)

// ForInit is the filter of an init that only waits for its program's end. Whatever
// might take it over from inside has less than the program: it can start threads
// and nothing else, and map no memory that could be executed.
//
// It is far smaller than the program's, which the kernel translates once for each of
// the two: that took a tenth of a millisecond. An unknown call is answered and not
// deadly: Go's runtime goes on without most.
func ForInit() []byte { return waiting(1) }

// waiting is ForInit for a process with that PID, which may signal its own threads:
// so they are preempted, and so it dies.
func waiting(pid uint32) []byte {
	var list []bpfvm.Insn
	add := func(code uint16, k uint32) { list = append(list, bpfvm.Insn{Code: code, K: k}) }
	// Each test is followed by its answer, which it steps over.
	unless := func(code uint16, k, answer uint32) {
		list = append(list, bpfvm.Insn{Code: code, JF: 1, K: k})
		add(bpfvm.RetK, answer)
	}
	add(bpfvm.LdAbs, dataArch)
	list = append(list, bpfvm.Insn{Code: bpfvm.JeqK, JT: 1, K: arches[runtime.GOARCH].token})
	add(bpfvm.RetK, retKillProcess)
	add(bpfvm.LdAbs, dataNr)
	unless(bpfvm.JeqK, noCall, retNoSuchCall)
	unless(bpfvm.JgeK, x32Bit, retKillProcess)
	for _, nr := range initCalls {
		unless(bpfvm.JeqK, nr, retAllow)
	}
	// These three by an argument; one that is another call goes on behind its part.
	part := func(nr uint32, insns ...bpfvm.Insn) {
		list = append(append(list, bpfvm.Insn{Code: bpfvm.JeqK, JF: uint8(len(insns)), K: nr}), insns...)
	}
	no, yes := bpfvm.Insn{Code: bpfvm.RetK, K: retNoSuchCall}, bpfvm.Insn{Code: bpfvm.RetK, K: retAllow}
	part(unix.SYS_MMAP, bpfvm.Insn{Code: bpfvm.LdAbs, K: dataArg2}, bpfvm.Insn{Code: bpfvm.JsetK, JF: 1, K: unix.PROT_EXEC}, no, yes)
	part(unix.SYS_TGKILL, bpfvm.Insn{Code: bpfvm.LdAbs, K: dataArg0}, bpfvm.Insn{Code: bpfvm.JeqK, JT: 1, K: pid}, no, yes)
	part(unix.SYS_CLONE,
		bpfvm.Insn{Code: bpfvm.LdAbs, K: dataArg0High}, bpfvm.Insn{Code: bpfvm.JeqK, JT: 1}, no,
		bpfvm.Insn{Code: bpfvm.LdAbs, K: dataArg0}, bpfvm.Insn{Code: bpfvm.JeqK, JT: 2, K: goThread},
		bpfvm.Insn{Code: bpfvm.JeqK, JT: 1, K: goThread | setTLS}, no, yes)
	list = append(list, no)
	return bpfvm.Encode(list)
}
