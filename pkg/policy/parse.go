package policy

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sandglass/internal/refusal"
	"sandglass/pkg/hostpath"
	"sandglass/pkg/image"
)

// Parsed is a command line: a valid Spec and what the caller wants to see.
type Parsed struct {
	Spec       Spec
	JSON       bool   // --json
	OCI        bool   // --oci, of plan
	Bundle     string // --bundle, of plan: absolute path, "" for none
	Output     string // --output, of profile learn: absolute path
	Merge      string // --merge, of profile learn: absolute path, "" for none
	MaxRunning int64  // --max-running, of session
	MaxQueued  int64  // --max-queued, of session
	Warm       []Warm // --warm, of session
	WarmAge    time.Duration
	ResultFile string // absolute path, "" for none
	ResultFD   int    // at least 3; -1 for none
	Quiet      bool   // nothing of sandglass's own on stderr but errors
	Help       bool   // the help text is wanted; nothing else is filled or checked

	pending *pending
	meant   meant
}

// pending is what can only be judged when all flags are read.
type pending struct {
	given      map[string]string // flag name: value, to catch a change of mind
	image      bool
	named      string       // --image by name or digest, not looked up yet
	config     image.Config // of an imported image
	entrypoint *string      // --entrypoint
	workdir    bool         // --workdir was given
	stdin      bool         // "-": the code comes from stdin
	memorySwap int64
	env        []string
	envFiles   []string
	// fileChecked: ResultFile is absolute and, as named, in no writable mount.
	fileChecked bool
}

// Host is what a command line may ask of the host: tests give their own.
type Host struct {
	Stdin     io.Reader
	Stat      func(string) (fs.FileInfo, error) // follows links, as the shell does
	Open      func(string) (fs.File, error)     // a regular file, by a path without links
	Resolve   func(string) (string, error)      // the path without links
	Getwd     func() (string, error)
	LookupEnv func(string) (string, bool)
	// Image is the digest and the settings of an imported image; image.ErrNone for none.
	Image func(ref string) (string, image.Config, error)
	// Images are the names and the digests of all of them, for hints.
	Images func() (names, ids []string)
}

// OSHost is the real one.
func OSHost() Host {
	open := func(name string) (fs.File, error) {
		f, _, err := hostpath.OpenRegular(name)
		return f, err
	}
	// Not os.Getwd, which believes $PWD: a relative path then led through its links.
	return Host{Stdin: os.Stdin, Stat: os.Stat, Open: open, Resolve: filepath.EvalSymlinks, Getwd: unix.Getwd, LookupEnv: os.LookupEnv, Image: image.Lookup, Images: image.All}
}

// ParseRun reads the arguments that follow "sandglass run". An error is a
// *refusal.Error; nothing was run or written.
func ParseRun(args []string) (Parsed, error) { return OSHost().Parse("run", args) }

// ParsePlan reads the arguments that follow "sandglass plan", which are run's.
func ParsePlan(args []string) (Parsed, error) { return OSHost().Parse("plan", args) }

// ParseLearn reads the arguments that follow "sandglass profile learn": run's,
// and where the profile goes.
func ParseLearn(args []string) (Parsed, error) { return OSHost().Parse(learnCommand, args) }

const learnCommand = "profile learn"

// Parse is ParseRun on this host; command is only named in hints.
//
// As in docker run the first positional ends the flags, and "--" does. After a
// lone "-" (code on stdin) flags may go on, because the code is elsewhere.
// Unlike docker a flag with one value may not be given a second, different one:
// the last would win silently, and a wrapper's limit be undone by what follows.
func (h Host) Parse(command string, args []string) (Parsed, error) {
	p := Parsed{Spec: Default(), ResultFD: -1, pending: &pending{given: map[string]string{}}}
	r := reader{p: &p, command: command}
	r.table = sync.OnceValue(func() []Flag {
		switch command {
		case "plan":
			return append(RunFlags(), PlanFlags()...)
		case learnCommand:
			return append(RunFlags(), LearnFlags()...)
		}
		return RunFlags()
	})
	rest, verbatim, err := r.flags(args)
	if err == nil && p.Help {
		return Parsed{Help: true, ResultFD: -1}, nil
	}
	if err == nil {
		err = h.complete(&p, func() error { return h.program(&p, rest, verbatim) })
	}
	if err != nil {
		return p.refused(), begin(err, func(string) string { return p.Spec.Flags() }) // the root is among the words
	}
	p.pending = nil
	return p, nil
}

