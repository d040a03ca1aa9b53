package parity

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

// schemas is the specification's own JSON Schema (draft 4, in several files),
// read from the module that go.mod names.
type schemas struct {
	dir   string
	files map[string]any
}

func openSchemas(t *testing.T) *schemas {
	t.Helper()
	testkit.Requires(t, "go")
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/opencontainers/runtime-spec").Output()
	if err != nil {
		t.Fatal(err)
	}
	return &schemas{dir: filepath.Join(strings.TrimSpace(string(dir)), "schema"), files: map[string]any{}}
}

// find follows a $ref from a file: "other.json#/definitions/x" or a part of it.
func (s *schemas) find(file, ref string) (string, map[string]any) {
	name, pointer, _ := strings.Cut(ref, "#")
	if name == "" {
		name = file
	}
	if s.files[name] == nil {
		text, err := os.ReadFile(filepath.Join(s.dir, name))
		var v any
		if err == nil {
			err = json.Unmarshal(text, &v)
		}
		if err != nil {
			panic(err)
		}
		s.files[name] = v
	}
	node := s.files[name]
	for _, part := range strings.Split(strings.Trim(pointer, "/"), "/") {
		if part != "" {
			node = node.(map[string]any)[part]
		}
	}
	return name, node.(map[string]any)
}

// check returns what is wrong with v. A keyword that it does not know is wrong
// too, so that nothing is passed over.
func (s *schemas) check(file string, node map[string]any, v any, at string) []string {
	var bad []string
	fail := func(format string, args ...any) { bad = append(bad, at+": "+fmt.Sprintf(format, args...)) }
	sub := func(n any, v any, at string) { bad = append(bad, s.check(file, n.(map[string]any), v, at)...) }
	object, isObject := v.(map[string]any)
	list, _ := v.([]any)
	number, _ := v.(float64)
	text, isText := v.(string)
	for key, want := range node {
		switch key {
		case "description", "id", "$schema", "definitions", "format", "properties":
		case "$ref":
			in, n := s.find(file, want.(string))
			bad = append(bad, s.check(in, n, v, at)...)
		case "type":
			kinds := map[string]bool{"object": isObject, "array": reflect.ValueOf(v).Kind() == reflect.Slice, "string": isText,
				"boolean": reflect.ValueOf(v).Kind() == reflect.Bool, "integer": reflect.ValueOf(v).Kind() == reflect.Float64 && number == math.Trunc(number)}
			if !kinds[want.(string)] {
				fail("%v is no %v", v, want)
			}
		case "enum":
			if !slices.Contains(want.([]any), v) {
				fail("%v is not among %v", v, want)
			}
		case "minimum", "maximum":
			if d := number - want.(float64); key == "minimum" && d < 0 || key == "maximum" && d > 0 {
				fail("%v is beyond %s %v", v, key, want)
			}
		case "pattern":
			if !regexp.MustCompile(want.(string)).MatchString(text) {
				fail("%q does not match %v", text, want)
			}
		case "minItems":
			if len(list) < int(want.(float64)) {
				fail("has %d items, at least %v", len(list), want)
			}
		case "items":
			for i, e := range list {
				sub(want, e, fmt.Sprintf("%s[%d]", at, i))
			}
		case "required":
			for _, name := range want.([]any) {
				if _, ok := object[name.(string)]; isObject && !ok {
					fail("lacks %v", name)
				}
			}
		case "allOf":
			for _, n := range want.([]any) {
				sub(n, v, at)
			}
		case "anyOf":
			if !slices.ContainsFunc(want.([]any), func(n any) bool { return len(s.check(file, n.(map[string]any), v, at)) == 0 }) {
				fail("%v is none of the kinds", v)
			}
		case "patternProperties", "additionalProperties", "minLength":
		default:
			fail("the schema's keyword %s is not known here", key)
		}
	}
	properties, _ := node["properties"].(map[string]any)
	for name, value := range object {
		if p, ok := properties[name]; ok {
			sub(p, value, at+"."+name)
		} else if properties != nil {
			fail("%s is not in the schema", name)
		}
	}
	return bad
}

func TestSchema(t *testing.T) {
	s := openSchemas(t)
	_, top := s.find("config-schema.json", "")
	read := func(args ...string) map[string]any {
		text, err := os.ReadFile(filepath.Join(plan(t, testkit.AsUser(t), args...), "config.json"))
		if err != nil {
			t.Fatal(err)
		}
		var v map[string]any
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	for name, args := range flags {
		for _, bad := range s.check("config-schema.json", top, read(args...), name) {
			t.Error(bad)
		}
	}
	// A spoilt one is found out, at any depth.
	for _, c := range []struct {
		want  string
		spoil func(map[string]any)
	}{
		{"x: lacks ociVersion", func(v map[string]any) { delete(v, "ociVersion") }},
		{"x.process.noNewPrivileges: yes is no boolean", func(v map[string]any) { v["process"].(map[string]any)["noNewPrivileges"] = "yes" }},
		{"x.linux: maskedPath is not in the schema", func(v map[string]any) { v["linux"].(map[string]any)["maskedPath"] = []any{} }},
		{"x.linux.namespaces[0]: map[type:net] is none of the kinds", func(v map[string]any) {
			v["linux"].(map[string]any)["namespaces"].([]any)[0].(map[string]any)["type"] = "net"
		}},
	} {
		v := read(flags["default"]...)
		c.spoil(v)
		if bad := strings.Join(s.check("config-schema.json", top, v, "x"), "\n"); !strings.HasPrefix(bad, c.want) {
			t.Errorf("got %q, want %q", bad, c.want)
		}
	}
}
