package policy

import (
	"slices"
	"strings"
	"sync"
	"time"

	"sandglass/internal/refusal"
)

// Session is the command line of "sandglass session": what its requests start
// from, and how many of them run and wait.
type Session struct {
	Defaults        *Defaults
	Running, Queued int64
	// Warm are kept ready with the policy of Base, each for WarmAge at most.
	Warm    []Warm
	WarmAge time.Duration
	Base    Spec
	Help    bool // nothing else is filled then
}

// Defaults are the flags that a request starts from. They may be used from many
// goroutines.
type Defaults struct {
	base Parsed
	host Host
}

// Request is one run of a session.
type Request struct {
	Program Program
	Env     []string // K=V, over those of the defaults
	Stdin   bool
	Files   []File
	Out     string // as Spec.Out, but may be relative
	Force   bool
	Keep    int64 // bytes of artefacts that come with the result, 0 for none
	Options []Option
}

// Option is a flag of run by its long name, with its values as one types them.
// List says that it was given as a list, as only a flag may that can be repeated.
type Option struct {
	Name   string
	Values []string
	List   bool
}

// The bounds of --max-running and --max-queued. What the requests hold in memory
// has a bound of its own.
const (
	maxRunning = int64(1024)
	maxQueued  = int64(100_000)
)

const sessionCommand = "session"

// ParseSession reads the arguments that follow "sandglass session". What its
// requests would be refused for whatever they ask, is refused here.
func ParseSession(args []string, running int64) (Session, error) {
	return OSHost().parseSession(args, running)
}

func (h Host) parseSession(args []string, running int64) (Session, error) {
	return h.parseServer(sessionCommand, nil, args, running)
}

// ParseServer does so for a command that takes the flags of a session and has some
// of its own: hints name that command, and its flags.
func ParseServer(command string, own []Flag, args []string, running int64) (Session, error) {
	return OSHost().parseServer(command, own, args, running)
}

func (h Host) parseServer(command string, own []Flag, args []string, running int64) (Session, error) {
	p := Parsed{Spec: Default(), ResultFD: -1, MaxRunning: running, MaxQueued: 256, WarmAge: defaultAge, pending: &pending{given: map[string]string{}}}
	table := sync.OnceValue(func() []Flag { return append(without(command, notInSession), SessionFlags()...) })
	r := reader{p: &p, table: table, own: own, command: command}
	rest, _, err := r.flags(args)
	switch {
	case err != nil:
		return Session{}, err
	case p.Help:
		return Session{Help: true}, nil
	case len(rest) > 0 || p.pending.stdin:
		return Session{}, refusal.Newf("%s: a program comes with a request, not here: %s", command, quote(strings.Join(rest, " "))).
			Hint("sandglass %s --help", command)
	}
	s := Session{Defaults: &Defaults{base: p, host: h}, Running: p.MaxRunning, Queued: p.MaxQueued, Warm: p.Warm, WarmAge: p.WarmAge}
	if s.Running < 1 || s.Running > maxRunning {
		return Session{}, refusal.Newf("--max-running: %d is not between 1 and %d", s.Running, maxRunning).Hint("--max-running 4")
	}
	if s.Queued < 0 || s.Queued > maxQueued {
		return Session{}, refusal.Newf("--max-queued: %d is not between 0 and %d", s.Queued, maxQueued).Hint("--max-queued 256")
	}
	s.Base, err = s.Defaults.Spec(Request{Program: Program{Command: []string{"true"}}})
	return s, err
}

// SessionFlags are the flags of sandglass session that run has not.
func SessionFlags() []Flag {
	return append([]Flag{
		{Name: "max-running", Arg: "N", Group: groupLimits, Set: func(p *Parsed, v string) error { return setInto(&p.MaxRunning, v, ParseCount) },
			Help: "runs at the same time (default one for each CPU)"},
		{Name: "max-queued", Arg: "N", Group: groupLimits, Set: setMaxQueued,
			Help: "requests that wait for their turn; more are refused as busy (default 256)"},
	}, warmFlags()...)
}

// setMaxQueued takes 0 as well: nothing waits then.
func setMaxQueued(p *Parsed, v string) error {
	if v == "0" {
		p.MaxQueued = 0
		return nil
	}
	return setInto(&p.MaxQueued, v, ParseCount)
}

