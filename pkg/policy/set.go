package policy

import (
	"strconv"
	"strings"
	"time"

	"sandglass/internal/refusal"
)

// durationField shortens the table's signatures.
type durationField = *time.Duration

func text(at func(*Parsed) *string) func(*Parsed, string) error {
	return func(p *Parsed, v string) error {
		if v == "" {
			return refusal.Newf("the value is empty")
		}
		*at(p) = v
		return nil
	}
}

func boolean(at func(*Parsed) *bool) func(*Parsed, string) error {
	return func(p *Parsed, v string) error {
		b, err := parseBool(v)
		*at(p) = b
		return err
	}
}

func size(at func(*Limits) *int64) func(*Parsed, string) error {
	return func(p *Parsed, v string) error { return setInto(at(&p.Spec.Limits), v, ParseSize) }
}

func count(at func(*Limits) *int64) func(*Parsed, string) error {
	return func(p *Parsed, v string) error { return setInto(at(&p.Spec.Limits), v, ParseCount) }
}

func duration(at func(*Limits) durationField) func(*Parsed, string) error {
	return func(p *Parsed, v string) error { return setInto(at(&p.Spec.Limits), v, ParseDuration) }
}

// unlimited is for a limit that is not there by default: to ask for none is to
// leave the flag out.
func unlimited(flag string, set func(*Parsed, string) error) func(*Parsed, string) error {
	return func(p *Parsed, v string) error {
		err := set(p, v)
		if e, ok := err.(*refusal.Error); ok && strings.Contains(e.What, "is not a limit") {
			return refusal.Newf("%s", e.What).Hint("leave %s out: without it there is no limit", flag)
		}
		return err
	}
}

// setInto leaves the field alone when the value is bad.
func setInto[T any](field *T, v string, parse func(string) (T, error)) error {
	n, err := parse(v)
	if err == nil {
		*field = n
	}
	return err
}

// only accepts the values that say what is so anyway, and gives why for others.
func only(why string, allowed ...string) func(*Parsed, string) error {
	return func(_ *Parsed, v string) error {
		for _, a := range allowed {
			if v == a {
				return nil
			}
		}
		return refusal.Newf("%s is refused: %s", quote(v), why)
	}
}

// always is a boolean that cannot be turned off.
func always(why string) func(*Parsed, string) error {
	return func(_ *Parsed, v string) error {
		on, err := parseBool(v)
		if err == nil && !on {
			return refusal.Newf("cannot be turned off: %s", why)
		}
		return err
	}
}

func parseBool(v string) (bool, error) {
	b, err := strconv.ParseBool(v)
	if err != nil {
		return false, refusal.Newf("%s is neither true nor false", quote(v))
	}
	return b, nil
}

// shellWords are the words of a command line for a hint, cut where they are
// too many to be read.
func shellWords(words []string) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(refusal.Shell(w))
	}
	if b.Len() > 200 {
		return "COMMAND"
	}
	return b.String()
}
