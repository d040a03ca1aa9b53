package probes

// ForeignCalls names a second interface for system calls that programs of this
// architecture can use: none here. 32-bit ARM is one of other programs.
const (
	ForeignCalls = ""
	x32Bit       = 0
)
