//go:build sandglass_warm

package main

import (
	"context"
	"time"

	"sandglass/pkg/runtimes"
	"sandglass/pkg/sandbox"
)

// runSpec of a binary that only tests build: each run that can has a sandbox that
// was made before its program is handed over, as one of session --warm. So every
// suite can be run that way as well.
func runSpec(ctx context.Context, s sandbox.Spec) (sandbox.Result, error) {
	lang := ""
	if l, ok := runtimes.Lang(s.Program.Lang); ok && len(s.Program.Code) > 0 && runtimes.Waits(l) && len(s.Program.Args)+len(s.Files) == 0 {
		lang = l
	}
	held, err := sandbox.Prepare(ctx, s, lang, time.Minute)
	if err != nil {
		return sandbox.Run(ctx, s) // is refused as well, or cannot wait
	}
	res, began, err := runHeld(ctx, held, s)
	if began {
		return res, err
	}
	return sandbox.Run(ctx, s)
}

func runHeld(ctx context.Context, held *sandbox.Held, s sandbox.Spec) (res sandbox.Result, began bool, err error) {
	p, err := sandbox.Plan(s)
	if err != nil || !held.Fits(p) || !held.Fresh() {
		held.Close()
		if err == nil {
			p.Close()
		}
		return res, false, nil
	}
	defer p.Close()
	res, began, err = held.Run(ctx, p)
	if left := held.Close(); err == nil {
		err = left
	}
	return res, began, err
}
