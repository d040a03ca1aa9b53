package leftovers

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sandglass/pkg/seccomp/sysnum"
)

// order is what a traced run is to meet. The zero value only records.
type order struct {
	Key   string // the call, see tracer.key
	N     int    // which of the calls with this key, from 1
	Errno int    // it fails with this, and is not made
	Kill  string // instead: SIGKILL for "supervisor", or "all", for init as well
	UID   int
	Args  []string // of the binary
}

// role is whose calls the order looks at, "" for everybody's.
func (o *order) role() string { role, _, _ := strings.Cut(o.Key, " "); return role }

// traced is what became of it, written to descriptor 4.
type traced struct {
	Calls      []string // in the order of their begin
	Hit        bool
	Supervisor int
}

func init() { trace = traceMain }

// traceMain is the tracer: a process of its own, because it waits for every
// child that it has.
func traceMain(text string) {
	os.Unsetenv(envTrace)
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		panic(err)
	}
	runtime.LockOSThread() // a tracer is a thread
	tr := &tracer{order: o, threads: map[int]*thread{}, roles: map[int]string{}, count: map[string]int{}}
	status := tr.run()
	raw, err := json.Marshal(tr.traced)
	if err != nil {
		panic(err)
	}
	if _, err := os.NewFile(4, "report").Write(raw); err != nil {
		panic(err)
	}
	if status.Signaled() {
		os.Exit(128 + int(status.Signal()))
	}
	os.Exit(status.ExitStatus())
}

// thread is one that is traced.
type thread struct {
	role   string // of its process
	inside bool   // between a call's begin and its end
	fail   bool   // this call fails at its end
	parked bool   // of its stop and its parent's event, which says what it is, only one has come
	early  bool   // the stop was first
}

// Roles: the supervisor, the process that holds an id mapping, init's process
// before its execve, init, and the program's process before its execve.
const (
	supervisor = "supervisor"
	holder     = "holder"
	clone      = "clone"
	initRole   = "init"
	child      = "child"
)

type tracer struct {
	order
	traced
	threads map[int]*thread
	roles   map[int]string // of processes
	count   map[string]int
	initPID int
}

const options = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK |
	unix.PTRACE_O_TRACEEXEC | unix.PTRACE_O_EXITKILL

func (tr *tracer) run() (status unix.WaitStatus) {
	cmd := exec.Command(tr.Args[0], tr.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{os.NewFile(3, "result")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if tr.UID != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(tr.UID), Gid: uint32(tr.UID)}
	}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	pid := cmd.Process.Pid
	tr.Supervisor = pid
	tr.threads[pid] = &thread{role: supervisor}
	first := true
	for {
		var ws unix.WaitStatus
		tid, err := unix.Wait4(-1, &ws, unix.WALL, nil)
		if err == unix.EINTR {
			continue
		}
		if err == unix.ECHILD {
			return status
		}
		if err != nil {
			panic(err)
		}
		if ws.Exited() || ws.Signaled() {
			if tid == pid {
				status = ws
			}
			delete(tr.threads, tid)
			continue
		}
		if first {
			first = false
			if err := unix.PtraceSetOptions(pid, options); err != nil {
				panic(err)
			}
			tr.resume(tid, 0)
			continue
		}
		tr.stopped(tid, ws)
	}
}

func (tr *tracer) stopped(tid int, ws unix.WaitStatus) {
	th := tr.threads[tid]
	switch sig := ws.StopSignal(); {
	case th == nil: // a new one, before its parent's event
		tr.threads[tid] = &thread{parked: true, early: true}
		tr.orphans()
	case th.parked: // its SIGSTOP, after it
		th.parked = false
		tr.resume(tid, 0)
	case sig == unix.SIGTRAP|0x80:
		tr.call(tid, th)
		tr.resume(tid, 0)
	case sig == unix.SIGTRAP && ws.TrapCause() > 0:
		tr.event(tid, th, ws.TrapCause())
	default:
		tr.resume(tid, int(sig))
	}
}

func (tr *tracer) event(tid int, th *thread, cause int) {
	if cause == unix.PTRACE_EVENT_EXEC {
		switch th.role {
		case clone:
			th.role = initRole
		case child:
			// From here on it is the program. It is not ours.
			delete(tr.threads, tid)
			unix.PtraceDetach(tid)
			return
		}
		tr.resume(tid, 0)
		return
	}
	msg, err := unix.PtraceGetEventMsg(tid)
	if err != nil {
		return // killed meanwhile
	}
	role := th.role
	if flags := tr.cloneFlags(tid); flags&unix.CLONE_THREAD == 0 {
		switch {
		case th.role == initRole:
			role = child
		case flags&unix.CLONE_NEWPID != 0:
			role, tr.initPID = clone, int(msg)
		case flags&unix.CLONE_NEWUSER != 0:
			role = holder
		default:
			role = "unknown"
		}
	}
	if born := tr.threads[int(msg)]; born != nil {
		born.role, born.parked = role, false
		tr.resume(int(msg), 0)
	} else {
		tr.threads[int(msg)] = &thread{role: role, parked: true}
	}
	tr.resume(tid, 0)
}

