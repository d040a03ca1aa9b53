package main

import (
	"path/filepath"
	"slices"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/image"
	"sandglass/pkg/image/unpack"
	"sandglass/pkg/policy"
)

// options of all verbs. Each verb says which of them it takes.
type options struct {
	name   string
	force  bool
	quiet  bool
	cache  bool // of prune
	json   bool
	limits unpack.Limits
	lock   string // of a build

	mirror, suite, keyring string

	rest []string
}

// words is what stands beside the flags of a verb: exactly n, at least one for -1,
// any number for -2.
type words struct {
	n    int
	what string
}

var (
	none     = words{0, "no arguments"}
	anyWords = words{-2, ""}
)

// switches are flags without a value.
var switches = []string{"force", "json", "quiet", "cache"}

// parse reads flags, which may stand before and after the words.
func parse(verb string, args []string, takes words, allowed ...string) (*options, error) {
	o := &options{limits: unpack.Defaults()}
	seen := map[string]bool{}
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		if a == "--" {
			o.rest = append(o.rest, args...)
			break
		}
		if !strings.HasPrefix(a, "-") || a == "-" {
			o.rest = append(o.rest, a)
			continue
		}
		if a == "-q" {
			a = "--quiet"
		}
		name, value, has := strings.Cut(strings.TrimLeft(a, "-"), "=")
		if name == "arch" || name == "platform" {
			if !has && len(args) > 0 {
				value, args = args[0], args[1:]
			}
			return nil, otherMachine(verb, name, value, append(o.rest, args...))
		}
		if !strings.HasPrefix(a, "--") || !slices.Contains(allowed, name) {
			return nil, unknownFlag(verb, a, name, allowed)
		}
		if seen[name] {
			return nil, refusal.Newf("image %s: --%s is given twice", verb, name)
		}
		seen[name] = true
		if isSwitch := slices.Contains(switches, name); !isSwitch && !has {
			if len(args) == 0 {
				return nil, refusal.Newf("image %s: --%s needs a value", verb, name).Hint("sandglass image %s --help", verb)
			}
			value, args = args[0], args[1:]
		} else if isSwitch && has {
			return nil, refusal.Newf("image %s: --%s takes no value", verb, name)
		}
		if err := o.set(name, value); err != nil {
			return nil, refusal.Newf("image %s: --%s: %v", verb, name, err)
		}
	}
	if n := len(o.rest); takes.n >= 0 && n != takes.n || takes.n == -1 && n == 0 {
		return nil, count(verb, o.rest, takes.what)
	}
	return o, nil
}

// unknownFlag is the refusal of a flag that a verb does not take, with the one that it
// was likely meant to be.
func unknownFlag(verb, shown, name string, allowed []string) *refusal.Error {
	r := refusal.Newf("image %s: unknown flag %s", verb, refusal.Word(shown))
	for _, a := range allowed {
		if policy.Near(name, a) || len(name) >= 3 && strings.HasPrefix(a, name) {
			r.Hint("did you mean --%s?", a)
			break
		}
	}
	return r.Hint("sandglass image %s --help", verb)
}

func (o *options) set(name, value string) (err error) {
	switch name {
	case "force":
		o.force = true
	case "json":
		o.json = true
	case "cache":
		o.cache = true
	case "quiet":
		o.quiet = true
	case "name":
		o.name = value
	case "lock", "mirror", "suite", "keyring":
		if value == "" {
			return refusal.Newf("it is empty")
		}
		*map[string]*string{"lock": &o.lock, "mirror": &o.mirror, "suite": &o.suite, "keyring": &o.keyring}[name] = value
	case "max-files":
		o.limits.Files, err = policy.ParseCount(value)
	case "max-bytes":
		o.limits.Bytes, err = policy.ParseSize(value)
	case "max-ratio":
		o.limits.Ratio, err = policy.ParseCount(value)
	case "max-layers":
		o.limits.Layers, err = policy.ParseCount(value)
	case "max-config":
		o.limits.Config, err = policy.ParseSize(value)
	}
	if err == nil && min(o.limits.Files, o.limits.Bytes, o.limits.Ratio, o.limits.Layers, o.limits.Config) < 1 {
		err = refusal.Newf("it must be at least 1")
	}
	return err
}

// defaultName is the image's name where none is given: of the file, which the
// caller chose. An archive's own word for it could take the place of another image.
func defaultName(file string) (string, error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	base := filepath.Base(abs)
	for _, ext := range []string{".gz", ".tgz", ".zst", ".tzst", ".tar", ".oci"} {
		base = strings.TrimSuffix(base, ext)
	}
	if err := image.CheckName(base); err != nil {
		return "", refusal.Newf("image import: %s makes no name for an image: %v", refusal.Word(filepath.Base(abs)), err).Hint("--name my-image")
	}
	return base, nil
}
