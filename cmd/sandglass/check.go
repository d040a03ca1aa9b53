package main

import (
	"fmt"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/check"
	"sandglass/pkg/sandbox"
)

func checkCommand(args []string) int {
	o, asJSON, err := parseCheck(args)
	if err != nil {
		return fail(err)
	}
	if o == nil {
		return emit(usage("check"))
	}
	until := untilSignal(nil)
	defer until.stop()
	lines, err := check.Run(until.ctx, *o, func(l check.Line) {
		if !asJSON {
			fmt.Println(l)
		}
	})
	if s := until.got.Load(); s != 0 {
		return 128 + int(s)
	}
	if err != nil {
		return fail(err)
	}
	text := summary(lines) + "\n"
	if asJSON {
		var b strings.Builder
		if err := check.WriteJSON(&b, lines); err != nil {
			return fail(err)
		}
		text = b.String()
	}
	if code := emit(text); code != 0 {
		return code
	}
	if !check.Held(lines) {
		return 1
	}
	return 0
}

// parseCheck returns no options when help was asked for.
func parseCheck(args []string) (o *check.Options, asJSON bool, err error) {
	o = &check.Options{}
	for i := 0; i < len(args); i++ {
		name, value, inline := strings.Cut(args[i], "=")
		switch {
		case args[i] == "--json":
			asJSON = true
		case args[i] == "--help" || args[i] == "-h":
			return nil, false, nil
		case name == "--allow-degraded":
			if !inline {
				if i++; i == len(args) {
					return nil, false, refusal.Newf("--allow-degraded: the value is missing").Hint("--allow-degraded memory,cpu")
				}
				value = args[i]
			}
			o.AllowDegraded = append(o.AllowDegraded, strings.Split(value, ",")...)
		default:
			return nil, false, refusal.Newf("check: unknown argument %q", args[i]).Hint("sandglass check --help")
		}
	}
	for i := range o.AllowDegraded { // "memory, cpu" as well, as run takes it
		o.AllowDegraded[i] = strings.TrimSpace(o.AllowDegraded[i])
	}
	return o, asJSON, checkNames(o.AllowDegraded)
}

// checkNames leaves the judgement to the policy, which every sandbox of the
// check will meet anyway; here it comes before the bait is laid out.
func checkNames(list []string) error {
	s := sandbox.Default()
	s.Program.Command = []string{"check"}
	s.AllowDegraded = list
	return s.Validate()
}

func summary(lines []check.Line) string {
	failed, weak := 0, 0
	for _, l := range lines {
		switch {
		case !l.Held:
			failed++
		case l.Weak:
			weak++
		}
	}
	return fmt.Sprintf("%d controls: %d held, %d weak, %d FAILED", len(lines), len(lines)-failed-weak, weak, failed)
}
