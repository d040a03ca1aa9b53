package profiles_test

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"testing"

	"sandglass/pkg/seccomp"
	"sandglass/pkg/seccomp/bpfvm"
	"sandglass/pkg/seccomp/edges"
	"sandglass/pkg/seccomp/profile"
	"sandglass/pkg/seccomp/sysnum"
	profiles "sandglass/seccomp-profiles"
)

var auditArch = map[string]uint32{"amd64": 0xc000003e, "arm64": 0xc00000b7}

const killProcess = 0x80000000

func source(t testing.TB) *profile.Profile { return sourceOf(t, "default") }

func sourceOf(t testing.TB, name string) *profile.Profile {
	t.Helper()
	text, err := os.ReadFile(name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	p, err := profile.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func compiled(t testing.TB, arch string) []bpfvm.Insn { return compiledOf(t, "default", arch) }

func compiledOf(t testing.TB, name, arch string) []bpfvm.Insn {
	t.Helper()
	raw, err := os.ReadFile(name + "." + arch + ".bpf")
	if err != nil {
		t.Fatal(err)
	}
	if err := seccomp.ValidateFor(arch, raw); err != nil {
		t.Fatalf("%s: %v", arch, err)
	}
	prog, err := bpfvm.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	return prog
}

func verdict(t testing.TB, prog []bpfvm.Insn, token, nr uint32, args [6]uint64) uint32 {
	t.Helper()
	ret, err := bpfvm.Run(prog, &bpfvm.Data{Nr: nr, Arch: token, Args: args})
	if err != nil {
		t.Fatalf("call %d %v: %v", nr, args, err)
	}
	return ret
}

// TestEveryCallIsDecided: no call of the table is left to the default by
// oversight.
func TestEveryCallIsDecided(t *testing.T) {
	p := source(t)
	for _, name := range sysnum.Names() {
		if p.Call(name) == nil {
			t.Errorf("default.json says nothing of %s", name)
		}
	}
}

// TestFilterMeansWhatTheProfileSays runs the checked-in filters for every call
// number, with argument values on and beside the edge of every condition.
func TestFilterMeansWhatTheProfileSays(t *testing.T) {
	for _, name := range profiles.Names() {
		p := sourceOf(t, name)
		if len(p.Arches) != 2 {
			t.Errorf("%s is for %v, want amd64 and arm64", name, p.Arches)
		}
		for _, arch := range p.Arches {
			means(t, p, name, arch)
		}
	}
}

func means(t *testing.T, p *profile.Profile, profileName, arch string) {
	prog := compiledOf(t, profileName, arch)
	tried := 0
	for nr := range uint32(601) {
		for _, args := range edges.Calls(p, arch, nr) {
			tried++
			want := p.Decide(arch, nr, args)
			if got := verdict(t, prog, auditArch[arch], nr, args); got != want.Return() {
				name, _ := sysnum.Name(arch, nr)
				t.Errorf("%s, %s: %s (%d) %#x: got %#x, want %s", profileName, arch, name, nr, args, got, want)
			}
		}
	}
	for _, nr := range []uint32{0xfffe, 1<<30 - 1, 1 << 31, 0xbfffffff, 0xffffffff, 1 << 30, 1<<30 | 600, 0x7fffffff, 0xfffffffe} {
		want := p.Decide(arch, nr, [6]uint64{}).Return()
		if got := verdict(t, prog, auditArch[arch], nr, [6]uint64{}); got != want {
			t.Errorf("%s, %s: %#x: got %#x, want %#x", profileName, arch, nr, got, want)
		}
	}
	t.Logf("%s, %s: %d instructions, %d calls tried", profileName, arch, len(prog), tried)
}

// TestDebugIsTheDefaultAndTracing: nothing else opens with it.
func TestDebugIsTheDefaultAndTracing(t *testing.T) {
	p, debug := source(t), sourceOf(t, "debug")
	opened := map[string]bool{}
	for _, name := range sysnum.Names() {
		if !reflect.DeepEqual(p.Call(name), debug.Call(name)) {
			opened[name] = true
		}
	}
	want := map[string]bool{"kcmp": true, "process_vm_readv": true, "process_vm_writev": true, "ptrace": true}
	if !maps.Equal(opened, want) || debug.Default != p.Default {
		t.Errorf("differ: %v, want %v", opened, want)
	}
	for name := range want {
		call := debug.Call(name)
		if call == nil || len(call.Rules) != 1 || call.Rules[0].Action.Kind != profile.Allow || len(call.Rules[0].Args) != 0 {
			t.Errorf("%s: %+v, want it allowed", name, call)
		}
	}
}

// TestMinimalIsWithinTheDefault: no call that minimal allows is refused by the
// default profile, with the arguments on the edges of either.
func TestMinimalIsWithinTheDefault(t *testing.T) {
	p, minimal := source(t), sourceOf(t, "minimal")
	for _, arch := range p.Arches {
		for nr := range uint32(601) {
			for _, args := range slices.Concat(edges.Calls(p, arch, nr), edges.Calls(minimal, arch, nr)) {
				if minimal.Decide(arch, nr, args).Kind == profile.Allow && p.Decide(arch, nr, args).Kind != profile.Allow {
					name, _ := sysnum.Name(arch, nr)
					t.Errorf("%s: %s %#x is allowed", arch, name, args)
				}
			}
		}
	}
}

func TestX32IsKilled(t *testing.T) {
	prog := compiled(t, "amd64")
	for nr := range uint32(601) {
		if got := verdict(t, prog, auditArch["amd64"], nr|1<<30, [6]uint64{}); got != killProcess {
			t.Errorf("x32 call %d: got %#x", nr, got)
		}
	}
}

func TestForeignArchitecturesAreKilled(t *testing.T) {
	foreign := map[string]uint32{"i386": 0x40000003, "arm": 0x40000028, "riscv64": 0xc00000f3, "none": 0, "ones": 0xffffffff}
	for _, arch := range []string{"amd64", "arm64"} {
		prog := compiled(t, arch)
		tokens := map[string]uint32{"amd64": auditArch["amd64"], "arm64": auditArch["arm64"]}
		for name, token := range foreign {
			tokens[name] = token
		}
		delete(tokens, arch)
		for name, token := range tokens {
			for nr := range uint32(601) {
				if got := verdict(t, prog, token, nr, [6]uint64{}); got != killProcess {
					t.Errorf("%s filter, %s call %d: got %#x", arch, name, nr, got)
				}
			}
		}
	}
}

func TestEmbeddedFilterIsTheNativeOne(t *testing.T) {
	for _, name := range profiles.Names() {
		for _, arch := range []string{"amd64", "arm64"} {
			raw, err := os.ReadFile(name + "." + arch + ".bpf")
			if err != nil {
				t.Fatal(err)
			}
			if (seccomp.Validate(raw) == nil) != (string(raw) == profiles.Compiled(name)) {
				t.Errorf("%s, %s: embedded filter is another architecture's", name, arch)
			}
		}
		if text, err := os.ReadFile(name + ".json"); err != nil || string(text) != profiles.Source(name) {
			t.Errorf("%s: the embedded source is another: %v", name, err)
		}
	}
}

func word(ret uint32) string {
	switch {
	case ret == 0x7fff0000:
		return "allow"
	case ret == killProcess:
		return "kill"
	case ret&0xffff0000 == 0x00050000:
		return fmt.Sprint("errno ", ret&0xffff)
	}
	return fmt.Sprintf("%#x", ret)
}
