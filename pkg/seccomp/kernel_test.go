package seccomp

import (
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandglass/internal/sys"
	"sandglass/pkg/seccomp/bpfvm"
	"sandglass/pkg/seccomp/sysnum"
)

// A filter cannot be taken off, so what needs one runs in this very binary
// started anew, with the name of the job in helperEnv.
const helperEnv = "SECCOMP_TEST_HELPER"

func TestMain(m *testing.M) {
	switch os.Getenv(helperEnv) {
	case "":
		os.Exit(m.Run())
	case "call":
		helperCall(os.Args[1:])
	case "refused":
		helperRefused()
	case "exec":
		helperExec(os.Args[1:])
	case "waiting":
		helperWaiting()
	}
}

// helper runs the job under the built-in filter.
func helper(job string, args ...string) (string, error) {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), helperEnv+"="+job)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func install() []bpfvm.Insn {
	runtime.LockOSThread()
	f, err := Load("default")
	if err == nil {
		err = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	}
	if err == nil {
		err = sys.SeccompAllThreads(f.BPF)
	}
	if err != nil {
		fmt.Println("install:", err)
		os.Exit(3)
	}
	prog, _ := bpfvm.Decode(f.BPF)
	return prog
}

// helperCall makes one call, by name or number, and prints its errno.
func helperCall(args []string) {
	var nums [7]uintptr
	for i, a := range args {
		n, err := strconv.ParseUint(a, 0, 64)
		if call, ok := sysnum.Number(runtime.GOARCH, a); ok {
			n, err = uint64(call), nil
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(3)
		}
		nums[i] = uintptr(n)
	}
	install()
	_, _, errno := unix.RawSyscall6(nums[0], nums[1], nums[2], nums[3], nums[4], nums[5], nums[6])
	fmt.Println(errnoName(errno))
}

func errnoName(errno unix.Errno) string {
	if errno == 0 {
		return "success"
	}
	return unix.ErrnoName(errno)
}

func TestKernelRefuses(t *testing.T) {
	at := strconv.FormatUint(uint64(^uint32(99)), 10) // AT_FDCWD as a 32-bit number
	cases := []struct{ call, want string }{
		{"getpid", "success"},
		{"unshare 0x10000000", "EPERM"},
		{"unshare 0", "EPERM"},
		{"setns 0 0", "EPERM"},
		{"clone 0x10000011", "EPERM"},
		{"clone3 0 0", "ENOSYS"},
		{"openat2 " + at + " 0 0 0", "ENOSYS"},
		{"io_uring_setup 1 0", "ENOSYS"},
		{"io_setup 1 0", "ENOSYS"},
		{"mount 0 0 0 0 0", "EPERM"},
		{"fsopen 0 0", "EPERM"},
		{"open_tree_attr 0 0 0 0 0", "EPERM"},
		{"ptrace 0 0 0 0", "EPERM"},
		{"bpf 0 0 0", "EPERM"},
		{"keyctl 0 0 0", "EPERM"},
		{"userfaultfd 0", "EPERM"},
		{"sync", "EPERM"},
		{"0xfffe", "ENOSYS"},
		{"ioctl 0 0x5412 0", "EPERM"},
		{"ioctl 0 0x100005412 0", "EPERM"},
		{"ioctl 0 0xffffffff00005412 0", "EPERM"},
		{"ioctl 0 0x541c 0", "EPERM"},
		{"ioctl 999 0x5401 0", "EBADF"},
		{"ioctl 999 0x40086602 0", "ENOTTY"},
		{"ioctl 999 0x100000001 0", "ENOTTY"},
		{"ioctl 999 0x40049409 0", "ENOTSUP"},
		{"setsockopt 999 1 2 0 0", "EBADF"},
		{"setsockopt 999 6 14 0 0", "ENOPROTOOPT"},
		{"setsockopt 999 41 0x100000014 0 0", "ENODEV"},
		{"fadvise64 999 0 0 4", "success"},
		{"fadvise64 999 0 0 3", "EBADF"},
		{"preadv2 999 0 0 0 0 8", "ENOTSUP"},
		{"preadv2 999 0 0 0 0 0", "EBADF"},
		{"cachestat 999 0 0 0", "ENOSYS"},
		{"socket 40 1 0", "EAFNOSUPPORT"},
		{"socket 38 5 0", "EAFNOSUPPORT"},
		{"socket 17 3 0", "EAFNOSUPPORT"},
		{"socket 2 3 1", "EPERM"},
		{"socket 2 0x80003 255", "EPERM"},
		{"socket 2 1 262", "EPROTONOSUPPORT"},
		{"socket 2 0x80801 6", "success"},
		{"socket 0xffffffff00000002 2 17", "success"},
		{"socket 16 0x80003 0", "EAFNOSUPPORT"},
		{"socket 16 3 9", "EAFNOSUPPORT"},
		{"prctl 62 0 0 0 0", "EPERM"},
		{"prctl 3", "success"},
		{"prlimit64 1 7 0 0", "EPERM"},
		{"prlimit64 0 7 0 0", "success"},
		{"mmap 0 0x200000 3 0x40022 0xffffffff 0", "ENOMEM"},
		{"memfd_create 0 4", "EINVAL"},
		{"personality 0x400000", "EPERM"},
		{"personality 0xffffffff", "success"},
		{"seccomp 1 8 0", "EPERM"},
		{"fchmod 999 0600", "EBADF"},
		{"fchmod 999 04600", "EPERM"},
		{"fchmod 999 02600", "EPERM"},
		{"fchmod 999 0xf00000180", "EBADF"},
		{"fchmodat " + at + " 0 04755", "EPERM"},
		{"fchmodat2 " + at + " 0 02755 0", "EPERM"},
		{"openat " + at + " 0 0 04755", "EFAULT"},
		{"openat " + at + " 0 0x41 04755", "EPERM"},
		{"openat " + at + " 0 0x410001 04755", "EPERM"},
		{"openat " + at + " 0 0x41 0755", "EFAULT"},
		{"mknodat " + at + " 0 020666 0x103", "EPERM"},
		{"mknodat " + at + " 0 060666 0x103", "EPERM"},
		{"mknodat " + at + " 0 0104755 0", "EPERM"},
		{"mknodat " + at + " 0 010644 0", "EFAULT"},
	}
	for _, c := range cases {
		out, err := helper("call", strings.Fields(c.call)...)
		if err != nil || out != c.want {
			t.Errorf("%s: got %s, %v, want %s", c.call, out, err, c.want)
		}
	}
}

