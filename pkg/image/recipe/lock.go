package recipe

import (
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/image/manifest"
)

// lockHead begins a lock.
const lockHead = "sandglass lock 1\n"

// maxLock bounds a lock's text.
const maxLock = 1 << 20

// Lock is the text of a lock: the packages that a recipe came to.
func Lock(list []manifest.Package) string {
	var b strings.Builder
	b.WriteString(lockHead)
	for _, p := range list {
		b.WriteString(p.Line())
	}
	return b.String()
}

// ParseLock reads a lock, and refuses one that is another recipe's.
func (r *Recipe) ParseLock(name, text, arch string) ([]manifest.Package, error) {
	bad := func(format string, args ...any) error {
		return refusal.Newf("lock %s: %s", refusal.Word(name), refusal.Newf(format, args...).What).
			Hint("rm -- %s   # the next build makes a new one", refusal.Shell(name))
	}
	// One that is sound belongs to another recipe, whose packages it keeps.
	other := func(format string, args ...any) error {
		own := refusal.Shell(r.Name + ".lock")
		if name == own {
			own = refusal.Shell(r.Name + "-2.lock")
		}
		return refusal.Newf("lock %s: %s", refusal.Word(name), refusal.Newf(format, args...).What).
			Hint("--lock %s   # one of this recipe's own", own)
	}
	rest, ok := strings.CutPrefix(text, lockHead)
	if !ok || len(text) > maxLock {
		return nil, bad("it does not begin as one, or has more than %d bytes", maxLock)
	}
	var list []manifest.Package
	have := map[string]string{}
	for n := 2; rest != ""; n++ {
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		p, ok := manifest.ParsePackage(line)
		if !ok || !Sane(p, arch) || have[p.Name] != "" {
			return nil, bad("line %d is not a package for %s", n, arch)
		}
		have[p.Name] = p.Version
		list = append(list, p)
	}
	for _, w := range r.Packages {
		if v := have[w.Name]; v == "" || w.Version != Newest && v != w.Version {
			return nil, other("it does not have package %s %s, which the recipe wants", w.Name, w.Version)
		}
	}
	for _, name := range r.Without {
		if have[name] != "" {
			return nil, other("it has package %s, which the recipe leaves out", name)
		}
	}
	return list, nil
}

// Sane says whether a package's words are some. Each becomes an argument of apt's,
// or a part of a file's name.
func Sane(p manifest.Package, arch string) bool {
	return checkName(p.Name) == nil && checkVersion(p.Version) == nil && (p.Architecture == arch || p.Architecture == "all")
}
