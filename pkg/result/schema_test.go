package result

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit/schema"
)

func loadSchema(t *testing.T) schema.Schema {
	t.Helper()
	return schema.Load(t, "../../docs/result.schema.json")
}

func decode(t *testing.T, b []byte) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestSchemaIsStrictAndDescribed(t *testing.T) {
	var walk func(node any, at string)
	walk = func(node any, at string) {
		s, ok := node.(map[string]any)
		if !ok {
			t.Errorf("%s: not an object", at)
			return
		}
		if s["description"] == nil || s["description"] == "" {
			t.Errorf("%s: no description", at)
		}
		for k := range s {
			if !slices.Contains(schema.Keywords, k) {
				t.Errorf("%s: keyword %s is not known to this test's validator", at, k)
			}
		}
		if s["type"] == "object" && s["additionalProperties"] == nil {
			t.Errorf("%s: open object", at)
		}
		for _, list := range []string{"properties", "$defs"} {
			for name, sub := range asMap(s[list]) {
				walk(sub, at+"."+name)
			}
		}
		if s["items"] != nil {
			walk(s["items"], at+"[]")
		}
		if m, ok := s["additionalProperties"].(map[string]any); ok {
			walk(m, at+".*")
		}
	}
	walk(map[string]any(loadSchema(t)), "result")
}

func asMap(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// The schema and the structs name the same fields, and the schema requires
// exactly those that are always written.
func TestSchemaMatchesTheStructs(t *testing.T) {
	root := loadSchema(t)
	defs := root["$defs"].(map[string]any)
	for _, c := range []struct {
		typ  reflect.Type
		node any
	}{
		{reflect.TypeFor[Result](), map[string]any(root)}, {reflect.TypeFor[Stream](), defs["stream"]},
		{reflect.TypeFor[Limit](), defs["limit"]}, {reflect.TypeFor[Layer](), defs["layer"]},
		{reflect.TypeFor[Denial](), defs["denial"]}, {reflect.TypeFor[Artifact](), defs["artifact"]},
	} {
		var all, always []string
		for i := range c.typ.NumField() {
			if !c.typ.Field(i).IsExported() {
				continue
			}
			name, option, _ := strings.Cut(c.typ.Field(i).Tag.Get("json"), ",")
			all = append(all, name)
			if option == "" {
				always = append(always, name)
			}
		}
		var inSchema, required []string
		for name := range asMap(c.node.(map[string]any)["properties"]) {
			inSchema = append(inSchema, name)
		}
		for _, name := range c.node.(map[string]any)["required"].([]any) {
			required = append(required, name.(string))
		}
		for _, list := range [][]string{all, always, inSchema, required} {
			slices.Sort(list)
		}
		if !slices.Equal(all, inSchema) {
			t.Errorf("%v: fields %v, schema %v", c.typ, all, inSchema)
		}
		if !slices.Equal(always, required) {
			t.Errorf("%v: always written %v, required %v", c.typ, always, required)
		}
	}
}

func TestEnumsMatchTheConstants(t *testing.T) {
	root := loadSchema(t)
	defs := asMap(root["$defs"])
	enum := func(node any, field string) string {
		return fmt.Sprint(asMap(asMap(asMap(node)["properties"])[field])["enum"])
	}
	for _, c := range []struct{ got, want string }{
		{enum(map[string]any(root), "outcome"), fmt.Sprint([]Outcome{Exited, Signaled, Timeout, CPUTime, Memory, Output, Canceled, Refused, Failed})},
		{enum(defs["limit"], "unit"), fmt.Sprint([]Unit{Bytes, Milliseconds, Count, MilliCPU, BytesPerSec, OpsPerSec})},
		{enum(defs["limit"], "enforced_by"), fmt.Sprint([]Enforcer{ByCgroup2, ByCgroup1, ByRlimit, ByWatchdog, ByTmpfs, ByClock, ByNone})},
		{enum(defs["layer"], "state"), fmt.Sprint([]State{Enforced, Degraded, Absent})},
	} {
		if c.got != c.want {
			t.Errorf("schema has %s, the code %s", c.got, c.want)
		}
	}
}

func TestSamplesKeepTheSchema(t *testing.T) {
	root := loadSchema(t)
	for name, r := range samples() {
		b, err := r.JSON()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, bad := range root.Check(decode(t, b), name) {
			t.Error(bad)
		}
	}
}

func TestSchemaRefuses(t *testing.T) {
	root := loadSchema(t)
	for _, c := range []struct {
		name   string
		change func(map[string]any)
		want   string
	}{
		{"unknown field", func(m map[string]any) { m["extra"] = 1.0 }, "r: extra is not in the schema"},
		{"missing field", func(m map[string]any) { delete(m, "denied") }, "r: lacks denied"},
		{"unknown outcome", func(m map[string]any) { m["outcome"] = "fine" },
			"r.outcome: fine is not in [exited signaled timeout cpu_time memory output canceled refused failed]"},
		{"other version", func(m map[string]any) { m["schema"] = 2.0 }, "r.schema: is 2, not 1"},
		{"exit code", func(m map[string]any) { m["exit_code"] = 256.0 }, "r.exit_code: 256 is above 255"},
		{"negative", func(m map[string]any) { m["wall_ms"] = -1.0 }, "r.wall_ms: -1 is below 0"},
		{"fraction", func(m map[string]any) { m["cpu_ms"] = 0.5 }, "r.cpu_ms: 0.5 is not of type integer"},
		{"null list", func(m map[string]any) { m["layers"] = nil }, "r.layers: <nil> is not of type array"},
		{"hash", func(m map[string]any) { m["policy_sha256"] = "abc" }, `r.policy_sha256: "abc" does not match ^([0-9a-f]{64})?$`},
		{"stream field", func(m map[string]any) { m["stdout"].(map[string]any)["lost"] = true }, "r.stdout: lost is not in the schema"},
	} {
		b, err := (&Result{Outcome: Exited}).JSON()
		if err != nil {
			t.Fatal(err)
		}
		v := decode(t, b)
		c.change(v)
		if got := root.Check(v, "r"); !slices.Equal(got, []string{c.want}) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
