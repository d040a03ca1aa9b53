package main

import (
	"os"

	"sandglass/pkg/policy"
	"sandglass/pkg/sandbox"
)

// planCommand prints what a run with the same flags would do.
func planCommand(args []string) int {
	p, err := policy.ParsePlan(args)
	if err != nil {
		return fail(err)
	}
	if p.Help {
		return emit(usage("plan"))
	}
	if p.OCI || p.Bundle != "" {
		return ociPlan(&p)
	}
	e, err := sandbox.Explain(sandbox.Spec{Spec: p.Spec})
	if err != nil {
		return fail(err)
	}
	text := []byte(e.Text())
	if p.JSON {
		if text, err = e.JSON(); err != nil {
			return fail(err)
		}
	}
	return emit(string(text))
}

// ociPlan prints or writes the plan for another runtime, and tells a person what
// is lost: without these lines it would look like the same protection.
func ociPlan(p *policy.Parsed) int {
	b, err := sandbox.OCI(sandbox.Spec{Spec: p.Spec})
	if err != nil {
		return fail(err)
	}
	defer b.Close()
	text, err := b.Config.JSON()
	if err != nil {
		return fail(err)
	}
	if p.Bundle != "" {
		if err := b.Write(p.Bundle); err != nil {
			return fail(err)
		}
	}
	if !p.Quiet && personal(os.Stderr) {
		for _, n := range b.Notes {
			note("not in the OCI form: %s", n)
		}
	}
	if !p.OCI {
		return 0
	}
	return emit(string(text))
}
