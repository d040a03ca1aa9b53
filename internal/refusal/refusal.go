// Package refusal is the one error type for "nothing was run": bad input, or a
// control that this host cannot give. The command line prints it as one error
// line and its hints, and exits with Exit.
package refusal

import (
	"errors"
	"fmt"
	"io/fs"
)

// The exit codes of docker run that a refusal can have.
const (
	ExitRefused       = 125 // sandglass refused or failed
	ExitNotExecutable = 126
	ExitNotFound      = 127
)

// Error says what is wrong and where, in lower case and without a full stop.
// Hints are lines that a user can paste.
type Error struct {
	What  string
	Hints []string
	Exit  int
}

func (e *Error) Error() string { return e.What }

// Newf is a refusal with exit code 125 and no hints yet.
func Newf(format string, args ...any) *Error {
	return &Error{What: Bounded(fmt.Sprintf(format, args...)), Exit: ExitRefused}
}

// Hint adds a line to paste. One that repeats too much for that is left out.
func (e *Error) Hint(format string, args ...any) *Error {
	if h := fmt.Sprintf(format, args...); len(h) <= mostLine {
		e.Hints = append(e.Hints, h)
	}
	return e
}

// Code replaces the exit code.
func (e *Error) Code(exit int) *Error {
	e.Exit = exit
	return e
}

// Text is what a user sees of an error: one line, and one for each hint.
func Text(what string, hints []string) string {
	text := "sandglass: error: " + Line(what) + "\n"
	for _, h := range hints {
		text += "hint: " + Line(h) + "\n"
	}
	return text
}

// Cause is err without the path that a message names already.
func Cause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// Within puts what was being done in front of a refusal, and makes one of any other
// error. The hints stay.
func Within(what string, err error) *Error {
	var r *Error
	if errors.As(err, &r) {
		return &Error{What: what + ": " + r.What, Hints: r.Hints, Exit: r.Exit}
	}
	return Newf("%s: %v", what, Cause(err))
}
