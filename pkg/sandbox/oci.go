package sandbox

import (
	"sandglass/internal/refusal"
	"sandglass/pkg/oci"
	"sandglass/pkg/plan"
)

// OCI says what Run would do with this Spec in the words of the OCI runtime
// specification, for a runtime that root starts. Close the bundle.
func OCI(s Spec) (*oci.Bundle, error) {
	if err := CheckCaller(); err != nil {
		return nil, err
	}
	if len(s.Hosts) > 0 {
		return nil, refusal.Newf("--oci: a list of hosts has no words in the OCI runtime specification: its relay is sandglass itself").
			Hint("leave --allow-host out: what is written is a sandbox without a network")
	}
	if len(s.Files) > 0 {
		return nil, refusal.Newf("--oci: files are put into a scratch that is made for each run, which the OCI runtime specification has no words for").
			Hint("-v \"$PWD/data:/data:ro\"")
	}
	p, err := plan.Build(s.Spec)
	if err != nil {
		return nil, err
	}
	b, err := oci.New(p)
	if err != nil {
		p.Close()
	}
	return b, err
}