func TestKernelKillsX32(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("SKIP(want amd64)")
	}
	_, err := helper("call", "0x40000027")
	if err == nil || err.Error() != "signal: bad system call (core dumped)" && err.Error() != "signal: bad system call" {
		t.Errorf("x32 getpid: got %v, want death by SIGSYS", err)
	}
}

// helperRefused makes every call that the filter answers with an errno when all
// arguments are zero, and prints those that the kernel answers otherwise.
func helperRefused() {
	prog := install()
	made := 0
	for nr := range uint32(600) {
		ret, err := bpfvm.Run(prog, &bpfvm.Data{Nr: nr, Arch: arches[runtime.GOARCH].token})
		if err != nil || ret&retActionFull != 0x00050000 {
			continue
		}
		made++
		_, _, errno := unix.RawSyscall6(uintptr(nr), 0, 0, 0, 0, 0, 0)
		if uint32(errno) != ret&0xffff {
			fmt.Printf("%d: kernel %d, interpreter %d\n", nr, errno, ret&0xffff)
		}
	}
	fmt.Println("made", made)
}

func TestKernelAgreesWithTheInterpreter(t *testing.T) {
	out, err := helper("refused")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	made, ok := strings.CutPrefix(out, "made ")
	if n, _ := strconv.Atoi(made); !ok || n < 200 {
		t.Errorf("want 'made' and more than 200 calls, got:\n%s", out)
	}
}

// helperExec replaces itself by a program, under the filter.
func helperExec(args []string) {
	path, err := exec.LookPath(args[0])
	if err != nil {
		fmt.Println(err)
		os.Exit(3)
	}
	install()
	os.Unsetenv(helperEnv)
	fmt.Println(unix.Exec(path, args, os.Environ()))
}

