package probes

// ForeignCalls names a second interface for system calls that programs of this
// architecture can use, "" for none. x32Bit marks its numbers.
const (
	ForeignCalls = "x32"
	x32Bit       = 1 << 30
)
