package main

import (
	"bytes"
	"fmt"
	"os"

	"sandglass/internal/refusal"
	"sandglass/pkg/learn"
	"sandglass/pkg/policy"
	"sandglass/pkg/result"
	"sandglass/pkg/sandbox"
	"sandglass/pkg/sandbox/outside"
	"sandglass/pkg/seccomp/profile"
)

// learnCommand runs a program and writes a profile of what it used. All that can
// be refused is refused before the program runs.
func learnCommand(args []string) int {
	p, err := policy.ParseLearn(args)
	if err != nil {
		return fail(err)
	}
	if p.Help {
		return emit(usage("profile"))
	}
	old, err := learnFrom(&p)
	if err != nil {
		return fail(err)
	}
	to, err := openFile(&p, "--output", p.Output)
	if err != nil {
		return fail(err)
	}
	defer to.Close()
	log, err := learn.New()
	if err != nil {
		return fail(err)
	}
	if old != nil && !log.Within(old) {
		return fail(refusal.Newf("--merge: %s allows more than the default profile, and so would what is learned", refusal.Word(p.Merge)).
			Hint("sandglass profile diff default %s   # what it is", refusal.Shell(p.Merge)))
	}
	p.Spec.ExplainDenials = true
	code, res := observe(&p, log)
	if res.Outcome == result.Refused || res.Outcome == result.Failed {
		return code
	}
	learned, err := log.Profile()
	if err == nil && old != nil {
		learned, err = profile.Merge(old, learned)
	}
	if err != nil {
		return fail(err)
	}
	if err := to.Put(bytes.NewReader(learned.Format())); err != nil {
		return fail(refusal.Newf("--output: writing %s: %v", refusal.Word(p.Output), err))
	}
	return code
}

// observe is the run.
func observe(p *policy.Parsed, log *learn.Log) (int, *sandbox.Result) {
	sink, err := openSink(p)
	if err != nil {
		return fail(err), &sandbox.Result{Outcome: result.Refused}
	}
	term, err := enter(p)
	if err != nil {
		return refuseInto(p, err, sink), &sandbox.Result{Outcome: result.Refused}
	}
	defer term.leave()
	until := newSignals(term.leave)
	defer until.stop()
	res, _, err := supervise(p, until, term, sandbox.Spec{Spec: p.Spec, Outside: outside.New, Observe: log.Observe})
	return finish(p, &res, err, sink), &res
}

// learnFrom checks where the profile goes, and reads what it is added to.
func learnFrom(p *policy.Parsed) (*profile.Profile, error) {
	switch {
	case p.Output == "":
		return nil, refusal.Newf("profile learn: -o is missing: where does the profile go?").Hint("sandglass profile learn -o my.json -- COMMAND")
	case p.Spec.Seccomp != "default":
		return nil, refusal.Newf("profile learn: --seccomp: the program runs under the default profile, of which what is learned is a part").
			Hint("leave --seccomp out")
	}
	if err := free("--output", p.Output, p.Merge == p.Output); err != nil {
		return nil, err.Hint("--merge %s   # to add to it", refusal.Shell(p.Output))
	}
	if p.Merge == "" {
		return nil, nil
	}
	return loadProfile(p.Merge)
}

// free refuses to replace a file that nobody has said may be replaced.
func free(flag, file string, replace bool) *refusal.Error {
	if _, err := os.Lstat(file); err == nil && !replace {
		return refusal.Newf("%s: %s is there already", flag, fmt.Sprintf("%q", file))
	}
	return nil
}
