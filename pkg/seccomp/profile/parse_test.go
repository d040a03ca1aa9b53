package profile

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"sandglass/internal/refusal"
)

// with is a whole profile around the text of its groups.
func with(groups string) string {
	return `{"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":38,"architectures":["SCMP_ARCH_X86_64"],"syscalls":[` + groups + `]}`
}

func TestParse(t *testing.T) {
	p, err := Parse([]byte(with(`
		{"comment": "c", "names": ["read", "write"], "action": "SCMP_ACT_ALLOW"},
		{"names": ["socket"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1, "args": [
			{"index": 2, "value": 15, "valueTwo": 3, "op": "SCMP_CMP_MASKED_EQ"},
			{"index": 0, "value": 18446744073709551615, "op": "SCMP_CMP_EQ"}],
		 "otherwise": {"action": "SCMP_ACT_LOG"}}`)))
	if err != nil {
		t.Fatal(err)
	}
	want := &Profile{
		Default: Action{Kind: Errno, Errno: 38},
		Arches:  []string{"amd64"},
		Calls: []*Call{
			{Name: "read", Rules: []Rule{{Action: Action{Kind: Allow}}}},
			{Name: "write", Rules: []Rule{{Action: Action{Kind: Allow}}}},
			{Name: "socket", Rules: []Rule{{
				Args:   []Arg{{Index: 0, Op: EQ, Value: ^uint64(0)}, {Index: 2, Op: MaskedEQ, Value: 15, ValueTwo: 3}},
				Action: Action{Kind: Errno, Errno: 1},
			}}, Otherwise: &Action{Kind: Log}},
		},
	}
	if !reflect.DeepEqual(p, want) {
		t.Errorf("got %+v", p)
	}
}

