package sandbox

import (
	"context"
	"errors"
	"strconv"

	"golang.org/x/sys/unix"

	"sandglass/internal/refusal"
	"sandglass/pkg/artifacts"
	"sandglass/pkg/policy"
)

// Incomplete is the error of a run that ended as its Result says, of which not
// everything reached the caller: a stream that could not be written, artefacts
// past a limit or in the way of existing files. Result.Error has the same text,
// and Outcome and ExitCode stay those of the program. A caller that took half a
// result for a whole one would otherwise never know.
type Incomplete struct {
	What  string
	Hints []string
}

func (e *Incomplete) Error() string { return e.What }

// incomplete notes one thing that the caller did not get.
func (r *runner) incomplete(what string, hints ...string) {
	if r.lost == nil {
		r.lost = &Incomplete{What: what, Hints: hints}
		return
	}
	r.lost.What += "; " + what
	r.lost.Hints = append(r.lost.Hints, hints...)
}

var errAborted = errors.New("the collection was interrupted")

// collecting is the context of the collection. One that has ended the program
// does not keep the caller from what the program left until then, as a time
// limit does not; one that ends now does, and so does Abort.
func (r *runner) collecting(ctx context.Context) (context.Context, func()) {
	if ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	select {
	case <-r.spec.Abort: // a nil one never is
		cancel(errAborted)
	default:
		go func() {
			select {
			case <-r.spec.Abort:
				cancel(errAborted)
			case <-ctx.Done():
			}
		}()
	}
	return ctx, func() { cancel(nil) }
}

// notCollected notes each kind of trouble of a collection with its remedy.
func (r *runner) notCollected(err error) {
	if err == nil {
		return
	}
	kinds := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		kinds = joined.Unwrap()
	}
	for _, e := range kinds {
		if e == context.Canceled {
			e = errAborted
		}
		where := "--out " + quote(r.spec.Out)
		if r.spec.Keep {
			where = "artifacts"
		}
		r.incomplete(where+": "+e.Error(), r.remedy(e)...)
	}
}

// roomFor is the way to what was collected and left more bytes: twice the limit, as
// often as it takes. For what comes with a result that is a request's field.
func (r *runner) roomFor(left int64) string {
	was := r.spec.Limits.OutBytes
	most := policy.MaxSize
	if r.spec.Keep {
		most = policy.MaxKept
	}
	n := min(2*was, most)
	for n < most && n-was < left {
		n = min(2*n, most)
	}
	switch {
	case !r.spec.Keep:
		return "--out-limit " + policy.FormatSize(n)
	case n-was < left || n == was:
		return `"artifacts": {"dir": "DIR"}   # the result has room for ` + policy.FormatSize(most)
	}
	return `"artifacts": {"inline": "` + policy.FormatSize(n) + `"}`
}

func (r *runner) remedy(err error) []string {
	l := &r.spec.Limits
	switch e := err.(type) {
	case *artifacts.ExistsError:
		if e.Forceable < e.Count {
			return []string{"--out a new directory"}
		}
		return []string{"--force   # to overwrite them"}
	case *artifacts.LimitError:
		var hints []string
		for _, why := range e.Why {
			switch why.Limit {
			case artifacts.KindFiles:
				hints = append(hints, "--out-files "+strconv.FormatInt(max(2*l.OutFiles, l.OutFiles+int64(e.Count)), 10))
			case artifacts.KindBytes:
				hints = append(hints, r.roomFor(e.Bytes))
			case artifacts.KindDepth:
				hints = append(hints, "tar -cf /out/all.tar -C /work .   # at the program's end, instead of many levels")
			}
		}
		return hints
	case *artifacts.CopyError:
		if errors.Is(e.Err, unix.ENOSPC) || errors.Is(e.Err, unix.EDQUOT) {
			return []string{"df -h -- " + refusal.Shell(r.spec.Out)}
		}
		return []string{"ls -ld -- " + refusal.Shell(r.spec.Out)}
	}
	return []string{"tar -cf /out/all.tar -C /work .   # at the program's end: one file is collected soonest"}
}

// quote keeps control characters of a path off the terminal.
func quote(s string) string {
	if q := strconv.Quote(s); q != `"`+s+`"` {
		return q
	}
	return s
}
