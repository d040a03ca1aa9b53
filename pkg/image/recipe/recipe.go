// Package recipe reads what an image is to be built of: packages of the host's
// distribution by name and version, what is left out of them, and the few links
// that their maintainer scripts would have made. It is strict, and small on
// purpose: a word of a recipe becomes an argument of apt's, a path in an image or
// a pattern, and each has one spelling. What a recipe cannot say it cannot do; it
// has no commands.
package recipe

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"sandglass/internal/refusal"
)

// Bounds of a recipe's text.
const (
	maxText = 64 << 10
	maxLine = 4096
)

// Recipe is a recipe as it was read.
type Recipe struct {
	Name     string
	Packages []Want
	Without  []string // taken for there already: neither they nor what only they need is taken
	Links    []Link
	Remove   []Pattern
	Keep     []Pattern // stays, whatever else would remove it
	Joins    []Join
	Bytecode []Pattern // directories of Python modules
	Env      []string
	Cmd      []string
}

// Want is a package with its version, "*" for the newest that the sources have.
type Want struct{ Name, Version string }

// Link is a symbolic link that a maintainer script would make.
type Link struct{ Path, Target string }

// Join is a file made of others: one after the other, as the list of certificates
// is, or as Java's store of them.
type Join struct {
	From Pattern
	Path string
	Java bool
}

// words are the lines of a recipe, and how many words each takes at least and at
// most; 0 for any number.
var words = map[string]struct {
	least, most int
	form        string
	set         func(*Recipe, []string) error
}{
	"about":    {1, 0, "about TEXT", (*Recipe).about},
	"package":  {2, 2, "package NAME VERSION|*", (*Recipe).want},
	"without":  {1, 0, "without NAME...", (*Recipe).without},
	"link":     {2, 0, "link TARGET PATH...", (*Recipe).link},
	"remove":   {1, 0, "remove PATTERN...", (*Recipe).remove},
	"keep":     {1, 0, "keep PATTERN...", (*Recipe).keep},
	"join":     {2, 2, "join PATTERN PATH", (*Recipe).join},
	"cacerts":  {2, 2, "cacerts PATTERN PATH", (*Recipe).cacerts},
	"bytecode": {1, 0, "bytecode PATTERN...", (*Recipe).bytecode},
	"env":      {1, 1, "env NAME=VALUE", (*Recipe).env},
	"cmd":      {1, 0, "cmd WORD...", (*Recipe).cmd},
}

// dockers are words that Dockerfiles begin with, and no recipe.
var dockers = []string{"FROM", "ARG", "RUN", "COPY", "ADD", "WORKDIR", "USER", "ENTRYPOINT", "EXPOSE", "LABEL"}

// Triplets are the names of the directories that have an architecture's libraries,
// by Go's name of it.
var Triplets = map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}

// Parse reads a recipe for an architecture. name is what it is called in refusals.
func Parse(name, text, arch string) (*Recipe, error) {
	r := &Recipe{Name: name}
	if len(text) > maxText {
		return nil, refusal.Newf("recipe %s: more than %d bytes", refusal.Word(name), maxText)
	}
	// What differs between architectures.
	here := strings.NewReplacer("{triplet}", Triplets[arch], "{arch}", arch)
	for i, line := range strings.Split(text, "\n") {
		if err := r.line(here.Replace(line)); err != nil {
			return nil, refusal.Within("recipe "+refusal.Word(name)+": line "+strconv.Itoa(i+1), err)
		}
	}
	if len(r.Packages) == 0 {
		return nil, refusal.Newf("recipe %s: it has no packages", refusal.Word(name)).Hint("package busybox-static *")
	}
	for _, w := range r.Packages {
		if slices.Contains(r.Without, w.Name) {
			return nil, refusal.Newf("recipe %s: package %s is wanted and left out", refusal.Word(name), w.Name)
		}
	}
	return r, nil
}

