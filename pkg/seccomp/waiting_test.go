package seccomp

import (
	"runtime"
	"testing"

	"sandglass/pkg/seccomp/bpfvm"

	"golang.org/x/sys/unix"
)

// TestAnd: one call more of this architecture, and no other verdict changes.
func TestAnd(t *testing.T) {
	f, err := Load(Default)
	if err != nil {
		t.Fatal(err)
	}
	before, err := bpfvm.Decode(f.BPF)
	if err != nil {
		t.Fatal(err)
	}
	bpf := And(unix.SYS_OPENAT2, f.BPF)
	if err := Validate(bpf); err != nil {
		t.Fatal(err)
	}
	after, err := bpfvm.Decode(bpf)
	if err != nil {
		t.Fatal(err)
	}
	native := arches[runtime.GOARCH].token
	for _, token := range foreign {
		for nr := range uint32(highestProbed + 1) {
			for _, n := range []uint32{nr, nr | x32Bit} {
				d := &bpfvm.Data{Nr: n, Arch: token}
				want, _ := bpfvm.Run(before, d)
				if token == native && n == unix.SYS_OPENAT2 {
					if want&retActionFull == retAllow {
						t.Error("openat2 was allowed before")
					}
					want = retAllow
				}
				if got, err := bpfvm.Run(after, d); err != nil || got != want {
					t.Fatalf("call %#x of %#x: %#x, %v; want %#x", n, token, got, err, want)
				}
			}
		}
	}
}

// TestMayWait: of the built-in filters each; not one without futex.
func TestMayWait(t *testing.T) {
	for _, name := range Names() {
		if f, err := Load(name); err != nil || !f.MayWait() {
			t.Errorf("%s: %v", name, err)
		}
	}
	f := Filter{BPF: bpfvm.Encode([]bpfvm.Insn{{Code: bpfvm.RetK, K: 0x00050001}})}
	if f.MayWait() {
		t.Error("a filter that allows nothing may wait")
	}
}
