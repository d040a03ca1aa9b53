package runtimes

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"sandglass/internal/refusal"
)

const (
	cfgBytes = 16 << 10 // of a pyvenv.cfg that are read
	maxVenvs = 4        // virtual environments made from one another
)

// Venv describes the Python virtual environment in dir: Exe is its own
// bin/python, Prefix the directory with its links resolved, Extra the base
// prefix where that is outside /usr, and Links what bin/python passes on the way
// there. Errors are *refusal.Error.
//
// Paths that lead out of it otherwise (.pth files, editable installs) are not
// followed: nothing is mounted that the directory's content merely asks for, as
// an earlier run may have written it. Its base must prove to be a Python.
func (f Finder) Venv(dir string) (Interpreter, error) {
	if !filepath.IsAbs(dir) || hasControl(dir) {
		return Interpreter{}, refusal.Newf("virtual environment %s: not an absolute path", quote(dir))
	}
	dir = filepath.Clean(dir)
	found, err := f.venv(dir, "python", 0)
	var foreign *refusal.Error
	if errors.As(err, &foreign) {
		return Interpreter{}, err
	}
	if err != nil {
		return Interpreter{}, refusal.Newf("virtual environment %s: %s", quote(dir), err.Error()).
			Hint("python3 -m venv %s", refusal.Shell(dir))
	}
	found.Name = "python"
	return found, nil
}

// venv describes dir for the command name in its bin; depth counts virtual
// environments made from one another.
func (f Finder) venv(dir, name string, depth int) (Interpreter, error) {
	if depth == maxVenvs {
		return Interpreter{}, skip("more than 4 virtual environments in a row")
	}
	real, links, err := resolve(dir)
	if err != nil {
		return Interpreter{}, err
	}
	if why := f.shared(real); why != "" {
		return Interpreter{}, skip("its directory " + why)
	}
	home, err := cfgHome(real + "/pyvenv.cfg")
	if err != nil {
		return Interpreter{}, err
	}
	found := Interpreter{Exe: real + "/bin/" + name, Prefix: real, BinDirs: binDirs(real + "/bin")}
	if inHostView(real) {
		found.Prefix = ""
	}
	base, more, err := f.venvBase(real, name, home)
	if err != nil {
		return Interpreter{}, err
	}
	links = append(links, more...)
	if found.Extra, err = f.baseMounts(base); err != nil {
		return Interpreter{}, err
	}
	if !f.mayBase(base) {
		return Interpreter{}, foreignBase(dir, base)
	}
	in, err := f.outer(dir, name, home, depth)
	if err != nil {
		return Interpreter{}, err
	}
	found.Extra, links = union(in.Extra, found.Extra), append(links, in.Links...)
	found.Links = needed(links, found)
	for _, l := range found.Links {
		if underAny(l.Path, kernelDirs[:]) || hasControl(l.Path) {
			return Interpreter{}, skip("bin/" + name + " leads through " + quote(l.Path))
		}
	}
	return found, nil
}

// outer is the virtual environment that dir was made from, if there is one: its
// bin is on the way to the base. All of it comes along, so the caller must have
// it on PATH: any project with an environment in it could be named here.
func (f Finder) outer(dir, name, home string, depth int) (Interpreter, error) {
	at := filepath.Dir(home)
	if inHostView(at) || !exists(at+"/pyvenv.cfg") {
		return Interpreter{}, nil
	}
	if real, _, err := resolve(home); err != nil || !f.onPath(real) {
		return Interpreter{}, foreignBase(dir, at)
	}
	in, err := f.venv(at, name, depth+1)
	if err == nil && in.Prefix != "" {
		in.Extra = append([]string{in.Prefix}, in.Extra...)
	}
	return in, err
}

// venvBase is the real executable behind dir/bin/name, and the links on the
// way to it and to home, where Python looks for its library.
func (f Finder) venvBase(dir, name, home string) (base string, links []Link, err error) {
	if executable(dir+"/bin/"+name) != nil {
		return "", nil, skip("bin/" + quote(name) + " is not an executable file")
	}
	base, links, err = resolve(dir + "/bin/" + name)
	if err != nil {
		return "", nil, err
	}
	_, homeLinks, err := resolve(home)
	if err != nil {
		return "", nil, skip("pyvenv.cfg: home " + quote(home) + " does not exist")
	}
	links = append(links, homeLinks...)
	if !under(base, dir) {
		return base, links, nil
	}
	// A copied executable (--copies) leaves only home to say where the base is.
	for _, n := range [...]string{filepath.Base(base), name, "python3", "python"} {
		if executable(home+"/"+n) == nil {
			base, _, err = resolve(home + "/" + n)
			return base, links, err
		}
	}
	return "", nil, skip("pyvenv.cfg: no python in home " + quote(home))
}

// baseMounts is what to mount for a base interpreter.
func (f Finder) baseMounts(base string) ([]string, error) {
	python := ofLang("python")
	if ofCommand(filepath.Base(base)) != python {
		return nil, skip("its base " + quote(base) + " is not called python")
	}
	prefix, fileOnly, extra := f.prefix(python, base)
	switch {
	case prefix == "":
		return nil, nil
	case fileOnly && len(extra) == 0:
		return nil, skip("its base " + quote(base) + " has no prefix of its own that could be mounted")
	}
	return append([]string{prefix}, extra...), nil
}

// cfgHome reads the key home of a pyvenv.cfg, which is required: the directory
// of the base interpreter.
func cfgHome(path string) (string, error) {
	data, err := readFile(path, cfgBytes, false)
	if err != nil {
		return "", skip("no pyvenv.cfg in it")
	}
	for line := range strings.Lines(string(data)) {
		key, value, ok := strings.Cut(line, "=")
		if !ok || !strings.EqualFold(strings.TrimSpace(key), "home") {
			continue
		}
		home := strings.TrimSpace(value)
		if !filepath.IsAbs(home) || hasControl(home) {
			return "", skip("pyvenv.cfg: home is not an absolute path")
		}
		return filepath.Clean(home), nil
	}
	return "", skip("pyvenv.cfg: no home")
}

func binDirs(dir string) []string {
	if strings.Contains(dir, ":") {
		return nil // would become two entries of PATH
	}
	return []string{dir}
}

func union(a, b []string) []string {
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}
