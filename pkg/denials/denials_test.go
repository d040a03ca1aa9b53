package denials

import (
	"bufio"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"sandglass/internal/sys"
	"sandglass/pkg/result"
	"sandglass/pkg/seccomp"
	"sandglass/pkg/seccomp/bpfvm"
	"sandglass/pkg/seccomp/sysnum"

	"golang.org/x/sys/unix"
)

// A filter cannot be taken off, so what needs one runs in this binary anew.
const helperEnv = "DENIALS_TEST_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) != "" {
		helper()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func load(t testing.TB, name string) seccomp.Filter {
	t.Helper()
	f, err := seccomp.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestAskingAllowsNoMore: for every call, what asks allows only what the base
// allows, asks where the base refuses, and answers the same anywhere else.
func TestAskingAllowsNoMore(t *testing.T) {
	for _, name := range seccomp.Names() {
		f := load(t, name)
		w, err := New(f.BPF)
		if err != nil {
			t.Fatal(err)
		}
		asking, err := bpfvm.Decode(w.Filter())
		if err != nil {
			t.Fatal(err)
		}
		if err := bpfvm.Check(asking); err != nil {
			t.Fatal(err)
		}
		asked := 0
		for _, arch := range []uint32{auditArch(), 0x40000003, 0} {
			for nr := range uint32(1 << 11) {
				for _, v := range []uint64{0, 1, 2, 3, 0x10000000, 0x5412, 0x40000, 04755, 1 << 32, ^uint64(0)} {
					d := &bpfvm.Data{Nr: nr, Arch: arch, Args: [6]uint64{v, v, v, v, v, v}}
					want, _ := bpfvm.Run(w.base, d)
					if want&actionMask == retErrno && want&errnoMask != 0 || arch == auditArch() && isObserved(nr, v) {
						want = retNotify
						asked++
					}
					if got, err := bpfvm.Run(asking, d); err != nil || got != want {
						t.Fatalf("%s, call %d of %#x with %#x: got %#x, %v, want %#x", name, nr, arch, v, got, err, want)
					}
				}
			}
		}
		if asked < 10000 {
			t.Errorf("%s asks for %d of the calls only", name, asked)
		}
	}
}

// isObserved says whether a call with this value in each argument is asked about
// though it may be allowed.
func isObserved(nr uint32, v uint64) bool {
	called := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			number, ok := sysnum.Number(runtime.GOARCH, name)
			return ok && number == nr
		})
	}
	if called("open", "openat") {
		return v&(unix.O_ACCMODE|unix.O_CREAT|unix.O_TRUNC) != 0
	}
	return called("connect", "creat", "mkdir", "mkdirat", "mknod", "mknodat", "rmdir", "unlink", "unlinkat", "rename", "renameat", "renameat2",
		"link", "linkat", "symlink", "symlinkat", "truncate")
}

func TestWritable(t *testing.T) {
	w := &Watch{Writable: []string{"/tmp", "/dev/null"}}
	for path, want := range map[string]bool{
		"/tmp": true, "/tmp/a/b": true, "/dev/null": true, "/": false, "/tmpx": false, "/etc/x": false, "/dev": false,
	} {
		if got := w.writable(path); got != want {
			t.Errorf("%s: %t", path, got)
		}
	}
}

