package profile

import (
	"bytes"
	"encoding/json"
	"slices"

	"sandglass/internal/refusal"
)

// keys are all keys of the form, spelled exactly.
var keys = [...]string{
	"defaultAction", "defaultErrnoRet", "architectures", "syscalls",
	"comment", "names", "action", "errnoRet", "args", "otherwise",
	"index", "value", "valueTwo", "op",
}

// strictKeys refuses what encoding/json overlooks: a key that is there twice,
// of which the last would win silently, and a key in another spelling.
func strictKeys(source []byte) error {
	type object struct {
		seen    map[string]bool // nil for an array
		wantKey bool
	}
	var stack []object
	dec := json.NewDecoder(bytes.NewReader(source))
	dec.UseNumber()
	for {
		token, err := dec.Token()
		if err != nil {
			return refusal.Newf("profile: %v", err)
		}
		top := len(stack) - 1
		if key, ok := token.(string); ok && top >= 0 && stack[top].wantKey {
			if err := checkKey(key, stack[top].seen); err != nil {
				return err
			}
			stack[top].wantKey = false
			continue
		}
		switch token {
		case json.Delim('{'):
			stack = append(stack, object{seen: map[string]bool{}, wantKey: true})
			continue
		case json.Delim('['):
			stack = append(stack, object{})
			continue
		case json.Delim('}'), json.Delim(']'):
			stack = stack[:top]
		}
		if len(stack) == 0 {
			return nil
		}
		// A value has ended: inside an object a key comes next.
		stack[len(stack)-1].wantKey = stack[len(stack)-1].seen != nil
	}
}

func checkKey(key string, seen map[string]bool) error {
	if !slices.Contains(keys[:], key) {
		return refusal.Newf("profile: unknown key %q", key)
	}
	if seen[key] {
		return refusal.Newf("profile: key %q twice in one object", key)
	}
	seen[key] = true
	return nil
}
