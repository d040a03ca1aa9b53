package profiles

import _ "embed"

//go:embed default.amd64.bpf
var defaultBPF string

//go:embed debug.amd64.bpf
var debugBPF string

//go:embed minimal.amd64.bpf
var minimalBPF string
