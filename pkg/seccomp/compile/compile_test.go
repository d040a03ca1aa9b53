package compile

import (
	"testing"

	"sandglass/pkg/seccomp/bpfvm"
	"sandglass/pkg/seccomp/edges"
	"sandglass/pkg/seccomp/profile"
	"sandglass/pkg/seccomp/sysnum"
	profiles "sandglass/seccomp-profiles"
)

// returns is a program that answers value whatever the call.
func returns(value uint32) []bpfvm.Insn { return []bpfvm.Insn{{Code: bpfvm.RetK, K: value}} }

// TestGlueSelects: for any set of numbers, each goes to its program, and the
// rest, and what lies between, to the first.
func TestGlueSelects(t *testing.T) {
	const token = 0xc000003e
	for size := range 60 {
		targets := map[uint32]int{}
		for i := range size {
			targets[uint32(7*i+1)] = 1 + i%5
		}
		programs := [][]bpfvm.Insn{returns(100), returns(101), returns(102), returns(103), returns(104), returns(105)}
		programs[3] = append([]bpfvm.Insn{{Code: bpfvm.Ja, K: 300}}, make([]bpfvm.Insn, 300)...) // a long one
		programs[3] = append(programs[3], returns(103)...)
		prog, err := Glue(token, targets, programs)
		if err != nil {
			t.Fatal(err)
		}
		if err := bpfvm.Check(prog); err != nil {
			t.Fatalf("%d numbers: %v", size, err)
		}
		for nr := range uint32(7*size + 10) {
			want := uint32(100 + targets[nr])
			if got, err := bpfvm.Run(prog, &bpfvm.Data{Nr: nr, Arch: token}); err != nil || got != want {
				t.Errorf("%d numbers, call %d: got %d, %v, want %d", size, nr, got, err, want)
			}
			if got, err := bpfvm.Run(prog, &bpfvm.Data{Nr: nr, Arch: token + 1}); err != nil || got != 0x80000000 {
				t.Errorf("%d numbers, call %d, foreign: got %#x, %v", size, nr, got, err)
			}
		}
	}
}

// TestTooManyRanges: what does not fit is an error and no wrong jump.
func TestTooManyRanges(t *testing.T) {
	targets, programs := map[uint32]int{}, [][]bpfvm.Insn{returns(100)}
	for i := range 400 {
		targets[uint32(2*i+1)] = 1 + i
		programs = append(programs, returns(uint32(101+i)))
	}
	if _, err := Glue(0xc000003e, targets, programs); err != errRanges {
		t.Errorf("got %v, want %v", err, errRanges)
	}
}

// TestMeansWhatTheProfileSays: the filters made here mean what the shipped
// profiles say, for either architecture. Filter itself tries that: here it is
// tried from outside, and with the interpreter alone.
func TestMeansWhatTheProfileSays(t *testing.T) {
	for _, name := range profiles.Names() {
		p, err := profile.Parse([]byte(profiles.Source(name)))
		if err != nil {
			t.Fatal(err)
		}
		for _, arch := range p.Arches {
			raw, err := Filter(p, arch)
			if err != nil {
				t.Fatalf("%s, %s: %v", name, arch, err)
			}
			prog, err := bpfvm.Decode(raw)
			if err != nil {
				t.Fatal(err)
			}
			for nr := range uint32(601) {
				for _, args := range edges.Calls(p, arch, nr) {
					want := p.Decide(arch, nr, args).Return()
					if got, err := bpfvm.Run(prog, &bpfvm.Data{Nr: nr, Arch: sysnum.AuditArch(arch), Args: args}); err != nil || got != want {
						call, _ := sysnum.Name(arch, nr)
						t.Fatalf("%s, %s: %s %#x: got %#x, %v, want %#x", name, arch, call, args, got, err, want)
					}
				}
			}
			t.Logf("%s, %s: %d instructions", name, arch, len(prog))
		}
	}
}

// TestEveryOperator: each compares all 64 bits.
func TestEveryOperator(t *testing.T) {
	words := map[string]string{}
	for _, op := range []string{"NE", "LT", "LE", "EQ", "GE", "GT"} {
		for _, value := range []string{"0", "5", "4294967295", "4294967296", "4294967301", "18446744073709551615"} {
			words[op+" "+value] = `{"index": 3, "op": "SCMP_CMP_` + op + `", "value": ` + value + `}`
		}
	}
	words["masked low"] = `{"index": 3, "op": "SCMP_CMP_MASKED_EQ", "value": 255, "valueTwo": 5}`
	words["masked high"] = `{"index": 3, "op": "SCMP_CMP_MASKED_EQ", "value": 1095216660480, "valueTwo": 21474836480}`
	words["masked nothing"] = `{"index": 3, "op": "SCMP_CMP_MASKED_EQ", "value": 0, "valueTwo": 0}`
	for what, arg := range words {
		p, err := profile.Parse([]byte(`{"defaultAction": "SCMP_ACT_KILL_PROCESS", "architectures": ["SCMP_ARCH_X86_64"], "syscalls": [
			{"names": ["write", "execve", "exit_group"], "action": "SCMP_ACT_ALLOW"},
			{"names": ["read"], "action": "SCMP_ACT_ERRNO", "errnoRet": 7, "args": [` + arg + `, {"index": 0, "op": "SCMP_CMP_EQ", "value": 1}],
			 "otherwise": {"action": "SCMP_ACT_LOG"}}]}`))
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		raw, err := Filter(p, "amd64")
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		prog, _ := bpfvm.Decode(raw)
		for _, high := range []uint64{0, 1, 4, 5, 6, 1 << 31, 1<<32 - 1} {
			for _, low := range []uint64{0, 1, 4, 5, 6, 1 << 31, 1<<32 - 1} {
				for _, first := range []uint64{0, 1, 1 << 32} {
					args := [6]uint64{first, 9, 9, high<<32 | low, 9, 9}
					want := p.Decide("amd64", 0, args).Return()
					if got, err := bpfvm.Run(prog, &bpfvm.Data{Nr: 0, Arch: sysnum.AuditArch("amd64"), Args: args}); err != nil || got != want {
						t.Errorf("%s: %#x: got %#x, %v, want %#x", what, args, got, err, want)
					}
				}
			}
		}
	}
}

func TestFilterRefuses(t *testing.T) {
	p, err := profile.Parse([]byte(profiles.Source("minimal")))
	if err != nil {
		t.Fatal(err)
	}
	p.Arches = p.Arches[:1]
	if _, err := Filter(p, "arm64"); err == nil || err.Error() != "profile: architectures does not list arm64" {
		t.Errorf("got %v", err)
	}
}

// TestCheckNotices: a filter that means something else is no filter.
func TestCheckNotices(t *testing.T) {
	p, err := profile.Parse([]byte(profiles.Source("minimal")))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := Filter(p, "amd64")
	if err != nil {
		t.Fatal(err)
	}
	prog, _ := bpfvm.Decode(raw)
	for i, in := range prog {
		if in.Code != bpfvm.RetK {
			continue
		}
		changed := append([]bpfvm.Insn{}, prog...)
		changed[i].K = 0x00050063
		if check(p, "amd64", changed) == nil {
			t.Errorf("the change of instruction %d is not noticed", i)
		}
	}
}
