package main

import (
	"sandglass/pkg/policy"
	"sandglass/pkg/sandbox"
)

const planUsage = `usage: sandglass plan [FLAGS] [host|DIR] COMMAND [ARG...]
       and every other form of sandglass run, with the same flags

Prints what a run with these flags would mount, filter, limit and map, and runs
nothing. Exit code 0: the command line is good; a run on this host may still be
refused, and then the last line says why. 125, 126, 127: as a run's refusal.

  --json    the plan as one JSON object: the same flags on the same host give the
            same bytes, for diffing. It is no result, and --result is not written.

The other flags: sandglass help run
`

// planCommand prints what a run with the same flags would do.
func planCommand(args []string) int {
	p, err := policy.ParsePlan(args)
	if err != nil {
		return fail(err)
	}
	if p.Help {
		return emit(planUsage)
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
