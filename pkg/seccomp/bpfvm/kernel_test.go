package bpfvm

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const helperEnv = "BPFVM_TEST_KERNEL"

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) != "" {
		compareWithKernel()
		return
	}
	os.Exit(m.Run())
}

// TestKernelAgreesWithCheck asks the running kernel about the table of Check
// and some thousand random programs. In a process of its own, which cannot
// open descriptors any more: installing with a listener then fails with EMFILE
// after the kernel has accepted the program and before it is installed.
func TestKernelAgreesWithCheck(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperEnv+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text := string(out)
	if strings.HasPrefix(text, "SKIP") {
		t.Skip(text)
	}
	if !strings.HasPrefix(text, "compared ") {
		t.Error(text)
	}
	t.Log(text)
}

func compareWithKernel() {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		fmt.Println("no_new_privs:", err)
		return
	}
	// The Go runtime opens its epoll descriptor with the first pipe or timer,
	// and dies if it cannot: let it, before the limit.
	if _, _, err := os.Pipe(); err != nil {
		fmt.Println(err)
		return
	}
	unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: 0})
	if _, err := kernelAccepts([]Insn{ret}); err != nil {
		fmt.Println("SKIP(want seccomp listeners, Linux 5.0):", err)
		return
	}
	accepted, refused := 0, 0
	compare := func(name string, prog []Insn) {
		kernel, err := kernelAccepts(prog)
		if err != nil {
			fmt.Printf("%s: kernel: %v\n", name, err)
		} else if ours := Check(prog); (ours == nil) != kernel {
			fmt.Printf("%s: kernel accepts %v, Check: %v\n%+v\n", name, kernel, ours, prog)
		}
		if kernel {
			accepted++
		} else {
			refused++
		}
	}
	for _, c := range checkCases {
		compare(c.name, c.prog)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 20000 {
		compare(fmt.Sprint("random ", i), randomProgram(rng))
	}
	for code := range 0x10000 {
		compare(fmt.Sprintf("code %#x", code), []Insn{{Code: St, K: 4}, {Code: uint16(code), K: 4}, ret, ret, ret, ret, ret})
	}
	fmt.Printf("compared %d accepted, %d refused\n", accepted, refused)
}

// randomProgram is mostly well formed, so that both verdicts come up.
func randomProgram(rng *rand.Rand) []Insn {
	codes := []uint16{LdAbs, LdLen, LdImm, LdMem, LdxLen, LdxImm, LdxMem, St, Stx, AddK, AddX, SubK, MulX, DivK, DivX,
		LshK, RshK, RshX, AndK, XorX, Neg, Ja, JeqK, JgtX, JgeK, JsetX, RetK, RetA, Tax, Txa, St, Stx, St}
	prog := make([]Insn, 2+rng.IntN(10))
	for i := range prog {
		prog[i] = Insn{
			Code: codes[rng.IntN(len(codes))],
			JT:   uint8(rng.IntN(4)), JF: uint8(rng.IntN(4)),
			K: uint32(rng.IntN(5)),
		}
		if rng.IntN(20) == 0 {
			prog[i].K = rng.Uint32() >> rng.IntN(32)
		}
	}
	prog[len(prog)-1] = ret
	return prog
}

// kernelAccepts installs nothing, see TestKernelAgreesWithCheck.
func kernelAccepts(prog []Insn) (bool, error) {
	filter := make([]unix.SockFilter, len(prog)+1)
	for i, in := range prog {
		filter[i] = unix.SockFilter{Code: in.Code, Jt: in.JT, Jf: in.JF, K: in.K}
	}
	fprog := &unix.SockFprog{Len: uint16(len(prog)), Filter: &filter[0]}
	// reflect instead of unsafe, which only internal/sys may import.
	address := reflect.ValueOf(fprog).Pointer()
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, address)
	runtime.KeepAlive(fprog)
	switch errno {
	case unix.EMFILE:
		return true, nil
	case unix.EINVAL:
		return false, nil
	}
	return false, errno
}
