// Package schema is a validator for the part of JSON Schema draft 2020-12 that
// docs/result.schema.json uses. Tests of real results share it; a keyword that
// it does not know is an error, so a schema cannot outgrow it.
package schema

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"
)

// Schema is a JSON Schema as it was decoded.
type Schema map[string]any

// Keywords are those that Check knows.
var Keywords = []string{"$schema", "$defs", "$ref", "title", "description", "type", "additionalProperties", "required",
	"properties", "items", "enum", "const", "minimum", "maximum", "minLength", "pattern"}

// Load reads a schema file.
func Load(t testing.TB, path string) Schema {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var s Schema
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return s
}

// Validate decodes one JSON text and returns what is wrong with it, each with
// its path; name is what the whole is called there.
func (root Schema) Validate(text []byte, name string) []string {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return []string{name + ": " + err.Error()}
	}
	return root.Check(v, name)
}

// Check is Validate for a decoded value.
func (root Schema) Check(v any, name string) []string {
	return root.check(map[string]any(root), v, name)
}

// check returns what is wrong with v, each with its path.
func (root Schema) check(node any, v any, at string) []string {
	s, ok := node.(map[string]any)
	if !ok {
		return []string{at + ": schema is not an object"}
	}
	var bad []string
	fail := func(format string, args ...any) { bad = append(bad, at+": "+fmt.Sprintf(format, args...)) }
	if ref, ok := s["$ref"].(string); ok {
		name := strings.TrimPrefix(ref, "#/$defs/")
		bad = append(bad, root.check(root["$defs"].(map[string]any)[name], v, at)...)
	}
	if c, ok := s["const"]; ok && !reflect.DeepEqual(c, v) {
		fail("is %v, not %v", v, c)
	}
	if list, ok := s["enum"].([]any); ok && !slices.Contains(list, v) {
		fail("%v is not in %v", v, list)
	}
	if kind, ok := s["type"].(string); ok && !hasType(v, kind) {
		fail("%v is not of type %s", v, kind)
		return bad
	}
	switch v := v.(type) {
	case string:
		if p, ok := s["pattern"].(string); ok && !regexp.MustCompile(p).MatchString(v) {
			fail("%q does not match %s", v, p)
		}
		if n, ok := s["minLength"].(float64); ok && len([]rune(v)) < int(n) {
			fail("%q is too short", v)
		}
	case float64:
		if n, ok := s["minimum"].(float64); ok && v < n {
			fail("%v is below %v", v, n)
		}
		if n, ok := s["maximum"].(float64); ok && v > n {
			fail("%v is above %v", v, n)
		}
	case []any:
		for i, e := range v {
			bad = append(bad, root.check(s["items"], e, fmt.Sprintf("%s[%d]", at, i))...)
		}
	case map[string]any:
		bad = append(bad, root.checkObject(s, v, at)...)
	}
	return bad
}

func (root Schema) checkObject(s, v map[string]any, at string) []string {
	var bad []string
	if s["properties"] == nil && s["additionalProperties"] == nil {
		return nil // the part behind a $ref has them
	}
	required, _ := s["required"].([]any)
	for _, name := range required {
		if _, ok := v[name.(string)]; !ok {
			bad = append(bad, fmt.Sprintf("%s: lacks %v", at, name))
		}
	}
	properties, _ := s["properties"].(map[string]any)
	for name, value := range v {
		if p, ok := properties[name]; ok {
			bad = append(bad, root.check(p, value, at+"."+name)...)
		} else if s["additionalProperties"] == false {
			bad = append(bad, fmt.Sprintf("%s: %s is not in the schema", at, name))
		} else {
			bad = append(bad, root.check(s["additionalProperties"], value, at+"."+name)...)
		}
	}
	sort.Strings(bad)
	return bad
}

func hasType(v any, kind string) bool {
	switch v := v.(type) {
	case string:
		return kind == "string"
	case bool:
		return kind == "boolean"
	case float64:
		return kind == "number" || kind == "integer" && v == math.Trunc(v)
	case []any:
		return kind == "array"
	case map[string]any:
		return kind == "object"
	}
	return false
}
