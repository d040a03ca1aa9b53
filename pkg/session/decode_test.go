package session

import (
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"sandglass/internal/refusal"
	"sandglass/internal/testkit/schema"
)

func TestDecodeIsStrict(t *testing.T) {
	run := func(fields string) string { return `{"type":"run","id":"1",` + fields + `}` }
	for line, want := range map[string]string{
		run(`"code":"x","lang":"python"`):                                                 "",
		" { \"type\" : \"run\" , \"id\":\"a.B_c:9-\",\"command\":[\"true\"]}\r":           "",
		run(`"command":["a","\u0041\ud83d\ude00\n"],"env":{"A":"","b":"="},"stdin":""`):   "",
		run(`"file":"x","options":{"a":1,"b":-0.5e+9,"c":true,"d":["x",2,false],"e":[]}`): "",
		`{"type":"cancel","id":"1"}`:                                                      "",
		`{"type":"nonsense","id":"1"}`:                                                    "",
		``:                                                                                "the request is not an object",
		`[]`:                                                                              "the request is not an object",
		`null`:                                                                            "the request is not an object",
		`{"type":"run"`:                                                                   "the request does not go on",
		`{"type":"run","id":"1"}}`:                                                        "more than one object",
		`{"type":"run","id":"1"} {}`:                                                      "more than one object",
		`{}`:                                                                              "the field type is missing",
		`{"type":"run"}`:                                                                  "the field id is missing",
		`{"type":"cancel"}`:                                                               "the field id is missing",
		`{"type":"run","id":"1","id":"1","command":["a"]}`: `the field "id" is there twice`,
		`{"TYPE":"run"}`: `unknown field "TYPE"`,
		`{"type":"run","id":"1","x":{"y":[[[[[[[[`:                          `unknown field "x"`,
		`{"type":"run","id":""}`:                                            "id is not 1 to 64",
		`{"type":"run","id":"a b"}`:                                         "id is not 1 to 64",
		`{"type":"run","id":"é"}`:                                           "id is not 1 to 64",
		`{"type":"run","id":1}`:                                             "id is not a string",
		`{"type":"run","id":"` + strings.Repeat("a", 65) + `"}`:             "id is not 1 to 64",
		`{"type":"cancel","id":"1","code":"x"}`:                             "a cancel has no other fields",
		run(`"code":"x","command":["a"]`):                                   "a run has one of the fields",
		`{"type":"run","id":"1"}`:                                           "a run has one of the fields",
		run(`"command":"a"`):                                                "command is not an array",
		run(`"command":[1]`):                                                "an element of command is not a string",
		run(`"command":["a",]`):                                             "an element of command is not a string",
		run(`"command":["a" "b"]`):                                          "command does not go on",
		run(`"code":null`):                                                  "code is not a string",
		run(`"code":"` + "\x00" + `"`):                                      "a control character in a string",
		run(`"code":"` + "\n" + `"`):                                        "a control character in a string",
		run(`"code":"\ud800"`):                                              "half of a surrogate pair",
		run(`"code":"\udc00\ud800"`):                                        "half of a surrogate pair",
		run(`"code":"\ud800\u0041"`):                                        "half of a surrogate pair",
		run(`"code":"\x41"`):                                                "no such escape",
		run(`"code":"\u00g0"`):                                              "no such escape",
		run(`"code":"\u00`):                                                 "no such escape",
		run(`"code":"\`):                                                    "no such escape",
		`{"type":"run","id":"1","code":"\`:                                  "a string does not end",
		`{"type":"run","id":"1","code":"abc`:                                "a string does not end",
		"\ufffd{\xff":                                                       "the line is not UTF-8, at byte 4",
		run("\"code\":\"\xff\""):                                            "the line is not UTF-8",
		run("\"code\":\"\xed\xa0\x80\""):                                    "the line is not UTF-8",
		run(`"command":["a"],"env":{"A":1}`):                                `env: the value of "A" is not a string`,
		run(`"command":["a"],"env":{"A=B":"c"}`):                            `env: "A=B" is not the name`,
		run(`"command":["a"],"env":["A=B"]`):                                "env is not an object",
		run(`"command":["a"],"stdin":"x","stdin_base64":"eA=="`):            "stdin and stdin_base64 exclude",
		run(`"command":["a"],"stdin_base64":"eA="`):                         "stdin_base64 is not standard base64",
		run(`"command":["a"],"stdin_base64":"eB=="`):                        "stdin_base64 is not standard base64",
		run(`"command":["a"],"stdin_base64":"e\nA=="`):                      "stdin_base64 is not standard base64",
		run(`"command":["a"],"output":"both"`):                              "output is neither collect nor stream",
		run(`"command":["a"],"options":{"a":null}`):                         `option "a" is neither`,
		run(`"command":["a"],"options":{"a":{}}`):                           `option "a" is neither`,
		run(`"command":["a"],"options":{"a":[["x"]]}`):                      `option "a" is neither`,
		run(`"command":["a"],"options":{"a":01}`):                           `option "a" is neither`,
		run(`"command":["a"],"options":{"a":1,"a":2}`):                      `the field "a" is there twice`,
		run(`"command":["a"],"files":{}`):                                   "files is not an array",
		run(`"command":["a"],"files":["a"]`):                                "a file is not an object",
		run(`"command":["a"],"files":[{"path":"a"}]`):                       "a file has one of the fields",
		run(`"command":["a"],"files":[{"path":"a","text":"","from":"/x"}]`): "a file has one of the fields",
		run(`"command":["a"],"files":[{"path":"a","from":""}]`):             "from is empty",
		run(`"command":["a"],"files":[{"path":"a","text":"","mode":1}]`):    `files: unknown field "mode"`,
		run(`"command":["a"],"artifacts":{}`):                               "artifacts has one of the fields",
		run(`"command":["a"],"artifacts":{"inline":"1m","dir":"x"}`):        "artifacts has one of the fields",
		run(`"command":["a"],"artifacts":{"dir":""}`):                       "dir is empty",
		run(`"command":["a"],"artifacts":"x"`):                              "artifacts is not an object",
		run(`"command":["a"],"artifacts":{"inline":"1q"}`):                  "refusal: ",
	} {
		_, err := decode([]byte(line))
		var syntax *syntaxError
		var ref *refusal.Error
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", line, err)
		case want == "refusal: ":
			if !errors.As(err, &ref) {
				t.Errorf("%s: %v, want a refusal", line, err)
			}
		case want != "" && (!errors.As(err, &syntax) || !strings.HasPrefix(err.Error(), want)):
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

func TestDecodeReads(t *testing.T) {
	r, err := decode([]byte(`{"type":"run","id":"x","code":"é\u00e9\ud83d\ude00\"\\\/\b\f\n\r\t\u0000","lang":"py","args":["a",""],"env":{"A":"b"},` +
		`"stdin_base64":"AP8=","files":[{"path":"a","text":"t"},{"path":"b","base64":"/w==","executable":true},{"path":"c","from":"/x"}],` +
		`"options":{"memory":"1g","cpus":0.5,"allow-host":["a","b"]},"output":"stream","artifacts":{"inline":4096}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(r.Program.Code), "éé\U0001f600\"\\/\b\f\n\r\t\x00"; got != want {
		t.Errorf("code %q, want %q", got, want)
	}
	if !r.Stdin || string(r.stdin) != "\x00\xff" || !r.stream || r.Keep != 4096 || len(r.Files) != 3 || r.Env[0] != "A=b" {
		t.Errorf("%+v", r)
	}
	if f := r.Files[1]; f.Name != "b" || string(f.Content) != "\xff" || !f.Exec || r.Files[2].Source != "/x" {
		t.Errorf("%+v", r.Files)
	}
	if o := r.Options; len(o) != 3 || o[0].Values[0] != "1g" || o[1].Values[0] != "0.5" || !o[2].List || len(o[2].Values) != 2 {
		t.Errorf("%+v", o)
	}
}

// TestDecodeIsBounded: what costs more memory than its bytes in the line is
// refused long before the line's end.
func TestDecodeIsBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"type":"run","id":"1","command":["a"`)
	for range 1_000_000 {
		b.WriteString(`,""`)
	}
	_, err := decode([]byte(b.String() + "]}"))
	if err == nil || !strings.HasPrefix(err.Error(), "more than 100000 values") {
		t.Errorf("arguments: %v", err)
	}
	b.Reset()
	b.WriteString(`{"type":"run","id":"1","command":["a"],"files":[{"path":"x","text":""}`)
	for i := range 100_000 {
		b.WriteString(`,{"path":"` + strconv.Itoa(i) + `","text":""}`)
	}
	_, err = decode([]byte(b.String() + "]}"))
	if err == nil || err.Error() != "files: there are more than 1000" {
		t.Errorf("files: %v", err)
	}
	b.Reset()
	b.WriteString(`{"type":"run","id":"1","command":["a"],"env":{"x":""`)
	for i := range 200_000 {
		b.WriteString(`,"` + strconv.Itoa(i) + `":""`)
	}
	_, err = decode([]byte(b.String() + "}}"))
	if err == nil || !strings.HasPrefix(err.Error(), "more than 100000 values") {
		t.Errorf("environment: %v", err)
	}
}

// FuzzDecode: what is taken is JSON for everybody else, and means the same.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"type":"run","id":"1","code":"print(1)\ud83d\ude00","lang":"python","args":["a"],"env":{"A":"b"},"stdin":"x"}`,
		`{"type":"run","id":"1","command":["sh"],"files":[{"path":"a/b","text":"x"},{"path":"c","base64":"/w==","executable":true},{"path":"d","from":"/e"}]}`,
		`{"type":"run","id":"1","file":"x","options":{"memory":"1g","cpus":-0.5e9,"pids-limit":12,"explain-denials":true,"volume":["a:b"]},"output":"stream"}`,
		`{"type":"run","id":"1","command":["a"],"artifacts":{"dir":"x","force":true},"stdin_base64":"AA=="}`,
		`{"type":"run","id":"1","command":["a"],"artifacts":{"inline":"1m"}}`, `{"type":"cancel","id":"1"}`, `{"type":"\ud800"}`, `{"a":[[[[`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := decode(line)
		if !validID(r.id) && r.id != "" {
			t.Errorf("id %q", r.id)
		}
		if err != nil {
			return
		}
		var m map[string]json.RawMessage
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatalf("taken, and no JSON: %v", err)
		}
		var code, kind string
		var command []string
		var env map[string]string
		for _, into := range []struct {
			name string
			to   any
		}{{"type", &kind}, {"code", &code}, {"command", &command}, {"env", &env}} {
			if raw, ok := m[into.name]; ok {
				if err := json.Unmarshal(raw, into.to); err != nil {
					t.Fatalf("%s: %v", into.name, err)
				}
			}
		}
		if kind != r.kind || code != string(r.Program.Code) || strings.Join(command, "\x00") != strings.Join(r.Program.Command, "\x00") {
			t.Errorf("another meaning: %+v of %s", r, line)
		}
		if len(env) != len(r.Env) || len(m) != len(r.given) {
			t.Errorf("another number of fields: %+v of %s", r, line)
		}
	})
}

// TestSchemaHasTheResult: the session's schema repeats the result's, word for word.
func TestSchemaHasTheResult(t *testing.T) {
	own, theirs := schema.Load(t, "../../docs/session.schema.json"), schema.Load(t, "../../docs/result.schema.json")
	defs := own["$defs"].(map[string]any)
	got := defs["result"].(map[string]any)
	for _, key := range []string{"type", "additionalProperties", "required", "properties"} {
		if !reflect.DeepEqual(got[key], theirs[key]) {
			t.Errorf("%s differs: take it over from docs/result.schema.json", key)
		}
	}
	for name, want := range theirs["$defs"].(map[string]any) {
		if !reflect.DeepEqual(defs[name], want) {
			t.Errorf("$defs.%s differs: take it over from docs/result.schema.json", name)
		}
	}
}
