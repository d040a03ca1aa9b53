package sandbox

import (
	"sandglass/internal/refusal"
	"sandglass/pkg/hostid"
)

// NoHostID is the refusal of a root caller's run for which there is no id.
func NoHostID(err error) *refusal.Error {
	return refusal.Newf("no host id for the sandbox: %v", err).Hint("ls -ld %s   # must be root's, mode 0700", hostid.Dir)
}
