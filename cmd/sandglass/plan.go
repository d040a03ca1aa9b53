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
		policy.Usage(os.Stdout)
		return 0
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
	if _, err := os.Stdout.Write(text); err != nil {
		return fail(err)
	}
	return 0
}
