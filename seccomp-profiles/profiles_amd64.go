package profiles

import _ "embed"

//go:embed default.amd64.bpf
var defaultBPF string