// notInSession are flags of run that mean nothing in a session or have a field
// in its requests.
var notInSession = [][2]string{
	{"code", "it is the field code of a request"},
	{"lang", "it is the field lang of a request"},
	{"interactive", "the field stdin of a request is the program's stdin"},
	{"tty", "a session's streams are messages, not a terminal"},
	{"out", "it is the field artifacts of a request"},
	{"force", "it is the field artifacts of a request"},
	{"json", "every reply of a session is JSON"},
	{"result", "every result is a reply on stdout"},
	{"result-fd", "every result is a reply on stdout"},
	{"quiet", "a session says nothing of its own"},
}

// notInRequest are those that a request may not set: what they allow is for who
// starts the session to say, who knows the host, and holds for all of it.
var notInRequest = [][2]string{
	{"help", "it is for a command line"},
	{"env", "it is the field env of a request"},
	{"allow-degraded", "the session's own command line says it for all runs"},
	{"allow-mount", "the session's own command line says it for all runs"},
	{"cgroup-parent", "the session's own command line says it for all runs"},
}

// without is the table of run with some flags refused by a command.
func without(command string, lists ...[][2]string) []Flag {
	table := RunFlags()
	for _, list := range lists {
		for _, no := range list {
			f := long(table, no[0])
			f.Refused, f.Instead, f.Bool = no[1], "sandglass "+command+" --help", false
		}
	}
	return table
}

// Spec is what a request asks for: the defaults, and its options over them.
// Of a flag with one value the request's replaces the default; what can be
// repeated is added. Every rule and message is the command line's.
func (d *Defaults) Spec(r Request) (Spec, error) {
	p := d.clone()
	s := &p.Spec
	s.Stdin, s.Files, s.Out, s.Force = r.Stdin, slices.Clone(r.Files), r.Out, r.Force
	if r.Keep != 0 {
		s.Keep, s.Limits.OutBytes = true, r.Keep
	}
	read := reader{p: &p, table: sync.OnceValue(func() []Flag { return without(sessionCommand, notInSession, notInRequest) }), command: sessionCommand}
	for _, o := range r.Options {
		if err := read.option(o); err != nil {
			return Spec{}, err
		}
	}
	if r.Program.File != "" && strings.HasSuffix(r.Program.File, "/") {
		return Spec{}, refusal.Newf("file %s is not the name of a file", quote(r.Program.File))
	}
	p.pending.env = append(p.pending.env, r.Env...)
	err := d.host.complete(&p, func() error {
		s.Program = r.Program
		if err := d.host.namedImage(&p); err != nil {
			return err
		}
		if r.Program.File != "" || len(r.Program.Code) > 0 {
			return nil
		}
		return p.command(r.Program.Command)
	})
	return p.Spec, err
}

// option sets one flag of a request.
func (r *reader) option(o Option) error {
	name := "--" + o.Name
	f := long(r.table(), o.Name)
	if f == nil {
		return r.unknown(name, o.Name)
	}
	if o.List && !f.Many && f.Refused == "" {
		return refusal.Newf("%s takes one value, not a list", name).Hint("sandglass session --help")
	}
	if o.List && len(o.Values) == 0 {
		return nil
	}
	for _, v := range o.Values {
		if err := r.set(f, name, v, true); err != nil {
			return err
		}
	}
	return nil
}

// clone is a copy of the defaults that a request may change. What the command line
// was given counts no more as given: a request may say otherwise once. But a
// network that was said to be none stays none.
func (d *Defaults) clone() Parsed {
	p := d.base
	s := &p.Spec
	s.Mounts, s.AllowDegraded, s.AllowMounts = slices.Clone(s.Mounts), slices.Clone(s.AllowDegraded), slices.Clone(s.AllowMounts)
	s.Hosts, s.Limits.IO = slices.Clone(s.Hosts), slices.Clone(s.Limits.IO)
	old := d.base.pending
	p.pending = &pending{given: map[string]string{}, image: old.image, named: old.named, entrypoint: old.entrypoint,
		workdir: old.workdir, memorySwap: old.memorySwap, env: slices.Clone(old.env), envFiles: slices.Clone(old.envFiles)}
	for _, name := range [...]string{"network", "net"} {
		if v, ok := old.given[name]; ok {
			p.pending.given[name] = v
		}
	}
	return p
}
