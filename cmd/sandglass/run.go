package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"sandglass/internal/refusal"
	"sandglass/pkg/policy"
	"sandglass/pkg/result"
	"sandglass/pkg/sandbox"
)

func runCommand(args []string) int {
	p, err := policy.ParseRun(args)
	if err != nil {
		return refuse(&p, err)
	}
	if p.Help {
		policy.Usage(os.Stdout)
		return 0
	}
	sink, err := openSink(&p)
	if err != nil {
		return fail(err)
	}
	spec := sandbox.Spec{Spec: p.Spec, Stdin: os.Stdin}
	if !p.JSON {
		spec.Stdout, spec.Stderr = os.Stdout, os.Stderr
	}
	ctx, sig, stop := untilSignal()
	defer stop()
	res, err := sandbox.Run(ctx, spec)
	if s := sig.Load(); s != 0 && res.Outcome == result.Canceled {
		res.SetExit(0, int(s))
	}
	return finish(&p, &res, err, sink)
}

// refuse ends a run whose command line is wrong, with a result where the part
// that could be read asks for one.
func refuse(p *policy.Parsed, err error) int {
	sink, sinkErr := openSink(p)
	var why *refusal.Error
	if sinkErr != nil || !errors.As(err, &why) {
		return fail(err)
	}
	res := sandbox.Result{Schema: result.Schema, Outcome: result.Refused, ExitCode: why.Exit, Error: why.What, Hints: why.Hints}
	return finish(p, &res, err, sink)
}

// finish prints the error, if one, and the result where it was asked for.
func finish(p *policy.Parsed, res *sandbox.Result, err error, sink *os.File) int {
	code := res.ExitCode
	switch {
	case err != nil && res.Outcome == result.Refused:
		printError(os.Stderr, res.Error, hinted(res.Hints))
	case err != nil:
		printError(os.Stderr, res.Error, res.Hints)
	default:
		remark(res)
	}
	if !p.JSON && sink == nil {
		return code // encoding/json is a good part of a short run
	}
	text, jsonErr := res.JSON()
	if jsonErr != nil {
		return fail(jsonErr)
	}
	if p.JSON {
		if _, err := os.Stdout.Write(text); err != nil {
			return refusal.ExitRefused
		}
	}
	if sink != nil {
		_, err := sink.Write(text)
		if cerr := sink.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return fail(refusal.Newf("writing the result: %v", err))
		}
	}
	return code
}

// remark tells a person what a bare exit code does not.
func remark(res *sandbox.Result) {
	switch res.Outcome {
	case result.Timeout:
		note("stopped: the time limit was reached after %d ms", res.WallMS)
	case result.CPUTime:
		note("stopped: the CPU time limit was reached")
	case result.Memory:
		note("stopped: out of memory (limit %s)", policy.FormatSize(res.Limits["memory"].Value))
	case result.Output:
		note("stopped: the output limit was reached")
	}
	if res.Outcome == result.Exited && (res.Stdout.Truncated || res.Stderr.Truncated) {
		note("output was cut at %s", policy.FormatSize(res.Limits["output"].Value))
	}
}

// openSink opens where the result goes before anything runs. A file is made
// anew beside its name and never through a link that stands there.
func openSink(p *policy.Parsed) (*os.File, error) {
	if p.ResultFD >= 0 {
		f := os.NewFile(uintptr(p.ResultFD), "result")
		if _, err := f.Stat(); err != nil {
			return nil, refusal.Newf("--result-fd %d is not open", p.ResultFD).Hint("sandglass run --result-fd 3 … 3>result.json")
		}
		syscall.CloseOnExec(p.ResultFD)
		return f, nil
	}
	if p.ResultFile == "" {
		return nil, nil
	}
	f, err := os.OpenFile(p.ResultFile, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o644)
	if err != nil {
		return nil, refusal.Newf("--result: %v", err).Hint("--result must name a file that can be written")
	}
	return f, nil
}

// cleanTime is how long more signals are ignored after the first.
const cleanTime = 2 * time.Second

// untilSignal is a context that ends with the first SIGINT, SIGTERM or SIGHUP.
func untilSignal() (context.Context, *atomic.Int32, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var got atomic.Int32
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	// A reader that went away (sandglass run … | head) must not kill sandglass
	// before it has cleaned up: the write fails instead, and the program meets
	// the SIGPIPE. Caught and not ignored, since init would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	go func() {
		if s, ok := <-ch; ok {
			got.Store(int32(s.(syscall.Signal)))
			cancel()
			// timeout(1) sends its signal twice, to its child and to the group: a
			// second one must not keep us from cleaning up. After that time one ends
			// sandglass at once, and the sandbox with it, should a reader of the
			// output hold us up.
			time.AfterFunc(cleanTime, func() { signal.Stop(ch) })
		}
	}()
	return ctx, &got, func() { signal.Stop(ch); cancel() }
}