func TestParseRefuses(t *testing.T) {
	const masked = `"args":[{"index":0,"value":1,"valueTwo":0,"op":"SCMP_CMP_MASKED_EQ"}]`
	group := func(names, rest string) string {
		return `{"names":[` + names + `],"action":"SCMP_ACT_ALLOW"` + rest + `}`
	}
	arg := func(text string) string { return with(group(`"read"`, `,"args":[`+text+`]`)) }
	for _, c := range []struct{ name, source, want string }{
		{"empty", ``, "profile: EOF"},
		{"cut off", `{"defaultAction":`, "profile: EOF"},
		{"not an object", `[]`, "profile: json: cannot unmarshal array"},
		{"trailing", with("") + `{}`, "profile: something follows the closing brace"},
		{"too large", strings.Repeat(" ", maxSource+1), "profile: 1048577 bytes, at most 1048576"},
		{"unknown key", `{"archMap":[]}`, `profile: unknown key "archMap"`},
		{"key of another place", with(`{"names":["read"],"action":"SCMP_ACT_ALLOW","index":1}`), `profile: json: unknown field "index"`},
		{"key in another spelling", `{"DefaultAction":"SCMP_ACT_ERRNO"}`, `profile: unknown key "DefaultAction"`},
		{"key twice", with(`{"names":["read"],"action":"SCMP_ACT_ERRNO","action":"SCMP_ACT_ALLOW"}`), `profile: key "action" twice in one object`},
		{"docker's conditions", with(group(`"read"`, `,"includes":{"caps":["CAP_SYS_ADMIN"]}`)), `profile: unknown key "includes"`},
		{"no default", `{}`, `profile: default: action "" is not supported`},
		{"default allow", `{"defaultAction":"SCMP_ACT_ALLOW"}`, "profile: defaultAction SCMP_ACT_ALLOW lets through"},
		{"default log", `{"defaultAction":"SCMP_ACT_LOG"}`, "profile: defaultAction SCMP_ACT_LOG lets through"},
		{"default without errno", `{"defaultAction":"SCMP_ACT_ERRNO"}`, "profile: default: SCMP_ACT_ERRNO without an errno"},
		{"errno too large", `{"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":4096}`, "profile: default: errno 4096 is not within 0 and 4095"},
		{"errno negative", `{"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":-1}`, "profile: json: cannot unmarshal number -1"},
		{"errno of kill", `{"defaultAction":"SCMP_ACT_KILL_PROCESS","defaultErrnoRet":1}`, "profile: default: an errno with SCMP_ACT_KILL_PROCESS"},
		{"no architecture", `{"defaultAction":"SCMP_ACT_KILL_PROCESS"}`, "profile: architectures is missing or empty"},
		{"unknown architecture", `{"defaultAction":"SCMP_ACT_KILL_PROCESS","architectures":["SCMP_ARCH_X86"]}`, `profile: architecture "SCMP_ARCH_X86" is not supported`},
		{"architecture twice", `{"defaultAction":"SCMP_ACT_KILL_PROCESS","architectures":["SCMP_ARCH_AARCH64","SCMP_ARCH_AARCH64"]}`, "profile: architecture SCMP_ARCH_AARCH64 twice"},
		{"no names", with(`{"action":"SCMP_ACT_ALLOW"}`), "profile: group 1: names is missing or empty"},
		{"unknown action", with(`{"names":["read"],"action":"SCMP_ACT_TRACE"}`), `profile: group 1: action "SCMP_ACT_TRACE" is not supported`},
		{"errno of allow", with(group(`"read"`, `,"errnoRet":1`)), "profile: group 1: an errno with SCMP_ACT_ALLOW"},
		{"unknown call", with(group(`"read","raed"`, "")), `profile: group 1: no architecture of the profile has a system call "raed"`},
		{"call twice in a group", with(group(`"read","read"`, "")), "profile: group 1: read is in another group already"},
		{"call twice", with(group(`"read"`, "") + "," + group(`"read"`, "")), "profile: group 2: read is in another group already"},
		{"with and without args", with(group(`"read"`, ","+masked) + "," + group(`"read"`, "")), "profile: group 2: read is in another group already"},
		{"same args", with(group(`"read"`, ","+masked) + "," + group(`"read"`, ","+masked)), "profile: group 2: read with the same args"},
		{"otherwise without args", with(group(`"read"`, `,"otherwise":{"action":"SCMP_ACT_ALLOW"}`)), "profile: group 1: otherwise without args"},
		{"otherwise unknown", with(group(`"read"`, `,`+masked+`,"otherwise":{"action":"X"}`)), `profile: group 1: otherwise: action "X"`},
		{"otherwise twice", with(group(`"read"`, `,`+masked+`,"otherwise":{"action":"SCMP_ACT_LOG"}`) + "," +
			group(`"read"`, `,"args":[{"index":0,"value":1,"op":"SCMP_CMP_EQ"}],"otherwise":{"action":"SCMP_ACT_LOG"}`)), "profile: group 2: otherwise of read"},
		{"ambiguous", with(group(`"read"`, `,`+masked) +
			`,{"names":["read"],"action":"SCMP_ACT_ERRNO","errnoRet":1,"args":[{"index":0,"value":4,"valueTwo":4,"op":"SCMP_CMP_MASKED_EQ"}]}`),
			"profile: group 2: read with these args could also match another group with action allow"},
		{"unknown operator", arg(`{"index":0,"value":1,"op":"=="}`), `profile: group 1: args 1: operator "==" is not supported`},
		{"no index", arg(`{"value":1,"op":"SCMP_CMP_EQ"}`), "profile: group 1: args 1: index must be 0 to 5"},
		{"index 6", arg(`{"index":6,"value":1,"op":"SCMP_CMP_EQ"}`), "profile: group 1: args 1: index must be 0 to 5"},
		{"no value", arg(`{"index":0,"op":"SCMP_CMP_EQ"}`), "profile: group 1: args 1: value is missing"},
		{"value with EQ", arg(`{"index":0,"value":1,"valueTwo":1,"op":"SCMP_CMP_EQ"}`), "profile: group 1: args 1: valueTwo belongs to"},
		{"mask without value", arg(`{"index":0,"value":1,"op":"SCMP_CMP_MASKED_EQ"}`), "profile: group 1: args 1: valueTwo belongs to"},
		{"value outside mask", arg(`{"index":0,"value":1,"valueTwo":2,"op":"SCMP_CMP_MASKED_EQ"}`), "profile: group 1: args 1: valueTwo has bits outside the mask"},
		{"argument twice", arg(`{"index":0,"value":1,"op":"SCMP_CMP_GT"},{"index":0,"value":9,"op":"SCMP_CMP_LT"}`), "profile: group 1: args 2: argument 0 twice in one group"},
	} {
		_, err := Parse([]byte(c.source))
		var bad *refusal.Error
		if !errors.As(err, &bad) || !strings.HasPrefix(bad.What, c.want) {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
}

// FuzzParse: no input panics.
func FuzzParse(f *testing.F) {
	f.Add([]byte(with(`{"names":["read"],"action":"SCMP_ACT_ALLOW"}`)))
	f.Add([]byte(`{"syscalls":[{"args":[{"index":0}]}]}`))
	f.Add([]byte(`]`))
	f.Fuzz(func(t *testing.T, source []byte) {
		if p, err := Parse(source); err == nil && p.Decide("amd64", 0xfffe, [6]uint64{}).Kind == Allow {
			t.Error("a profile that allows an unknown call was accepted")
		}
	})
}
