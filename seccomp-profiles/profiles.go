// Package profiles holds the seccomp filters that come with sandglass, compiled
// for the architecture that the binary is built for. The sources are the JSON
// files beside it; cmd/seccompc compiles them, README.md tells how.
package profiles

// Default is the compiled default.json: raw struct sock_filter, little endian.
func Default() string { return defaultBPF }
