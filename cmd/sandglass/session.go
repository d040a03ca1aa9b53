package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"sandglass/internal/deliver"
	"sandglass/internal/refusal"
	"sandglass/pkg/plan"
	"sandglass/pkg/policy"
	"sandglass/pkg/pool"
	"sandglass/pkg/sandbox"
	"sandglass/pkg/sandbox/outside"
	"sandglass/pkg/session"
)

func sessionCommand(args []string) int {
	s, err := policy.ParseSession(args, int64(runtime.NumCPU()))
	if err != nil {
		return fail(err)
	}
	if s.Help {
		return emit(usage("session"))
	}
	until := untilSignal(nil)
	defer until.stop()
	ctx, cancel := context.WithCancelCause(until.ctx)
	defer cancel(nil)
	go func() {
		deliver.WaitNoReader(os.Stdout)
		cancel(errors.Join(session.ErrGone, syscall.EPIPE))
	}()
	c := session.Config{Version: version, Languages: plan.Languages(), Defaults: s.Defaults, Running: s.Running, Queued: s.Queued}
	run, tidy := sandbox.Run, func() error { return nil }
	if len(s.Warm) > 0 {
		p, err := pool.New(ctx, pool.Config{Spec: sandbox.Spec{Spec: s.Base}, Sizes: s.Warm, MaxAge: s.WarmAge, Failing: failing})
		if err != nil {
			return poolCode(ctx, err, int(until.got.Load()))
		}
		tidy = p.Close
		run, c.Waiting, c.Warm, c.Full = p.Run, p.Waiting, s.Warm, p.Full()
	}
	c.Run = func(ctx context.Context, spec sandbox.Spec) (sandbox.Result, error) {
		spec.Outside, spec.Abort = outside.New, until.second
		return run(ctx, spec)
	}
	err = session.Serve(ctx, c, os.Stdin, os.Stdout)
	left := tidy()
	if code := sessionCode(err, int(until.got.Load())); code != 0 || left == nil {
		return code
	}
	return fail(left)
}

// failing tells of a kind of sandbox that cannot be kept ready.
func failing(w policy.Warm, why error) {
	fail(refusal.Within(fmt.Sprintf("--warm %s=%d: no such sandbox can be kept ready, runs are made without", w.Kind(), w.N), why))
}

// poolCode is what a session exits with that has no pool: its sandboxes cannot be
// made, or it was ended while the first of them were.
func poolCode(ctx context.Context, err error, sig int) int {
	switch gone := context.Cause(ctx); {
	case sig != 0:
		return 128 + sig
	case gone != nil:
		return stdoutCode(gone)
	}
	return fail(err)
}

// sessionCode is what a session exits with.
func sessionCode(err error, sig int) int {
	switch {
	case sig != 0:
		return 128 + sig
	case err == nil:
		return 0
	case errors.Is(err, session.ErrStuck):
		return fail(refusal.Newf("writing stdout: %v", err).Hint("read the replies until stdout ends   # while the requests are written, and after"))
	case errors.Is(err, session.ErrGone):
		return stdoutCode(err)
	}
	return fail(refusal.Newf("reading stdin: %v", err).Hint("sandglass session --help"))
}