// TestInterpreters: what people run works, with threads, children, sockets and
// files.
func TestInterpreters(t *testing.T) {
	for _, c := range []struct {
		name string
		argv []string
		want string
	}{
		{"sh", []string{"sh", "-c", "d=$(mktemp -d) && echo hi >$d/f && chmod 600 $d/f && test -w $d/f && cat $d/f | tr h H; rm -r $d"}, "Hi"},
		{"python3", []string{"python3", "-c", pythonProgram}, "ok"},
		{"node", []string{"node", "-e", nodeProgram}, "ok"},
		{"perl", []string{"perl", "-e", `print fork() ? do { wait; "ok" } : exit`}, "ok"},
		{"go", []string{"go", "version"}, runtime.Version()},
		{"java", []string{"java", "-version"}, "version"},
	} {
		if _, err := exec.LookPath(c.argv[0]); err != nil {
			t.Logf("SKIP(want %s)", c.argv[0])
			continue
		}
		out, err := helper("exec", c.argv...)
		if err != nil || !strings.Contains(out, c.want) {
			t.Errorf("%s: got %q, %v", c.name, out, err)
		}
	}
}

const pythonProgram = `
import asyncio, multiprocessing, os, socket, subprocess, sys, tempfile, threading
def square(n): return n * n
async def child():
    p = await asyncio.create_subprocess_exec(sys.executable, "-c", "print(5)", stdout=-1)
    return (await p.communicate())[0].strip()
if __name__ == "__main__":
    t = [threading.Thread(target=square, args=(i,)) for i in range(8)]
    [x.start() for x in t]; [x.join() for x in t]
    assert asyncio.run(child()) == b"5"
    with multiprocessing.get_context("fork").Pool(2) as p: assert p.map(square, [3]) == [9]
    a, b = socket.socketpair(); a.send(b"x"); assert b.recv(1) == b"x"
    s = socket.create_server(("127.0.0.1", 0)); c = socket.create_connection(s.getsockname())
    s.accept()[0].send(b"y"); assert c.recv(1) == b"y"
    assert socket.if_nametoindex("lo") == 1 and socket.getaddrinfo("localhost", 1)
    os.posix_fadvise(os.open("/etc/passwd", os.O_RDONLY), 0, 0, os.POSIX_FADV_DONTNEED)
    with tempfile.TemporaryDirectory() as d:
        os.mkfifo(d + "/p"); open(d + "/f", "w").close(); os.chmod(d + "/f", 0o640)
        try: os.chmod(d + "/f", 0o4755); raise SystemExit("set-uid")
        except PermissionError: pass
    assert subprocess.run(["true"]).returncode == 0
    os.sync()
    print("ok")
`

const nodeProgram = `
const fs = require('fs'), os = require('os'), path = require('path'), cp = require('child_process'), net = require('net');
(async () => {
  const d = await fs.promises.mkdtemp(path.join(os.tmpdir(), 'n-'));
  await fs.promises.writeFile(path.join(d, 'f'), 'v');
  await fs.promises.rm(d, { recursive: true });
  os.cpus();
  if (String(cp.execFileSync('/bin/sh', ['-c', 'echo hi'])) !== 'hi\n') throw 1;
  const { Worker } = require('worker_threads');
  await new Promise(r => new Worker('0', { eval: true }).on('exit', r));
  await new Promise(r => { const s = net.createServer(c => c.end()).listen(0, '127.0.0.1', () => net.connect(s.address().port).on('close', () => s.close(r)).resume()); });
  console.log('ok');
})();
`

// BenchmarkInstall is the kernel's work: check, copy, compile, and try each
// call number. Every iteration needs a process of its own, so it measures
// inside one: the kernel lets a filter be stacked some dozen times.
func BenchmarkInstall(b *testing.B) {
	f, err := Load("default")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(len(f.BPF)/bpfvm.InsnSize), "insns")
	for b.Loop() {
		done := make(chan error)
		go func() {
			// The thread ends with the goroutine, since it is not unlocked.
			runtime.LockOSThread()
			if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
				done <- err
				return
			}
			done <- installThread(f.BPF)
		}()
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
}

func installThread(bpf []byte) error {
	prog, err := bpfvm.Decode(bpf)
	if err != nil {
		return err
	}
	filter := make([]unix.SockFilter, len(prog))
	for i, in := range prog {
		filter[i] = unix.SockFilter{Code: in.Code, Jt: in.JT, Jf: in.JF, K: in.K}
	}
	fprog := &unix.SockFprog{Len: uint16(len(prog)), Filter: &filter[0]}
	// reflect instead of unsafe, which only internal/sys may import.
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, reflect.ValueOf(fprog).Pointer())
	runtime.KeepAlive(fprog)
	if errno != 0 {
		return errno
	}
	return nil
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		if _, err := Load("default"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkValidate(b *testing.B) {
	f, err := Load("default")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := Validate(f.BPF); err != nil {
			b.Fatal(err)
		}
	}
}
