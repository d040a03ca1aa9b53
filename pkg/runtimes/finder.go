// Package runtimes finds interpreters on the host and says what must be
// mounted for them to run inside: python behind a pyenv shim, node under nvm, a
// virtual environment and its base. In the normal case it makes a few dozen
// system calls and starts no process.
//
// What it reports is mounted into a sandbox, so a wrong answer opens the host.
// Therefore a directory is reported only when it is provably an interpreter's
// own prefix and no home, no system directory and nothing with well-known
// secrets; otherwise the executable alone is. Files in the caller's current
// directory may have been written by a model: they select among what the caller
// has installed, and never name a path.
package runtimes

import (
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sandglass/internal/refusal"
)

// Finder looks for interpreters with the caller's eyes. All fields may be
// empty; nothing is taken from the process's own environment. It reads files,
// and never starts one: whatever a path, a #! line or PATH leads to may be a
// model's, and would run outside of any sandbox.
type Finder struct {
	Path   string              // the caller's $PATH
	Home   string              // the caller's home, which is never mounted
	Getenv func(string) string // the caller's environment: PYENV_VERSION and the like
	Cwd    string              // where .python-version and .tool-versions are looked for
}

// Interpreter is one interpreter as found on the host. Every path is absolute
// and must be at the same place inside.
type Interpreter struct {
	Name     string   // as asked for
	Exe      string   // what to execute: the real binary, or a virtual environment's own link
	Prefix   string   // to mount read-only; "" when the host view has it
	FileOnly bool     // Prefix is the executable itself, not a directory
	Extra    []string // further directories and files to mount read-only, e.g. a venv's base prefix
	Links    []Link   // symbolic links to make so that Exe resolves inside
	BinDirs  []string // directories for PATH inside that are not on the default one
}

// Link is a symbolic link: Path has the text Target, as on the host.
type Link struct{ Path, Target string }

// skip is why one candidate is passed over; the search goes on.
type skip string

func (s skip) Error() string { return string(s) }

// maxShims bounds a chain of shims that lead to shims.
const maxShims = 4

// Find looks up a language's canonical name or alias (python: python, or else
// python3), a command (python3: only that), or an absolute path. Relative and
// empty entries of PATH are ignored: they mean the current directory. A name
// that the table does not know is found as a plain command.
//
// Errors are *refusal.Error: exit 127 when nothing was found, 126 when all that
// was found may not be executed, 125 for a name that cannot be a command or a
// version manager that is set to a version it does not have.
func (f Finder) Find(name string) (Interpreter, error) {
	if filepath.IsAbs(name) && filepath.Clean(name) == name && !hasControl(name) {
		return f.findAt(name, false)
	}
	if !bareName(name) {
		return Interpreter{}, refusal.Newf("interpreter %s: not a command name or a clean absolute path", quote(name))
	}
	lang, cmds := commands(name)
	miss := missing{name: name, lang: lang, cmds: cmds}
	dirs := f.pathDirs(&miss)
	for _, cmd := range cmds {
		for _, dir := range dirs {
			found, err := f.try(lang, dir+"/"+cmd, &miss)
			if err != nil {
				return Interpreter{}, err
			}
			if found.Exe != "" {
				found.Name = name
				return found, nil
			}
		}
	}
	return Interpreter{}, miss.error(dirs)
}

// try is one candidate: nothing there or passed over is the empty Interpreter.
func (f Finder) try(lang *Language, path string, miss *missing) (Interpreter, error) {
	switch err := executable(path); err {
	case nil:
	case unix.EACCES:
		miss.denied = append(miss.denied, path)
		return Interpreter{}, nil
	default:
		return Interpreter{}, nil
	}
	found, err := f.adopt(lang, path, 0)
	var why skip
	if errors.As(err, &why) {
		if !slices.Contains(miss.notes, string(why)) { // /usr/bin and /bin are often one
			miss.notes = append(miss.notes, string(why))
		}
		return Interpreter{}, nil
	}
	return found, err
}

