package profiles

import _ "embed"

//go:embed default.arm64.bpf
var defaultBPF string

//go:embed debug.arm64.bpf
var debugBPF string

//go:embed minimal.arm64.bpf
var minimalBPF string