// orphans lets those go whose parent was killed before its event came.
func (tr *tracer) orphans() {
	if !tr.Hit || tr.Kill == "" {
		return
	}
	for tid, th := range tr.threads {
		if th.parked && th.early {
			th.parked = false
			tr.resume(tid, 0)
		}
	}
}

// cloneFlags are those of the clone that a thread is in.
func (tr *tracer) cloneFlags(tid int) uint64 {
	var regs unix.PtraceRegs
	if unix.PtraceGetRegs(tid, &regs) != nil {
		return 0
	}
	if name, _ := sysnum.Name("amd64", uint32(regs.Orig_rax)); name == "clone3" {
		return tr.word(tid, regs.Rdi)
	}
	return regs.Rdi
}

// resume goes on. Others' calls are not looked at, nor are any once the order
// is carried out: each look costs two switches.
func (tr *tracer) resume(tid, sig int) {
	th := tr.threads[tid]
	if role := tr.role(); th.fail || !tr.Hit && (role == "" || role == th.role) {
		unix.PtraceSyscall(tid, sig)
		return
	}
	th.inside = false
	unix.PtraceCont(tid, sig)
}

// call is the begin or the end of one.
func (tr *tracer) call(tid int, th *thread) {
	var regs unix.PtraceRegs
	if unix.PtraceGetRegs(tid, &regs) != nil {
		return
	}
	// At the begin the register of the result has ENOSYS.
	if th.inside || int64(regs.Rax) != -int64(unix.ENOSYS) {
		th.inside = false
		if th.fail {
			th.fail = false
			regs.Rax = uint64(-int64(tr.Errno))
			unix.PtraceSetRegs(tid, &regs)
		}
		return
	}
	th.inside = true
	name, _ := sysnum.Name("amd64", uint32(regs.Orig_rax))
	if tr.Hit || tr.ofTheRuntime(tid, th, name, &regs) {
		return
	}
	key := tr.key(tid, th, name, &regs)
	if strings.HasSuffix(key, "[eventfd]") || strings.Contains(key, "OTHER") {
		return // wakes a thread of the runtime's, or looks at another supervisor's group
	}
	tr.Calls = append(tr.Calls, key)
	tr.count[key]++
	if key != tr.Key || tr.count[key] != tr.N {
		return
	}
	tr.Hit = true
	if tr.Kill != "" {
		if tr.Kill == "all" && tr.initPID > 0 {
			unix.Kill(tr.initPID, unix.SIGKILL)
		}
		unix.Kill(tr.Supervisor, unix.SIGKILL)
		tr.orphans()
		return
	}
	th.fail = true
	regs.Orig_rax = ^uint64(0) // no such call: it is not made
	unix.PtraceSetRegs(tid, &regs)
}

// runtimeCalls are Go's own, for its memory, threads and timers. When they fail
// it ends the process; nothing of ours decides then. And calls that cannot fail.
var runtimeCalls = map[string]bool{}

func init() {
	for name := range strings.FieldsSeq(`futex nanosleep clock_nanosleep epoll_create1 epoll_ctl epoll_wait epoll_pwait eventfd2 sched_yield
		mmap munmap madvise mincore mprotect brk sigaltstack rt_sigreturn gettid getpid exit exit_group restart_syscall clock_gettime
		sched_getaffinity arch_prctl set_tid_address set_robust_list rseq timer_create timer_settime timer_delete tgkill close getrandom
		getuid geteuid getgid getegid getppid umask uname getcwd`) {
		runtimeCalls[name] = true
	}
}

func (tr *tracer) ofTheRuntime(tid int, th *thread, name string, regs *unix.PtraceRegs) bool {
	raw := th.role == clone || th.role == child || th.role == holder // no runtime there
	switch {
	case name == "close" || name == "exit_group":
		return true // a failed close has closed; an exit does not fail
	case raw:
		return false
	case name == "clone" || name == "clone3":
		return tr.cloneFlags(tid)&unix.CLONE_THREAD != 0
	case name == "rt_sigprocmask" || name == "rt_sigaction" && th.role == supervisor:
		return true
	case name == "fcntl" && (regs.Rsi == unix.F_GETFL || regs.Rsi == unix.F_GETFD), name == "prctl" && regs.Rdi == unix.PR_SET_VMA, name == "prlimit64" && th.role != child:
		return true // os.NewFile asks; package os raises the number of files
	}
	return runtimeCalls[name]
}

