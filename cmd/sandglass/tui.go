package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"sandglass/internal/refusal"
)

// The rules of what sandglass itself says:
//
//   - stdout belongs to the program; ours is only what was asked for there
//     (--json, plan, check, version).
//   - On stderr an error is one line, "sandglass: error: what, where", in lower
//     case and without a full stop, followed by "hint:" lines that can be pasted.
//   - Notes and progress go to stderr only when it is a terminal.
//   - Text that comes from outside is quoted where it is put into a line.

func printError(w io.Writer, what string, hints []string) {
	fmt.Fprintln(w, "sandglass: error: "+what)
	for _, h := range hints {
		fmt.Fprintln(w, "hint: "+h)
	}
}

// fail prints an error and returns its exit code.
func fail(err error) int {
	var r *refusal.Error
	if errors.As(err, &r) {
		printError(os.Stderr, r.What, hinted(r.Hints))
		return r.Exit
	}
	printError(os.Stderr, err.Error(), nil)
	return refusal.ExitRefused
}

// hinted makes sure that no refusal is a dead end.
func hinted(hints []string) []string {
	if len(hints) == 0 {
		return []string{"sandglass run --help"}
	}
	return hints
}

// note says something that is no error, to people only.
func note(format string, args ...any) {
	if st, err := os.Stderr.Stat(); err == nil && st.Mode()&os.ModeCharDevice != 0 {
		fmt.Fprintf(os.Stderr, "sandglass: "+format+"\n", args...)
	}
}
