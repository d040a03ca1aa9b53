package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const null = "null"

// nullable lets null stand for every field that may be left out, as models write it,
// and for none that has to be there.
func nullable(s *jsonschema.Schema) {
	for name, p := range s.Properties {
		types := append(slices.Clone(p.Types), p.Type)
		kind := types[slices.IndexFunc(types, func(t string) bool { return t != "" && t != null })]
		if slices.Contains(s.Required, name) {
			p.Type, p.Types = kind, nil
		} else {
			p.Type, p.Types = "", []string{null, kind}
		}
	}
}

// noNulls refuses a call with a null elsewhere, for which the SDK has no words.
func (t *tools) noNulls(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		call, ok := req.(*mcp.CallToolRequest)
		if !ok || !bytes.Contains(call.Params.Arguments, []byte(null)) {
			return next(ctx, method, req)
		}
		var args any
		if s := t.inputs[call.Params.Name]; s != nil && json.Unmarshal(call.Params.Arguments, &args) == nil && args != nil {
			if at, kind := misplaced(s, args, ""); at != "" {
				r := &mcp.CallToolResult{}
				r.SetError(fmt.Errorf("%s is null, and has to be of the type %s", at, kind))
				return r, nil
			}
		}
		return next(ctx, method, req)
	}
}

// misplaced is where the first null is that a schema has no room for, and what is to
// be there; "" for none. What no schema knows the SDK refuses.
func misplaced(s *jsonschema.Schema, v any, at string) (where, kind string) {
	if s == nil {
		return "", ""
	}
	switch v := v.(type) {
	case nil:
		if s.Type != "" {
			return at, s.Type
		}
	case []any:
		for i, e := range v {
			if where, kind = misplaced(s.Items, e, fmt.Sprintf("%s[%d]", at, i)); where != "" {
				return where, kind
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			p, inside := s.Properties[name], name
			if p == nil {
				p, inside = s.AdditionalProperties, fmt.Sprintf("%.64q", name) // a variable's
			}
			if at != "" {
				inside = at + "." + inside
			}
			if where, kind = misplaced(p, v[name], inside); where != "" {
				return where, kind
			}
		}
	}
	return "", ""
}