// A string is read to its end, up to the end of the memory that is there.
func TestReadString(t *testing.T) {
	page := unix.Getpagesize()
	mem, err := unix.Mmap(-1, 0, 2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mem)
	if err := unix.Mprotect(mem[page:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	at := func(text string) uintptr {
		copy(mem[page-len(text):page], text)
		return reflect.ValueOf(mem).Pointer() + uintptr(page-len(text))
	}
	for text, want := range map[string]string{
		"/etc/x\x00": "/etc/x", "\x00": "", "no end": "", "a\x00b\x00": "a",
	} {
		if got := readString(os.Getpid(), at(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	long := make([]byte, maxPath+1)
	for i := range long[:maxPath] {
		long[i] = 'x'
	}
	if got := readString(os.Getpid(), at(string(long))); got != "" {
		t.Errorf("%d bytes without an end are told", len(got))
	}
	if got := readString(os.Getpid(), 8); got != "" {
		t.Errorf("%q where there is no memory", got)
	}
}

// TestLearningAsksAboutEverything but what starts and ends the program, which the
// base decides, and what is killed, which the kernel does.
func TestLearningAsksAboutEverything(t *testing.T) {
	w, err := NewLearning(load(t, "default").BPF, func(uint32, [6]uint64, bool) {})
	if err != nil {
		t.Fatal(err)
	}
	asking, err := bpfvm.Decode(w.Filter())
	if err != nil {
		t.Fatal(err)
	}
	if err := bpfvm.Check(asking); err != nil {
		t.Fatal(err)
	}
	for _, arch := range []uint32{auditArch(), 0x40000003, 0} {
		for _, x32 := range []uint32{0, 1 << 30} {
			for nr := range uint32(1 << 10) {
				for _, v := range []uint64{0, 1, 0x10000000, 1 << 32, ^uint64(0)} {
					d := &bpfvm.Data{Nr: nr | x32, Arch: arch, Args: [6]uint64{v, v, v, v, v, v}}
					want, _ := bpfvm.Run(w.base, d)
					name, _ := sysnum.Name(runtime.GOARCH, d.Nr)
					if want != 0x80000000 && !(arch == auditArch() && slices.Contains(Unasked(), name)) {
						want = retNotify
					}
					if got, err := bpfvm.Run(asking, d); err != nil || got != want {
						t.Fatalf("call %#x of %#x with %#x: got %#x, %v, want %#x", d.Nr, arch, v, got, err, want)
					}
				}
			}
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		prog []bpfvm.Insn
		want error
	}{
		"computed": {[]bpfvm.Insn{{Code: bpfvm.LdAbs}, {Code: bpfvm.RetA}}, errComputed},
		"too long": {make([]bpfvm.Insn, bpfvm.MaxInsns), errTooLong},
	} {
		if _, err := New(bpfvm.Encode(c.prog)); err != c.want {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

func TestUnreachable(t *testing.T) {
	v4 := func(port uint16, ip ...byte) []byte {
		return append([]byte{unix.AF_INET, 0, byte(port >> 8), byte(port)}, ip...)
	}
	v6 := func(ip ...byte) []byte {
		return append([]byte{unix.AF_INET6, 0, 0, 80, 0, 0, 0, 0}, append(make([]byte, 16-len(ip)), ip...)...)
	}
	for _, c := range []struct {
		in   []byte
		want string
	}{
		{v4(443, 192, 0, 2, 1), "192.0.2.1:443"},
		{v4(80, 127, 0, 0, 1), ""},
		{v4(80, 0, 0, 0, 0), ""},
		{v4(80, 127, 0, 0), ""}, // cut short
		{v6(0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1), "[2001:db8:0:0:0:0:0:1]:80"},
		{v6(1), ""},
		{v6(), ""},
		{v6(0xff, 0xff, 127, 0, 0, 1), ""},
		{v6(0xff, 0xff, 192, 0, 2, 9), "192.0.2.9:80"},
		{[]byte{unix.AF_UNIX, 0, '/', 'x', 0, 0, 0, 0}, ""},
		{nil, ""},
	} {
		if got := unreachable(c.in); got != c.want {
			t.Errorf("%v: got %q, want %q", c.in, got, c.want)
		}
	}
}

// A listed host at a port that no rule has is told by its name.
func TestUnlisted(t *testing.T) {
	named := netip.MustParseAddr("198.18.1.1")
	w := &Watch{Ports: []uint16{53, 443}, NameOf: func(a netip.Addr) (string, bool) { return "good.example", a == named }}
	for _, c := range []struct {
		addr netip.Addr
		port uint16
		want string
	}{
		{named, 80, "good.example:80"}, {named, 443, ""}, {named, 53, ""}, {named, 0, ""},
		{netip.MustParseAddr("10.1.2.3"), 80, "as given"}, {netip.MustParseAddr("10.1.2.3"), 443, ""},
	} {
		if got := w.unlisted(c.addr, c.port, "as given"); got != c.want {
			t.Errorf("%v:%d: %q, want %q", c.addr, c.port, got, c.want)
		}
	}
}

// TestTableIsBounded: what finds no room is still counted, and rows that are
// there go on.
func TestTableIsBounded(t *testing.T) {
	var x table
	for i := range 100 {
		x.add(row{kind: "syscall", what: fmt.Sprint(i)})
	}
	for range 3 {
		x.add(row{kind: "syscall", what: "63"})
	}
	list, more := x.list()
	if len(list) != 64 || more != 36 {
		t.Fatalf("%d rows and %d more, want 64 and 36", len(list), more)
	}
	if want := (result.Denial{Kind: "syscall", What: "63", Count: 4}); list[0] != want {
		t.Errorf("the first is %+v, want %+v", list[0], want)
	}
}

// TestPace: the burst is free, and then a batch is followed by four times the
// time that it took.
func TestPace(t *testing.T) {
	var p pace
	work := func(d time.Duration) time.Duration {
		p.began = time.Now().Add(-d)
		return p.end()
	}
	for i := range burst + batch - 1 {
		if d := work(time.Second); d != 0 {
			t.Fatalf("answer %d is followed by a pause of %v", i, d)
		}
	}
	for range 3 {
		for i := range batch {
			d := work(time.Second)
			if i == 0 && d < batch*4*time.Second {
				t.Errorf("%d answers of a second each are followed by %v, want at least %v", batch, d, batch*4*time.Second)
			} else if i > 0 && d != 0 {
				t.Errorf("a pause of %v within a batch", d)
			}
		}
	}
}

// TestArguments: in words, by their low 32 bits as the kernel takes them, and
// where the profile decides by them.
func TestArguments(t *testing.T) {
	for _, c := range []struct {
		call string
		args [6]uint64
		want string
	}{
		{"ptrace", [6]uint64{1<<32 | 16, 7}, "PTRACE_ATTACH"},
		{"ptrace", [6]uint64{0x9999}, "0x9999"},
		{"socket", [6]uint64{1<<32 | 40, 0x80001, 0}, "AF_VSOCK, SOCK_STREAM, 0"},
		{"unshare", [6]uint64{0x10020000}, "CLONE_NEWNS|CLONE_NEWUSER"},
		{"clone", [6]uint64{0x11}, "0x11"},
		{"ioctl", [6]uint64{0, 1<<32 | 0x5412}, "TIOCSTI"},
		{"fcntl", [6]uint64{0, 1040}, "F_SETDELEG"},
		{"setsockopt", [6]uint64{3, 1, 26}, "1, 26"},
		{"openat", [6]uint64{0, 0, 0x41, 04755}, "04755"},
		{"openat", [6]uint64{0, 0, 0, 0}, ""},
		{"fchmod", [6]uint64{0, 0755}, ""},
		{"mknodat", [6]uint64{0, 0, 0x2180}, "020600"},
		{"keyctl", [6]uint64{11}, "0xb"},
		{"bpf", [6]uint64{5}, "0x5"},
		{"mount", [6]uint64{1, 2, 3}, ""},
	} {
		nr, ok := sysnum.Number(runtime.GOARCH, c.call)
		if !ok {
			t.Errorf("no call %s", c.call)
			continue
		}
		if got := arguments(&sys.Notification{Nr: nr, Args: c.args}); got != c.want {
			t.Errorf("%s %#x: got %q, want %q", c.call, c.args, got, c.want)
		}
	}
	if got := callName(0xfffe); got != "syscall_65534" {
		t.Errorf("an unknown call is called %q", got)
	}
}

func TestClean(t *testing.T) {
	if got := clean([]byte("a\x1b[2J\n\x7f\xc3\xa9 b")); got != "a?[2J??"+"?? b" {
		t.Errorf("got %q", got)
	}
}

// helper installs the filter of an explained run, sends its listener over
// descriptor 3, and makes a call for each byte that it reads.
func helper() {
	runtime.LockOSThread()
	f, err := seccomp.Load("default")
	must(err)
	w, err := New(f.BPF)
	must(err)
	prog, err := bpfvm.Decode(w.Filter())
	must(err)
	filter := make([]unix.SockFilter, len(prog))
	for i, in := range prog {
		filter[i] = unix.SockFilter{Code: in.Code, Jt: in.JT, Jf: in.JF, K: in.K}
	}
	fprog := &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	must(unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	fd, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER,
		reflect.ValueOf(fprog).Pointer())
	if errno != 0 {
		must(errno)
	}
	must(unix.Sendmsg(3, []byte{1}, unix.UnixRights(int(fd)), nil, 0))
	unix.Close(int(fd))
	var b [1]byte
	for {
		if n, _ := unix.Read(0, b[:]); n != 1 {
			return
		}
		_, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, 0, 0, 0, 0, 0, 0)
		fmt.Println(unix.ErrnoName(errno))
	}
}

func must(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(3)
	}
}

// TestNobodyAnswers: with a listener that answers a refused call gets the
// profile's errno and is counted; without one, as when the supervisor is gone,
// the kernel refuses it.
func TestNobodyAnswers(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[0])
	theirs := os.NewFile(uintptr(pair[1]), "socket")
	cmd := exec.Command(os.Args[0])
	// A signal of the runtime's would begin the call anew.
	cmd.Env, cmd.ExtraFiles = append(os.Environ(), helperEnv+"=1", "GODEBUG=asyncpreemptoff=1"), []*os.File{theirs}
	in, _ := cmd.StdinPipe()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(stdout)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	theirs.Close()
	oob := make([]byte, unix.CmsgSpace(4))
	if _, _, _, _, err := unix.Recvmsg(pair[0], make([]byte, 1), oob, unix.MSG_CMSG_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(msgs) != 1 {
		t.Fatalf("no listener came: %v, %v", msgs, err)
	}
	fds, err := unix.ParseUnixRights(&msgs[0])
	if err != nil {
		t.Fatal(err)
	}
	w, err := New([]byte(load(t, "default").BPF))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Start(fds[0]); err != nil {
		t.Fatal(err)
	}
	in.Write([]byte("1"))
	first, _ := out.ReadString('\n')
	w.Stop()
	w.Stop() // again is no harm
	in.Write([]byte("2"))
	in.Close()
	second, _ := io.ReadAll(out)
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if got, want := first+string(second), "EPERM\nENOSYS\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	list, more := w.Denied()
	if len(list) != 1 || more != 0 || list[0].What != "ptrace" || list[0].Args != "PTRACE_TRACEME" || list[0].Errno != "EPERM" || list[0].Count != 1 {
		t.Errorf("got %+v and %d more", list, more)
	}
}

// FuzzAnswerNames: no registers make the words panic or steer a terminal.
func FuzzAnswerNames(f *testing.F) {
	f.Add(uint32(101), uint64(0), uint64(1), uint64(2), uint64(3))
	f.Fuzz(func(t *testing.T, nr uint32, a, b, c, d uint64) {
		n := &sys.Notification{Nr: nr, Args: [6]uint64{a, b, c, d}}
		if text := callName(nr) + arguments(n); clean([]byte(text)) != text {
			t.Errorf("%q", text)
		}
	})
}
