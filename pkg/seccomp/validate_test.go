package seccomp

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandglass/internal/refusal"
	"sandglass/pkg/seccomp/bpfvm"
)

const (
	allow  = 0x7fff0000
	enosys = 0x00050026
)

// listFilter allows numbers on the architecture token, and answers the rest of
// it with other; without a token it looks at numbers only.
func listFilter(token, other uint32, numbers ...uint32) []bpfvm.Insn {
	var prog []bpfvm.Insn
	if token != 0 {
		prog = append(prog, bpfvm.Insn{Code: bpfvm.LdAbs, K: 4}, bpfvm.Insn{Code: bpfvm.JeqK, K: token, JT: 1},
			bpfvm.Insn{Code: bpfvm.RetK, K: 0x80000000})
	}
	prog = append(prog, bpfvm.Insn{Code: bpfvm.LdAbs, K: 0})
	for _, n := range numbers {
		prog = append(prog, bpfvm.Insn{Code: bpfvm.JeqK, K: n, JF: 1}, bpfvm.Insn{Code: bpfvm.RetK, K: allow})
	}
	return append(prog, bpfvm.Insn{Code: bpfvm.RetK, K: other})
}

const amd64 = 0xc000003e

func TestValidateFor(t *testing.T) {
	smallest := listFilter(amd64, enosys, 1, 59, 231)
	for _, c := range []struct {
		name, arch string
		bpf        []byte
		want       string
	}{
		{"smallest", "amd64", bpfvm.Encode(smallest), ""},
		{"smallest of arm64", "arm64", bpfvm.Encode(listFilter(0xc00000b7, enosys, 64, 94, 221)), ""},
		{"unknown architecture", "riscv64", nil, "no filters for architecture riscv64"},
		{"empty", "amd64", nil, "empty program"},
		{"truncated", "amd64", bpfvm.Encode(smallest)[:20], "20 bytes are not a whole number of 8-byte instructions"},
		{"too long", "amd64", make([]byte, 4097*8), "4097 instructions, the kernel takes at most 4096"},
		{"no return", "amd64", bpfvm.Encode(smallest[:len(smallest)-1]), "instruction 8: jump out of the program"},
		{"allow all", "amd64", bpfvm.Encode([]bpfvm.Insn{{Code: bpfvm.RetK, K: allow}}), "allows the unknown system call 0xfffe: not an allow-list"},
		{"log all", "amd64", bpfvm.Encode([]bpfvm.Insn{{Code: bpfvm.RetK, K: 0x7ffc0000}}), "allows the unknown system call 0xfffe: not an allow-list"},
		{"refuse all", "amd64", bpfvm.Encode([]bpfvm.Insn{{Code: bpfvm.RetK, K: enosys}}), "does not allow write, without which no program can be started"},
		{"deny-list", "amd64", bpfvm.Encode(listFilter(amd64, allow)), "allows the unknown system call 0xfffe: not an allow-list"},
		{"no execve", "amd64", bpfvm.Encode(listFilter(amd64, enosys, 1, 231)), "does not allow execve, without which no program can be started"},
		{"no exit_group", "amd64", bpfvm.Encode(listFilter(amd64, enosys, 1, 59)), "does not allow exit_group, without which no program can be started"},
		{"no architecture check", "amd64", bpfvm.Encode(listFilter(0, enosys, 1, 59, 231)),
			"allows system call 1 of the foreign architecture 0xc00000b7: the architecture is not checked"},
		{"the other architecture's", "arm64", bpfvm.Encode(smallest), "does not allow write, without which no program can be started"},
		{"x32", "amd64", bpfvm.Encode(listFilter(amd64, enosys, 1, 59, 231, 1<<30|39)), "allows system call 39 through x32"},
	} {
		err := ValidateFor(c.arch, c.bpf)
		if c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

func TestLoadBuiltIn(t *testing.T) {
	if got := Names(); !slices.Equal(got, []string{"default", "debug", "minimal"}) {
		t.Fatalf("names: %v", got)
	}
	for _, name := range Names() {
		f, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := Validate(f.BPF); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if f.Name != name || len(f.SHA256) != 64 {
			t.Errorf("got name %q, sum %q", f.Name, f.SHA256)
		}
		f.BPF[0]++
		if again, _ := Load(name); again.BPF[0] == f.BPF[0] {
			t.Error("callers share the built-in filter's bytes")
		}
	}
}

func TestLoadFile(t *testing.T) {
	builtIn, err := Load("default")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "my.bpf")
	if err := os.WriteFile(path, builtIn.BPF, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if f.Name != path || f.SHA256 != builtIn.SHA256 || string(f.BPF) != string(builtIn.BPF) {
		t.Errorf("got %s %s, %d bytes", f.Name, f.SHA256, len(f.BPF))
	}
}

func TestLoadRefuses(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, profile, want string }{
		{"empty name", "", `seccomp profile "" is unknown, there is: default, debug, minimal`},
		{"unknown name", "strict", `seccomp profile "strict" is unknown, there is: default, debug, minimal`},
		{"unconfined", "unconfined", "seccomp profile unconfined: every run is filtered"},
		{"source", "./my.json", "seccomp profile ./my.json: this is a source, runs take compiled filters only"},
		{"missing", dir + "/none", "seccomp profile " + dir + "/none: no such file or directory"},
		{"directory", dir + "/", "seccomp profile " + dir + "/: not a regular file"},
		{"fifo does not block", fifo, "seccomp profile " + fifo + ": not a regular file"},
		{"device", "/dev/zero", "seccomp profile /dev/zero: not a regular file"},
		{"empty", file("empty", nil), "seccomp profile " + dir + "/empty: empty program"},
		{"too long", file("long", make([]byte, 4096*8+1)), "seccomp profile " + dir + "/long: more than 4096 instructions"},
		{"allow all", file("all", bpfvm.Encode([]bpfvm.Insn{{Code: bpfvm.RetK, K: allow}})),
			"seccomp profile " + dir + "/all: allows the unknown system call 0xfffe: not an allow-list"},
	} {
		_, err := Load(c.profile)
		var bad *refusal.Error
		if !errors.As(err, &bad) || !strings.HasPrefix(bad.What, c.want) || bad.Exit != 125 {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
}

// FuzzValidate: no bytes make it panic, and what passes refuses the unknown
// call and the foreign architecture.
func FuzzValidate(f *testing.F) {
	builtIn, err := Load("default")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(builtIn.BPF)
	f.Add(bpfvm.Encode(listFilter(amd64, enosys, 1, 59, 231)))
	f.Add(bpfvm.Encode(listFilter(0, enosys, 1, 59, 231)))
	f.Add([]byte{6, 0, 0, 0, 0, 0, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, bpf []byte) {
		if Validate(bpf) != nil {
			return
		}
		prog, err := bpfvm.Decode(bpf)
		if err != nil {
			t.Fatal(err)
		}
		if allows(prog, arches["amd64"].token, 0xfffe) || allows(prog, 0x40000003, 11) {
			t.Error("accepted a filter that does not confine")
		}
	})
}
