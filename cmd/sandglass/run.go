package main

import (
	"errors"
	"os"

	"sandglass/internal/deliver"
	"sandglass/internal/refusal"
	"sandglass/pkg/policy"
	"sandglass/pkg/result"
	"sandglass/pkg/sandbox"
	"sandglass/pkg/sandbox/outside"
)

func runCommand(args []string) int {
	p, err := policy.ParseRun(args)
	if err != nil {
		return refuse(&p, err)
	}
	if p.Help {
		return emit(usage("run"))
	}
	sink, err := openSink(&p)
	if err != nil {
		return fail(err)
	}
	term, err := enter(&p)
	if err != nil {
		return refuseInto(&p, err, sink)
	}
	defer term.leave()
	until := newSignals(term.leave)
	defer until.stop()
	res, sig, err := supervise(&p, until, term, sandbox.Spec{Spec: p.Spec, Outside: outside.New})
	code := finish(&p, &res, err, sink)
	if _, lost := err.(*sandbox.Incomplete); lost && sig != 0 {
		return 128 + sig // the caller ended the collection, or the program before it
	}
	return code
}

// supervise runs spec with the caller's streams and signals, and says which
// signal came, 0 for none.
func supervise(p *policy.Parsed, until *signals, term *tty, spec sandbox.Spec) (res sandbox.Result, sig int, err error) {
	var stdout, stderr result.Capture
	spec.Stdin, spec.Stdout, spec.Stderr = os.Stdin, os.Stdout, os.Stderr
	if p.JSON {
		spec.Stdout, spec.Stderr = &stdout, &stderr
	}
	spec.Abort, spec.Guard = until.second, until.catch
	if term != nil {
		until.catch() // the terminal is not as it was
	}
	term.join(&spec)
	res, err = runSpec(until.ctx, spec)
	term.leave() // before a line of ours is printed there
	if p.JSON {
		res.Stdout.Attach(&stdout)
		res.Stderr.Attach(&stderr)
	}
	sig = int(until.got.Load())
	if sig != 0 && res.Outcome == result.Canceled {
		res.SetExit(0, sig)
	}
	return res, sig, err
}

// refuse ends a run whose command line is wrong, with a result where the part
// that could be read asks for one.
func refuse(p *policy.Parsed, err error) int {
	to, sinkErr := openSink(p)
	if sinkErr != nil {
		return fail(err)
	}
	return refuseInto(p, err, to)
}

// refuseInto is refuse where the result's file is open already.
func refuseInto(p *policy.Parsed, err error, to sink) int {
	var why *refusal.Error
	if !errors.As(err, &why) {
		return fail(err)
	}
	res := sandbox.Result{Schema: result.Schema, Outcome: result.Refused, ExitCode: why.Exit, Error: why.What, Hints: why.Hints}
	return finish(p, &res, err, to)
}

// finish prints the error, if one, and the result where it was asked for.
func finish(p *policy.Parsed, res *sandbox.Result, err error, to sink) int {
	code := res.ExitCode
	_, lost := err.(*sandbox.Incomplete)
	if err == nil || lost {
		remark(p, res)
		explainDenials(p, res)
	}
	if err != nil && res.Outcome == result.Refused && code == refusal.ExitNotFound {
		res.Hints = p.NotFound(res.Error, res.Hints)
	}
	switch {
	case err != nil && res.Outcome == result.Refused:
		printError(os.Stderr, res.Error, hinted(res.Hints))
	case err != nil:
		printError(os.Stderr, res.Error, res.Hints)
	}
	if lost {
		code = refusal.ExitRefused
	}
	if p.JSON {
		if failed := stdoutCode(deliver.All(os.Stdout, res)); failed != 0 {
			code = failed
		}
	}
	if to != nil {
		err := to.Put(res)
		if cerr := to.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return fail(refusal.Newf("writing the result: %v", err))
		}
	}
	return code
}