// refused keeps of a command line that is wrong where the caller wants to read
// so, as far as it was understood: a tool that asked for JSON gets it. A file
// counts only once all mounts are known, among which it must not lie.
func (p *Parsed) refused() Parsed {
	r := Parsed{JSON: p.JSON, ResultFD: p.ResultFD}
	if p.pending.fileChecked && p.ResultFile != "" {
		// What it takes to judge where the file really is.
		r.ResultFile, r.Spec.Mounts, r.Spec.Home = p.ResultFile, p.Spec.Mounts, p.Spec.Home
	}
	return r
}

// same runs set unless key already has this value, and refuses another one.
func (p *Parsed) same(key, v string, set func(*Parsed, string) error) error {
	if old, ok := p.pending.given[key]; ok && old != v {
		return refusal.Newf("given twice with different values: %s and %s", quote(old), quote(v))
	}
	p.pending.given[key] = v
	return set(p, v)
}

// reader walks the arguments.
type reader struct {
	p       *Parsed
	table   func() []Flag // made when the first flag comes
	own     []Flag        // others that the command reads itself
	command string
	args    []string
}

// flags reads up to the first positional. verbatim says that "--" ended the
// flags, so that what follows is never taken for an image or a file.
func (r *reader) flags(args []string) (rest []string, verbatim bool, err error) {
	r.args = args
	for len(r.args) > 0 && !r.p.Help {
		a := r.args[0]
		switch {
		case a == "--":
			return r.args[1:], true, nil
		case a == "-" && !r.p.pending.stdin:
			r.p.pending.stdin = true
			r.args = r.args[1:]
		case a == "-" || !strings.HasPrefix(a, "-"):
			return r.args, false, nil
		case strings.HasPrefix(a, "--"):
			r.args = r.args[1:]
			err = r.long(a[2:])
		default:
			r.args = r.args[1:]
			err = r.short(a[1:])
		}
		if err != nil {
			return nil, false, err
		}
	}
	return r.args, false, nil
}

func (r *reader) long(a string) error {
	name, value, has := strings.Cut(a, "=")
	f := long(r.table(), name)
	if f == nil {
		return r.unknown("--"+name, name)
	}
	return r.set(f, "--"+name, value, has)
}

// short reads -m256m, -m 256m, -m=256m and groups of letters such as -qi.
func (r *reader) short(a string) error {
	if name, _, _ := strings.Cut(a, "="); len(name) > 1 && long(r.table(), name) != nil {
		return refusal.Newf("-%s: a long flag takes two dashes", name).Hint("--%s", name)
	}
	for i := 0; i < len(a); i++ {
		name, after := a[i:i+1], a[i+1:]
		f := short(r.table(), name)
		if f == nil {
			return r.unknown("-"+a, a)
		}
		value, has := strings.CutPrefix(after, "=")
		if f.Bool && !has {
			if err := r.set(f, "-"+name, "", false); err != nil {
				return err
			}
			continue
		}
		return r.set(f, "-"+name, value, has || after != "")
	}
	return nil
}

// set applies one flag; shown is how the caller wrote its name.
func (r *reader) set(f *Flag, shown, value string, has bool) error {
	switch {
	case f.Refused != "":
		return r.refuse(f, shown, value, has)
	case f.Bool && !has:
		value = "true"
	case !f.Bool && !has:
		if len(r.args) == 0 {
			return refusal.Newf("%s needs a value: %s", shown, f.Arg).Hint("sandglass %s --help", r.command)
		}
		value, r.args = r.args[0], r.args[1:]
	}
	var err error
	if f.Many || f.Name == "seccomp" { // chooseSeccomp keeps its own count
		err = f.Set(r.p, value)
	} else {
		err = r.p.same(f.Name, value, f.Set)
	}
	return where(shown, err)
}

func (r *reader) refuse(f *Flag, shown, value string, has bool) error {
	if f.Bool && has {
		if on, err := parseBool(value); err == nil && !on {
			return nil // --privileged=false asks for what is so
		}
	}
	e := refusal.Newf("%s is refused: %s", shown, f.Refused)
	if f.Instead != "" {
		e.Hint("%s", f.Instead)
	}
	return e
}

func (r *reader) unknown(shown, name string) error {
	e := refusal.Newf("unknown flag %s", quote(shown))
	if near := nearest(slices.Concat(r.table(), r.own), name); near != "" {
		e.Hint("did you mean --%s?", near)
	}
	return e.Hint("sandglass %s --help", r.command)
}

// where puts the flag in front of what is wrong with its value.
func where(flag string, err error) error {
	if e, ok := err.(*refusal.Error); ok {
		return &refusal.Error{What: flag + ": " + e.What, Hints: e.Hints, Exit: e.Exit}
	}
	return err
}
