package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"sandglass/internal/refusal"
	"sandglass/pkg/seccomp/bpfvm"
	"sandglass/pkg/seccomp/profile"
)

// returns is a program that answers value whatever the call.
func returns(value uint32) []bpfvm.Insn { return []bpfvm.Insn{{Code: bpfvm.RetK, K: value}} }

func TestCheckSelfContained(t *testing.T) {
	const token = 0xc000003e
	head := []bpfvm.Insn{{Code: bpfvm.LdAbs, K: 4}, {Code: bpfvm.JeqK, K: token}}
	with := func(rest ...bpfvm.Insn) []bpfvm.Insn {
		return append(append([]bpfvm.Insn{}, head...), append(rest, returns(0)...)...)
	}
	for _, c := range []struct {
		name string
		prog []bpfvm.Insn
		want string
	}{
		{"right", with(bpfvm.Insn{Code: bpfvm.AndK, K: 1}), ""},
		{"invalid", with(bpfvm.Insn{Code: 0xff}), "instruction 2: code 0xff"},
		{"no architecture check", returns(0), "does not begin with the check of architecture 0xc000003e"},
		{"number first", append([]bpfvm.Insn{{Code: bpfvm.LdAbs}}, returns(0)...), "does not begin with the check"},
		{"index register", with(bpfvm.Insn{Code: bpfvm.Txa}), "instruction 2 has unexpected code 0x87"},
		{"scratch", with(bpfvm.Insn{Code: bpfvm.St}), "instruction 2 has unexpected code 0x2"},
	} {
		err := checkSelfContained(c.prog, token)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

const planned = `{"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":38,"architectures":["SCMP_ARCH_X86_64"],"syscalls":[
	{"names":["write","read","mseal"],"action":"SCMP_ACT_ALLOW"},
	{"names":["open_tree_attr"],"action":"SCMP_ACT_ERRNO","errnoRet":1},
	{"names":["listns"],"action":"SCMP_ACT_ERRNO","errnoRet":38},
	{"names":["socket"],"action":"SCMP_ACT_ALLOW","args":[{"index":0,"value":1,"op":"SCMP_CMP_EQ"}],
	 "otherwise":{"action":"SCMP_ACT_ERRNO","errnoRet":97}},
	{"names":["socketpair"],"action":"SCMP_ACT_ALLOW","args":[{"index":0,"value":1,"op":"SCMP_CMP_EQ"}]}]}`

// older is a libseccomp that knows no call from 450 on.
func older(arch, name string) (bool, error) {
	return !strings.Contains(" mseal open_tree_attr listns ", " "+name+" "), nil
}

func TestPlan(t *testing.T) {
	p, err := profile.Parse([]byte(planned))
	if err != nil {
		t.Fatal(err)
	}
	parts, err := plan(p, "amd64", older)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range parts {
		line := fmt.Sprint(x.fallback, " ", x.constant, ":")
		for _, c := range x.calls {
			line += fmt.Sprintf(" %s=%d", c.name, c.number)
		}
		got = append(got, line)
	}
	want := []string{
		"errno 38 false: socketpair=53",
		"allow true: read=0 write=1 mseal=462",
		"errno 1 true: open_tree_attr=467",
		"errno 97 false: socket=41",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestPlanRefuses(t *testing.T) {
	p, err := profile.Parse([]byte(planned))
	if err != nil {
		t.Fatal(err)
	}
	_, err = plan(p, "amd64", func(arch, name string) (bool, error) { return name != "socket", nil })
	var bad *refusal.Error
	if !errors.As(err, &bad) || bad.What != "profile: this libseccomp does not know socket, so it cannot have args" {
		t.Errorf("got %v", err)
	}
	broken := errors.New("tables differ")
	if _, err := plan(p, "amd64", func(arch, name string) (bool, error) { return false, broken }); err != broken {
		t.Errorf("got %v", err)
	}
	if _, err := compileProfile(p, "arm64", nil); err == nil || err.Error() != "profile: architectures does not list arm64" {
		t.Errorf("got %v", err)
	}
}
