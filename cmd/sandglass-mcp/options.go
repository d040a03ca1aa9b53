package main

import (
	"errors"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sandglass/internal/refusal"
	"sandglass/pkg/hostpath"
	"sandglass/pkg/policy"
	"sandglass/pkg/verbs"
)

// options are the command line: what is ours, and what goes on to the session.
type options struct {
	help      bool
	http      string // address, "" for stdio
	tokenFile string
	origins   []string // of browsers that may call
	hostNames []string // that Host may be, beside those of this machine's loopback
	offered   []string // hosts that the model may ask for
	ceilings  []policy.Option
	artifacts int64
	sandglass string

	session  []string // flags of sandglass session
	defaults *policy.Defaults
	base     policy.Spec // of a call without wishes
	most     policy.Limits
}

// outputBytes is what a tool's answer has of each stream, unless the operator
// says otherwise: it all goes into the model's context.
const outputBytes = 64 << 10

// parse reads the command line. The session's own parser judges what is the
// session's, here already: nothing is started for a wrong flag.
func parse(args []string) (*options, error) {
	o := &options{artifacts: 1 << 20}
	if slices.Contains([]string{"-h", "--help", "help"}, strings.Join(args, " ")) {
		return &options{help: true}, nil
	}
	if err := o.split(args); err != nil {
		return nil, err
	}
	s, err := policy.ParseServer("mcp", verbs.Find("mcp").Flags, o.session, int64(runtime.NumCPU()))
	switch {
	case err != nil:
		return nil, err
	case s.Help:
		return &options{help: true}, nil
	}
	o.defaults, o.base = s.Defaults, s.Base
	if err := o.judge(); err != nil {
		return nil, err
	}
	if o.sandglass == "" {
		o.sandglass = beside()
	}
	if _, err := exec.LookPath(o.sandglass); err != nil {
		return nil, refusal.Newf("mcp: there is no sandglass to start: %v", err).Hint("sandglass mcp --sandglass FILE   # where sandglass is")
	}
	return o, nil
}

// split takes our flags out and leaves the rest as it stands.
func (o *options) split(args []string) error {
	session := append(policy.RunFlags(), policy.SessionFlags()...)
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		name, value, has := strings.Cut(strings.TrimPrefix(a, "--"), "=")
		if a == "--out-limit" || strings.HasPrefix(a, "--out-limit=") {
			return refusal.Newf("mcp: --out-limit is of no use here: --artifacts says how much of /out an answer has").Hint("--artifacts 1m")
		}
		if !strings.HasPrefix(a, "--") || !ours(name) {
			o.session = append(o.session, a)
			if i := slices.IndexFunc(session, func(f policy.Flag) bool { return a == "--"+f.Name || f.Short != "" && a == "-"+f.Short }); i >= 0 && !session[i].Bool && len(args) > 0 {
				o.session, args = append(o.session, args[0]), args[1:] // its value, whatever that looks like
			}
			continue
		}
		if !has {
			if len(args) == 0 {
				return refusal.Newf("mcp: --%s needs a value", name).Hint("sandglass mcp --help")
			}
			value, args = args[0], args[1:]
		}
		if err := o.set(name, value); err != nil {
			e := refusal.Newf("mcp: --%s: %v", name, err)
			if r := new(refusal.Error); errors.As(err, &r) {
				e.Hints = r.Hints
			}
			if len(e.Hints) == 0 {
				e.Hint("sandglass mcp --help")
			}
			return e
		}
	}
	return nil
}

// ours says whether a flag is not one of the session's.
func ours(name string) bool {
	session := policy.SessionFlags()
	return slices.ContainsFunc(verbs.Find("mcp").Flags, func(f policy.Flag) bool {
		return f.Name == name && !slices.ContainsFunc(session, func(s policy.Flag) bool { return s.Name == name })
	})
}

func (o *options) set(name, value string) (err error) {
	once := func(field *string) {
		if *field != "" && *field != value {
			err = refusal.Newf("it is given twice")
		}
		*field = value
	}
	if value == "" {
		return refusal.Newf("its value is empty")
	}
	switch name {
	case "http":
		once(&o.http)
	case "token-file":
		once(&o.tokenFile)
	case "sandglass":
		once(&o.sandglass)
	case "origin":
		o.origins = append(o.origins, value)
	case "http-host":
		o.hostNames = append(o.hostNames, value)
	case "offer-host":
		o.offered = append(o.offered, value)
	case "artifacts":
		if o.artifacts = 0; value != "none" {
			if o.artifacts, err = policy.ParseSize(value); err != nil {
				err = refusal.Newf("%v", err).Hint("--artifacts 1m   # or none")
			}
		}
	case "ceiling":
		name, value, has := strings.Cut(value, "=")
		if !slices.ContainsFunc(limitFields, func(f limitField) bool { return f.flag == name }) {
			return noLimit(name)
		}
		if !has {
			return refusal.Newf("%s has no value", name).Hint("--ceiling %s=VALUE", name)
		}
		o.ceilings = append(o.ceilings, policy.Option{Name: name, Values: []string{value}})
	}
	return err
}

