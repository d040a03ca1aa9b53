package profiles

import _ "embed"

//go:embed default.json
var defaultSource string

//go:embed debug.json
var debugSource string

//go:embed minimal.json
var minimalSource string

// Source is the JSON that Compiled was made from, for those who want to read the
// rules or say them to another runtime; "" when there is none of that name. Runs
// do not use it.
func Source(name string) string {
	switch name {
	case "default":
		return defaultSource
	case "debug":
		return debugSource
	case "minimal":
		return minimalSource
	}
	return ""
}