// kinds says what to show of a call's six arguments: p a path, f a descriptor's
// file, d a directory's descriptor before a path, x a number, - nothing.
var kinds = map[string]string{
	"openat": "-p", "openat2": "-p", "newfstatat": "-p", "faccessat": "-p", "faccessat2": "-p", "readlinkat": "-p", "mkdirat": "-p", "unlinkat": "-p",
	"fchownat": "-p", "symlinkat": "p-p", "mknodat": "-p", "mount": "pp", "umount2": "p", "chdir": "p", "execve": "p", "statfs": "p", "stat": "p", "lstat": "p",
	"move_mount": "-p-p", "open_tree": "-p", "mount_setattr": "fp", "fsopen": "p", "fsconfig": "fxp", "fsmount": "f", "access": "p", "mkdir": "p", "rmdir": "p",
	"pivot_root": "pp", "memfd_create": "p", "readlink": "p",
	"read": "f", "write": "f", "pread64": "f", "pwrite64": "f", "fstat": "f", "fchmod": "f", "fchown": "f", "flock": "f", "fcntl": "fx", "getdents64": "f",
	"sendmsg": "f", "recvmsg": "f", "dup3": "-x", "fchdir": "f", "fstatfs": "f", "ftruncate": "f", "landlock_add_rule": "-x", "renameat": "-p-p",
	"prctl": "x", "clone": "x", "socket": "xx", "unshare": "x", "seccomp": "x",
	"ioctl": "fx", "pidfd_send_signal": "-x",
}

var (
	ids     = regexp.MustCompile(`sandglass-(\d+)-\d+-[0-9a-z]+`)
	alike   = regexp.MustCompile(`^(/etc/|proc/|max_|/proc/sys/user/|/nix/|/gnu/|/etc$|/dev/[^n]|/home/|/opt/sandglass|/lib).*`)
	temps   = regexp.MustCompile(`\.sandglass-[0-9a-f]{16}`)
	numbers = regexp.MustCompile(`\d+`)
)

// key names a call by what it is about, the same in every run.
func (tr *tracer) key(tid int, th *thread, name string, regs *unix.PtraceRegs) string {
	key := th.role + " " + name
	for i, arg := range [6]uint64{regs.Rdi, regs.Rsi, regs.Rdx, regs.R10, regs.R8, regs.R9} {
		if i >= len(kinds[name]) {
			break
		}
		switch kinds[name][i] {
		case 'p':
			key += " " + tr.plain(th, tr.text(tid, arg))
		case 'f':
			to, _ := os.Readlink(filepath.Join("/proc", strconv.Itoa(tid), "fd", strconv.Itoa(int(int32(arg)))))
			key += " " + tr.plain(th, to)
		case 'x':
			key += fmt.Sprintf(" %#x", arg)
		}
	}
	return key
}

// plain leaves out what differs between runs, and takes names that are all
// handled alike for one.
func (tr *tracer) plain(th *thread, path string) string {
	if m := ids.FindStringSubmatch(path); m != nil && m[1] != strconv.Itoa(tr.Supervisor) {
		return "OTHER"
	}
	path = withoutOwnGroup(path)
	path = temps.ReplaceAllString(ids.ReplaceAllString(path, "sandglass-ID"), ".sandglass-TEMP")
	path = alike.ReplaceAllString(path, "${1}ANY")
	if path != "" && !strings.HasPrefix(path, "/") && !strings.ContainsAny(path, ".:") && th.role == initRole {
		path = "NAME" // in a directory of the root that is being built
	}
	if strings.HasPrefix(path, "/proc/") || strings.Contains(path, ":[") || strings.HasPrefix(path, "/tmp/") {
		path = numbers.ReplaceAllString(path, "N")
	}
	return path
}

// withoutOwnGroup is a path below the caller's own control group as if that were
// the top one, which it is on most machines.
func withoutOwnGroup(path string) string {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil || !strings.HasPrefix(path, "/sys/fs/cgroup/") {
		return path
	}
	for line := range strings.Lines(string(text)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 || f[2] == "/" {
			continue
		}
		top := strings.TrimSuffix("/sys/fs/cgroup/"+f[1], "/")
		if rest, ok := strings.CutPrefix(path, top+f[2]); ok && (rest == "" || rest[0] == '/') {
			return top + rest
		}
	}
	return path
}

// text is the string at an address of the thread's.
func (tr *tracer) text(tid int, at uint64) string {
	if at == 0 {
		return "NULL"
	}
	var all []byte
	for len(all) < 256 {
		// Not over the end of a page, behind which there may be nothing.
		n := min(64, 4096-int((at+uint64(len(all)))%4096))
		buf := make([]byte, n)
		got, err := unix.PtracePeekData(tid, uintptr(at)+uintptr(len(all)), buf)
		if err != nil || got == 0 {
			break
		}
		if i := strings.IndexByte(string(buf[:got]), 0); i >= 0 {
			return string(append(all, buf[:i]...))
		}
		all = append(all, buf[:got]...)
	}
	return string(all)
}

func (tr *tracer) word(tid int, at uint64) uint64 {
	buf := make([]byte, 8)
	unix.PtracePeekData(tid, uintptr(at), buf)
	var n uint64
	for i := range buf {
		n |= uint64(buf[i]) << (8 * i)
	}
	return n
}