// findAt is Find for an absolute path. Such a path may be in a script's #! line
// or a link, and lead to a program that is no interpreter: of that, the file
// alone. That a lib/NAME lies beside its bin proves enough only for what the
// caller has on PATH: /srv/app has its data there as well. script: a #! line
// named it, so that no hint does.
func (f Finder) findAt(path string, script bool) (Interpreter, error) {
	miss := missing{name: path, lang: ofCommand(filepath.Base(path)), script: script}
	found, err := f.try(ofCommand(filepath.Base(path)), path, &miss)
	if err == nil && found.Exe == "" {
		err = miss.error(nil)
	}
	if err != nil {
		return Interpreter{}, err
	}
	found.Name = path
	if found.Prefix == "" || found.FileOnly || slices.Contains(stores[:], found.Prefix) ||
		ofCommand(filepath.Base(found.Exe)) != nil && f.brings(path, found) {
		return found, nil
	}
	real, _, err := resolve(found.Exe)
	if err != nil {
		return Interpreter{}, miss.error(nil)
	}
	found.Prefix, found.FileOnly, found.Extra = real, true, nil
	return found, nil
}

// brings is whether an interpreter comes with its prefix: the named path lies in
// it, or what leads out of there leads to what the caller has. A link that
// somebody left is not enough.
func (f Finder) brings(path string, found Interpreter) bool {
	dir, _, err := resolve(filepath.Dir(path))
	return err == nil && (shown(dir) || under(dir, found.Prefix)) || f.mayBase(found.Exe)
}

// adopt turns an executable into an Interpreter, through whatever shim is in
// front of it.
func (f Finder) adopt(lang *Language, path string, depth int) (Interpreter, error) {
	if depth == maxShims {
		return Interpreter{}, skip(quote(path) + ": more than 4 shims in a row")
	}
	if lang != nil && lang.Name == "python" && !slices.Contains(defaultPath[:], filepath.Dir(path)) {
		// As Python does: a venv is recognised by the path that is executed, not by where it leads.
		if dir := filepath.Dir(filepath.Dir(path)); exists(dir + "/pyvenv.cfg") {
			found, err := f.venv(dir, filepath.Base(path), 0)
			var foreign *refusal.Error
			if err == nil || errors.As(err, &foreign) {
				return found, err
			}
		}
	}
	real, links, err := resolve(path)
	if err != nil {
		return Interpreter{}, skip(quote(path) + ": " + err.Error())
	}
	next, err := f.throughShim(lang, path, real)
	if err != nil {
		return Interpreter{}, err
	}
	if next != "" {
		return f.adopt(lang, next, depth+1)
	}
	return f.describe(lang, path, real, links)
}

// describe says what to mount for the executable real that was found as path.
func (f Finder) describe(lang *Language, path, real string, links []Link) (Interpreter, error) {
	if hasControl(real) || underAny(real, kernelDirs[:]) {
		return Interpreter{}, skip(quote(real) + ": not a place to mount from")
	}
	if lang != nil && lang.Name == "typescript" {
		if why := tooOld(real); why != "" {
			return Interpreter{}, why
		}
	}
	found := Interpreter{Exe: real}
	found.Prefix, found.FileOnly, found.Extra = f.prefix(lang, real)
	if base := filepath.Base(real); base == "busybox" || base == "toybox" {
		// One binary for all commands: it goes by the name it is called.
		real, found.Exe = path, path
		found.Links = needed(links, found)
	}
	if lang != nil && len(lang.etc) > 0 {
		found.Extra = append(found.Extra, config(lang, real)...)
	}
	if dir := filepath.Dir(found.Exe); !slices.Contains(defaultPath[:], dir) && !strings.Contains(dir, ":") {
		found.BinDirs = []string{dir}
	}
	return found, nil
}

// defaultPath is what is on PATH inside anyway.
var defaultPath = [...]string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// pathDirs are the absolute entries of PATH.
func (f Finder) pathDirs(miss *missing) []string {
	dirs := make([]string, 0, 16)
	for rest, more := f.Path, f.Path != ""; more; {
		var dir string
		dir, rest, more = strings.Cut(rest, ":")
		// An empty entry is the current directory, which a model may have filled, and so is /proc/self/cwd.
		if !filepath.IsAbs(dir) || underAny(dir, kernelDirs[:]) {
			miss.relative++
			continue
		}
		dirs = append(dirs, strings.TrimRight(dir, "/"))
	}
	return dirs
}

func (f Finder) getenv(key string) string {
	if f.Getenv == nil {
		return ""
	}
	return f.Getenv(key)
}

// quote keeps a name with newlines or escapes from forging lines on a terminal.
func quote(s string) string {
	if q := strconv.Quote(s); q != `"`+s+`"` || s == "" || strings.Contains(s, " ") {
		return q
	}
	return s
}
