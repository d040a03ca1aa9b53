// Package profiles holds the seccomp filters that come with sandglass, compiled
// for the architecture that the binary is built for. The sources are the JSON
// files beside it; cmd/seccompc compiles them, README.md tells how.
package profiles

// Names are the profiles, the one that runs have by default first.
func Names() []string { return []string{"default", "debug", "minimal"} }

// Compiled is a profile as raw struct sock_filter, little endian; "" when there
// is none of that name.
func Compiled(name string) string {
	switch name {
	case "default":
		return defaultBPF
	case "debug":
		return debugBPF
	case "minimal":
		return minimalBPF
	}
	return ""
}
