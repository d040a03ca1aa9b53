package profiles

import _ "embed"

//go:embed default.arm64.bpf
var defaultBPF string
