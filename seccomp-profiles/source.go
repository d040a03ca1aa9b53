package profiles

import _ "embed"

//go:embed default.json
var source string

// Source is default.json, which Default was compiled from: for those who want
// to read the rules or say them to another runtime. Runs do not use it.
func Source() string { return source }
