package profile

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func parsed(t *testing.T, source string) *Profile {
	t.Helper()
	p, err := Parse([]byte(source))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// sorted is p in an order of its own.
func sorted(p *Profile) *Profile {
	q := &Profile{Default: p.Default, Arches: slices.Sorted(slices.Values(p.Arches))}
	for _, c := range p.Calls {
		d := *c
		d.Rules = slices.Clone(c.Rules)
		slices.SortFunc(d.Rules, func(a, b Rule) int { return strings.Compare(ruleText("", a), ruleText("", b)) })
		q.Calls = append(q.Calls, &d)
	}
	slices.SortFunc(q.Calls, func(a, b *Call) int { return strings.Compare(a.Name, b.Name) })
	return q
}

// TestFormatRoundTrip: the shipped profiles survive it, and the same profile in
// another order gives the same bytes.
func TestFormatRoundTrip(t *testing.T) {
	for _, name := range []string{"default", "debug", "minimal"} {
		source, err := os.ReadFile("../../../seccomp-profiles/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		p := parsed(t, string(source))
		text := p.Format()
		again := parsed(t, string(text))
		if !reflect.DeepEqual(sorted(p), sorted(again)) {
			t.Errorf("%s does not survive", name)
		}
		slices.Reverse(p.Calls)
		slices.Reverse(p.Arches)
		for _, c := range p.Calls {
			slices.Reverse(c.Rules)
		}
		if string(p.Format()) != string(text) {
			t.Errorf("%s: another order gives other bytes", name)
		}
	}
}

const onlyOne = `{"names": ["socket"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": 1, "op": "SCMP_CMP_EQ"}], "otherwise": {"action": "SCMP_ACT_ERRNO", "errnoRet": 97}}`

func TestMerge(t *testing.T) {
	two := strings.Replace(onlyOne, `"value": 1`, `"value": 2`, 1)
	a := parsed(t, with(`{"names": ["read", "mmap"], "action": "SCMP_ACT_ALLOW"},{"names": ["ptrace"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1},`+onlyOne))
	b := parsed(t, with(`{"names": ["write", "ptrace"], "action": "SCMP_ACT_ALLOW"},{"names": ["mmap"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1},`+two))
	want := parsed(t, with(`{"names": ["mmap", "ptrace", "read", "write"], "action": "SCMP_ACT_ALLOW"},`+onlyOne+","+
		strings.Replace(two, `, "otherwise": {"action": "SCMP_ACT_ERRNO", "errnoRet": 97}`, "", 1)))
	for _, pair := range [][2]*Profile{{a, b}, {b, a}} {
		got, err := Merge(pair[0], pair[1])
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(sorted(got), sorted(want)) {
			t.Errorf("got %s\nwant %s", got.Format(), want.Format())
		}
	}
	same, err := Merge(a, a)
	if err != nil || string(same.Format()) != string(a.Format()) {
		t.Errorf("merged with itself: %v, %s", err, same.Format())
	}
}

func TestMergeRefuses(t *testing.T) {
	a := parsed(t, with(onlyOne))
	for name, source := range map[string]string{
		"profiles with the default actions errno 38 and kill_process cannot be merged": `{"defaultAction":"SCMP_ACT_KILL_PROCESS","architectures":["SCMP_ARCH_X86_64"],"syscalls":[]}`,
		"a profile for amd64 and one for arm64 cannot be merged":                       `{"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":38,"architectures":["SCMP_ARCH_AARCH64"],"syscalls":[]}`,
		"socket has another rest in either profile, so they cannot be merged":          with(strings.Replace(onlyOne, "97", "1", 1)),
		"rules of socket with different actions overlap, so the profiles cannot be merged": with(strings.Replace(strings.Replace(onlyOne, "SCMP_CMP_EQ", "SCMP_CMP_LE", 1),
			`"SCMP_ACT_ALLOW"`, `"SCMP_ACT_ERRNO", "errnoRet": 5`, 1)),
	} {
		if _, err := Merge(a, parsed(t, source)); err == nil || err.Error() != name {
			t.Errorf("got %v, want %s", err, name)
		}
	}
}

func TestDiff(t *testing.T) {
	a := parsed(t, with(`{"names": ["read", "write"], "action": "SCMP_ACT_ALLOW"},`+onlyOne))
	b := parsed(t, with(`{"names": ["write", "socket"], "action": "SCMP_ACT_ALLOW"}`))
	want := []string{"read: allow -> errno 38", "socket: allow if arg0==0x1, else errno 97 -> allow"}
	if got := Diff(a, b); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Diff(a, a); len(got) != 0 {
		t.Errorf("with itself: %q", got)
	}
}