// noLimit refuses a ceiling of what is no field, by the name that was meant.
func noLimit(name string) error {
	e := refusal.Newf("%s is no limit that a model may choose", refusal.Word(name))
	for _, f := range limitFields {
		if policy.Near(name, f.flag) {
			e.Hint("did you mean --ceiling %s=VALUE?", f.flag)
		}
	}
	return e.Hint("--ceiling timeout=60s   # or memory=1g, disk=256m, cpus=2, pids-limit=128")
}

// judge finds what could never work, or would give the model more than was meant.
func (o *options) judge() error {
	var err error
	if o.most, err = o.limits(o.ceilings...); err != nil {
		for _, c := range o.ceilings {
			err = blamed(err, "--"+c.Name+" ", "--ceiling "+c.Name+"=")
			err = blamed(err, "--"+c.Name, "--ceiling "+c.Name)
		}
		return err
	}
	if name := beyond(&o.base.Limits, &o.most); name != "" {
		return refusal.Newf("mcp: the ceiling of %s is below what a run has without a wish of the model's", name).
			Hint("sandglass mcp --%s VALUE --ceiling %s=VALUE   # the first at most the second", name, name)
	}
	if len(o.offered) > 0 {
		if _, err := o.limits(policy.Option{Name: "allow-host", Values: o.offered, List: true}); err != nil {
			return blamed(err, "--allow-host", "--offer-host")
		}
	}
	if o.artifacts > policy.MaxKept {
		return refusal.Newf("mcp: --artifacts: at most %s", policy.FormatSize(policy.MaxKept)).Hint("--artifacts %s", policy.FormatSize(policy.MaxKept))
	}
	if port := o.http[strings.LastIndexByte(o.http, ':')+1:]; o.http != "" {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return refusal.Newf("mcp: --http %s: the port is no number between 0 and 65535", refusal.Word(o.http)).Hint("sandglass mcp --http 127.0.0.1:8080")
		}
	}
	if o.http == "" && (o.tokenFile != "" || len(o.origins)+len(o.hostNames) > 0) {
		return refusal.Newf("mcp: --token-file, --origin and --http-host are for --http").Hint("sandglass mcp --http 127.0.0.1:8080")
	}
	return nil
}

// blamed is a refusal by the name of the flag that was given, which stands for one of
// run's.
func blamed(err error, flag, given string) error {
	r := new(refusal.Error)
	if !errors.As(err, &r) {
		return err
	}
	b := refusal.Newf("%s", strings.ReplaceAll(r.What, flag, given)).Code(r.Exit)
	for _, h := range r.Hints {
		b.Hint("%s", strings.ReplaceAll(h, flag, given))
	}
	return b
}

// answerable says whether the session can give an answer as large as the operator
// wants it.
func (o *options) answerable(most int64) error {
	if o.base.Limits.Output <= most {
		return nil
	}
	return refusal.Newf("mcp: --output-limit: %s is too much for an answer: at most %s", policy.FormatSize(o.base.Limits.Output), policy.FormatSize(most)).
		Hint("--output-limit %s", policy.FormatSize(most))
}

// limits are those of a run with these options, as the session will see them.
func (o *options) limits(wish ...policy.Option) (policy.Limits, error) {
	spec, err := o.defaults.Spec(policy.Request{Program: policy.Program{Command: []string{"true"}}, Options: wish})
	return spec.Limits, err
}

// beyond names the first limit of have that is above most, "" for none. All that a
// run has are compared, whichever of them a tool's fields can change.
func beyond(have, most *policy.Limits) string {
	none := func(n int64) int64 { // 0 is no limit
		if n == 0 {
			return 1<<63 - 1
		}
		return n
	}
	for _, l := range []struct {
		name       string
		have, most int64
	}{
		{"timeout", int64(have.Timeout), int64(most.Timeout)},
		{"cpu-time", none(int64(have.CPUTime)), none(int64(most.CPUTime))},
		{"memory", have.Memory, most.Memory},
		{"cpus", have.MilliCPU, most.MilliCPU},
		{"pids-limit", have.Pids, most.Pids},
		{"disk", have.Disk, most.Disk},
		{"disk-inodes", have.DiskInodes, most.DiskInodes},
		{"output-limit", have.Output, most.Output},
	} {
		if l.have > l.most {
			return l.name
		}
	}
	return ""
}

// beside is the sandglass that came with this binary, or that of PATH.
func beside() string {
	if path, err := hostpath.Beside("sandglass"); err == nil {
		if fd, err := hostpath.Program(path); err == nil { // not one that another user put there
			unix.Close(fd)
			return path
		}
	}
	return "sandglass"
}
