package policy

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"sandglass/internal/refusal"
)

// Warm is how many sandboxes of a session wait for requests.
type Warm struct {
	Lang string // "" for any command, see sandbox.Prepare
	N    int64
}

// WarmLanguages are the languages whose interpreter can wait for its text. Package
// runtimes has the same ones.
var WarmLanguages = [...]string{"python", "node"}

// Kind is its name.
func (w Warm) Kind() string {
	if w.Lang == "" {
		return warmCommand
	}
	return w.Lang
}

// MaxWarm bounds each kind of sandbox that waits, and the least age at which
// another takes the place of one keeps a host from doing nothing else.
const (
	MaxWarm     = int64(512)
	leastAge    = 10 * time.Second
	longestAge  = 24 * time.Hour
	defaultAge  = 10 * time.Minute
	warmCommand = "command"
)

// warmFlags are those of sandglass session.
func warmFlags() []Flag {
	return []Flag{
		{Name: "warm", Arg: "KIND=N,...", Group: groupLimits, Set: setWarm,
			Help: "sandboxes that are kept ready, for one run each: command=N for any program, python=N and node=N with the interpreter started (none by default)"},
		{Name: "warm-age", Arg: "DURATION", Group: groupLimits, Set: func(p *Parsed, v string) error { return setInto(&p.WarmAge, v, parseAge) },
			Help: "after which another takes the place of one that waits (default 10m)"},
	}
}

func parseAge(v string) (time.Duration, error) {
	d, err := ParseDuration(v)
	if err == nil && (d < leastAge || d > longestAge) {
		return 0, refusal.Newf("%s is not between %s and %s", quote(v), "10s", "24h").Hint("--warm-age 10m")
	}
	return d, err
}

// setWarm reads python=4,node=2,command=4.
func setWarm(p *Parsed, v string) error {
	var list []Warm
	for _, part := range strings.Split(v, ",") {
		w, err := parseWarm(part)
		if err != nil {
			return err
		}
		if list = append(list, w); twice(list) {
			return refusal.Newf("%s is given twice", quote(part)).Hint("--warm command=4")
		}
	}
	p.Warm = list
	return nil
}

func twice(list []Warm) bool {
	for i, w := range list {
		if slices.ContainsFunc(list[:i], func(x Warm) bool { return x.Lang == w.Lang }) {
			return true
		}
	}
	return false
}

// CheckWarm refuses what --warm and --warm-age would, of who does not come by them.
// An age of 0 is the default, 10 minutes.
func CheckWarm(list []Warm, age *time.Duration) error {
	for _, w := range list {
		if _, err := parseWarm(w.Kind() + "=" + strconv.FormatInt(w.N, 10)); err != nil {
			return err
		}
	}
	if twice(list) {
		return refusal.Newf("a kind of sandbox is to be kept ready twice").Hint("name each kind once, with the number of all")
	}
	if *age == 0 {
		*age = defaultAge
	}
	_, err := parseAge(age.String())
	return err
}

func parseWarm(part string) (Warm, error) {
	kind, number, found := strings.Cut(part, "=")
	if !found {
		return Warm{}, refusal.Newf("%s is not KIND=N", quote(part)).Hint("--warm python=4,command=4")
	}
	w := Warm{}
	if kind != warmCommand {
		if !slices.Contains(WarmLanguages[:], kind) {
			return w, refusal.Newf("%s is not one of %s, %s", quote(kind), warmCommand, strings.Join(WarmLanguages[:], ", ")).
				Hint("--warm command=4   # any program, and code of any language")
		}
		w.Lang = kind
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 1 || n > MaxWarm {
		return w, refusal.Newf("%s is not a number from 1 to %d", quote(number), MaxWarm).Hint("--warm %s=4", kind)
	}
	w.N = n
	return w, nil
}
