// Command sandglass-mcp offers a model two tools, run_code and run_command, over
// the Model Context Protocol: docs/MCP.md. It is a binary of its own, which drives
// `sandglass session` as any tool would, so that HTTP and the protocol's SDK are
// linked nowhere near a sandbox.
//
// The model is the attacker. What it may choose is the program and the program's
// own files, arguments and variables, limits up to the operator's ceilings, and
// hosts that the operator offers. No field of a tool names a path of the host's.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"sandglass/internal/deliver"
	"sandglass/internal/refusal"
	"sandglass/pkg/result"
	"sandglass/pkg/sessionclient"
	"sandglass/pkg/verbs"
)

var version = "dev"

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	o, err := parse(args)
	fail := func(err error) int { return failed(err, o, args) }
	if err != nil {
		return fail(err)
	}
	if o.help {
		os.Stdout.WriteString(verbs.Find("mcp").Usage())
		return 0
	}
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	untilSignal(stop)

	b := newBox(o.sandglass, o.session)
	defer b.close()
	first, err := b.get(ctx) // what is wrong is told now, and not to the first call
	if err != nil {
		return fail(err)
	}
	if err := o.answerable(first.Hello.Limits["collect_bytes"]); err != nil {
		return fail(err)
	}
	if err := try(ctx, first); err != nil {
		return fail(err)
	}
	t, err := newTools(o, b, first.Hello.Languages)
	if err != nil {
		return fail(err)
	}
	if o.http != "" {
		err = serveHTTP(ctx, o, t)
	} else {
		go func() {
			deliver.WaitNoReader(os.Stdout)
			stop(signalled{syscall.SIGPIPE}) // as sandglass ends when its reader is gone
		}()
		err = serveStdio(ctx, t)
	}
	if sig := (signalled{}); errors.As(context.Cause(ctx), &sig) {
		return 128 + int(sig.Signal)
	}
	if err != nil {
		return fail(err)
	}
	return 0
}

// try runs a command that every host has: what is refused or fails whatever a call
// asks for, such as a limit that this host cannot hold, is told to the operator, who
// can do something about it. A program that an image lacks is no such thing.
func try(ctx context.Context, c *sessionclient.Client) error {
	res, err := c.Run(ctx, sessionclient.Request{Command: []string{"true"}, Options: map[string]any{"entrypoint": ""}}, nil)
	if e := new(sessionclient.Error); errors.As(err, &e) && (e.ExitCode == 126 || e.ExitCode == 127) {
		return nil
	}
	if err == nil && res.Outcome == result.Failed {
		err = &sessionclient.Error{What: res.Error, Hints: res.Hints, ExitCode: refusal.ExitRefused}
	}
	return err
}

// untilSignal ends the context with the first signal that ends a server, unless the
// caller has it ignored, as nohup(1) has SIGHUP: a Notify would undo that.
func untilSignal(stop context.CancelCauseFunc) {
	got := make(chan os.Signal, 1)
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if !signal.Ignored(sig) {
			signal.Notify(got, sig)
		}
	}
	// Who reads our replies, or the log, may go away. That must not kill us before
	// every run is ended: the write fails instead.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	go func() { stop(signalled{(<-got).(syscall.Signal)}) }()
}

// signalled is the end of a context by a signal.
type signalled struct{ syscall.Signal }

func (s signalled) Error() string { return s.Signal.String() }

// failed prints an error as sandglass does: one line, and hints to paste.
func failed(err error, o *options, args []string) int {
	if sig := (signalled{}); errors.As(err, &sig) {
		return 128 + int(sig.Signal) // while it was starting
	}
	hints := []string{"sandglass mcp --help"}
	var r *refusal.Error
	var e *sessionclient.Error
	if errors.As(err, &r) && len(r.Hints) > 0 {
		hints = r.Hints
	} else if errors.As(err, &e) && len(e.Hints) > 0 {
		hints = nil
		for _, h := range e.Hints {
			hints = append(hints, ofServer(h, o.session, args))
		}
	}
	os.Stderr.WriteString(refusal.Text(err.Error(), hints))
	return refusal.ExitRefused
}

// ofServer has a hint of the session's that goes before its command go before ours.
// On its stderr the session names that; its replies keep the example, for each library
// has a line of its own to put there.
func ofServer(hint string, session, args []string) string {
	own := refusal.Called("mcp", args...)
	return refusal.Own(refusal.Instead(hint, refusal.Called("session", session...), own), own)
}
