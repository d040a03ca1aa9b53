package main

import (
	"os"

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
  --oci     the same policy as the config.json of an OCI runtime (runc, crun). What
            that form cannot say is lost, and told on a terminal: the limits on time
            and output, one scratch for all places, Landlock, an id for each run.
  --bundle DIR
            make the directory DIR with that config.json and the root that it needs:
            runc run --bundle DIR NAME, as root

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