func (r *Recipe) line(line string) error {
	if len(line) > maxLine {
		return refusal.Newf("more than %d bytes", maxLine)
	}
	// A carriage return or an escape sequence in a path would be seen by nobody
	// who reads the recipe.
	for _, c := range []byte(line) {
		if c < ' ' && c != '\t' || c >= 0x7f {
			return refusal.Newf("%s has a character that is not printable ASCII", refusal.Word(line[:min(len(line), 100)]))
		}
	}
	f := strings.Fields(line)
	if len(f) == 0 || strings.HasPrefix(f[0], "#") {
		return nil
	}
	w, ok := words[f[0]]
	if !ok {
		if slices.Contains(dockers, f[0]) {
			return refusal.Newf("%s is a Dockerfile's, and those are not read", refusal.Word(f[0])).
				Hint("docker build -t my-image . && docker save my-image > image.tar && sandglass image import --name my-image image.tar")
		}
		return refusal.Newf("unknown word %s: there are %s", refusal.Word(f[0]), strings.Join(slices.Sorted(maps.Keys(words)), ", ")).
			Hint("package busybox-static *")
	}
	if n := len(f) - 1; n < w.least || w.most > 0 && n > w.most {
		return refusal.Newf("%s has %d words", f[0], n).Hint("%s", w.form)
	}
	return w.set(r, f[1:])
}

// about is for who reads the recipe.
func (r *Recipe) about([]string) error { return nil }

func (r *Recipe) want(f []string) error {
	if err := checkName(f[0]); err != nil {
		return err
	}
	if f[1] != Newest {
		if err := checkVersion(f[1]); err != nil {
			return err
		}
	}
	for _, w := range r.Packages {
		if w.Name == f[0] {
			return refusal.Newf("package %s is there twice", f[0])
		}
	}
	r.Packages = append(r.Packages, Want{f[0], f[1]})
	return nil
}

func (r *Recipe) without(f []string) error {
	for _, n := range f {
		if err := checkName(n); err != nil {
			return err
		}
		if slices.Contains(r.Without, n) {
			return refusal.Newf("%s is left out twice", n)
		}
		r.Without = append(r.Without, n)
	}
	return nil
}

func (r *Recipe) link(f []string) error {
	for _, p := range f[1:] {
		if err := checkPath(p); err != nil {
			return err
		}
		r.Links = append(r.Links, Link{Path: p, Target: f[0]})
	}
	return nil
}

func (r *Recipe) remove(f []string) error   { return patterns(&r.Remove, f) }
func (r *Recipe) keep(f []string) error     { return patterns(&r.Keep, f) }
func (r *Recipe) bytecode(f []string) error { return patterns(&r.Bytecode, f) }

func patterns(to *[]Pattern, f []string) error {
	for _, s := range f {
		p, err := ParsePattern(s)
		if err != nil {
			return err
		}
		*to = append(*to, p)
	}
	return nil
}

func (r *Recipe) join(f []string) error    { return r.joined(f, false) }
func (r *Recipe) cacerts(f []string) error { return r.joined(f, true) }

func (r *Recipe) joined(f []string, java bool) error {
	p, err := ParsePattern(f[0])
	if err == nil {
		err = checkPath(f[1])
	}
	if err != nil {
		return err
	}
	r.Joins = append(r.Joins, Join{From: p, Path: f[1], Java: java})
	return nil
}

func (r *Recipe) env(f []string) error {
	name, _, ok := strings.Cut(f[0], "=")
	if !ok || !isVariable(name) {
		return refusal.Newf("%s is no variable", refusal.Word(f[0])).Hint("env NAME=VALUE")
	}
	r.Env = append(r.Env, f[0])
	return nil
}

func (r *Recipe) cmd(f []string) error {
	if r.Cmd != nil {
		return refusal.Newf("cmd is there twice")
	}
	r.Cmd = f
	return nil
}

// Resolve is where a link leads, as a path in the image.
func (l Link) Resolve() string {
	if strings.HasPrefix(l.Target, "/") {
		return path.Clean(l.Target)
	}
	return path.Join(path.Dir(l.Path), l.Target)
}
