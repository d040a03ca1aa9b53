package runtimes

import (
	"path/filepath"
	"strings"

	"sandglass/internal/refusal"
)

// What the caller chose brings its prefix along: an entry of PATH, --venv, a
// word of the command line. What a file says (a #! line, a pyvenv.cfg, a link)
// was perhaps written by a model, and would choose the directory that is shown:
// #!/home/u/project/bin/python3 the project, with its keys. So it selects among
// what the caller's PATH leads to, and brings nothing itself.

// installRoots are where version managers keep interpreters, one in each
// directory, below the caller's home or at a variable of the caller's.
var installRoots = [...]struct{ env, envDir, homeDir string }{
	{"PYENV_ROOT", "/versions", "/.pyenv/versions"},
	{"UV_PYTHON_INSTALL_DIR", "", "/.local/share/uv/python"},
	{"ASDF_DATA_DIR", "/installs/python", "/.asdf/installs/python"},
	{"MISE_DATA_DIR", "/installs/python", "/.local/share/mise/installs/python"},
	{"RYE_HOME", "/py", "/.rye/py"},
}

// condas are the usual names of a conda installation in a home.
var condas = [...]string{"/miniconda3", "/miniforge3", "/mambaforge", "/anaconda3"}

// ForScript is Find for what a #! line names: a bare name, or a path of which
// nothing is shown but what PATH leads to or the host view has.
func (f Finder) ForScript(name string) (Interpreter, error) {
	if !filepath.IsAbs(name) || filepath.Clean(name) != name || hasControl(name) {
		return f.Find(name)
	}
	dir, links, err := resolve(filepath.Dir(name))
	if underAny(name, kernelDirs[:]) || throughKernel(links) {
		return Interpreter{}, noPlace(name)
	}
	base := filepath.Base(name)
	if err != nil {
		return Interpreter{}, gone(name)
	}
	at := strings.TrimSuffix(dir, "/") + "/" + base
	if shown(dir) || f.onPath(dir) {
		return f.findAt(at, true)
	}
	real, links, err := resolve(at)
	switch {
	case err != nil:
		return Interpreter{}, gone(name)
	case throughKernel(links) || underAny(real, kernelDirs[:]):
		return Interpreter{}, noPlace(name)
	case exists(filepath.Dir(dir) + "/pyvenv.cfg"):
		// Its bin/python may well lead to /usr; without its packages that is another Python.
		return Interpreter{}, notChosen("interpreter " + quote(name) + " of the #! line is a virtual environment's, and PATH does not lead to it").
			Hint("sandglass run --venv DIR FILE   # if that is the environment that you want it to have")
	case shown(real) || f.leads(real):
		return f.findAt(real, true)
	}
	return Interpreter{}, notChosen("interpreter " + quote(name) + " of the #! line is not shown: PATH does not lead to it").
		Hint("PATH=DIR:$PATH sandglass run FILE   # if it is the interpreter that you want, in DIR").
		Hint("sandglass run -v DIR:DIR FILE   # if the script may see all of DIR")
}

// The hints of these name no path: it is the script's, and a hint is pasted.

func notChosen(what string) *refusal.Error {
	return refusal.Newf("%s", what).Code(refusal.ExitNotExecutable)
}

func noPlace(name string) *refusal.Error {
	return notChosen("interpreter "+quote(name)+" of the #! line: /proc, /sys and /dev are others inside").Hint("%s", hintLang)
}

func gone(name string) *refusal.Error {
	return refusal.Newf("%s: not found on this host", quote(name)).Code(refusal.ExitNotFound).Hint("%s", hintLang)
}

const hintLang = "sandglass run --lang python FILE   # says what language it is"

func throughKernel(links []Link) bool {
	for _, l := range links {
		if underAny(l.Path, kernelDirs[:]) {
			return true
		}
	}
	return false
}

// shown: the host view or a store has it, which everybody may read.
func shown(path string) bool { return inHostView(path) || underAny(path, stores[:]) }

// onPath is whether dir, which has no links, is an entry of PATH, or what the
// shims of one choose from.
func (f Finder) onPath(dir string) bool {
	for _, entry := range f.pathDirs(&missing{}) {
		real, _, err := resolve(entry)
		if err != nil {
			continue
		}
		root := filepath.Dir(real)
		if real == dir || filepath.Base(real) == "shims" && (under(dir, root+"/versions") || under(dir, root+"/installs")) {
			return true
		}
	}
	return false
}

// leads is whether PATH leads to the directory of an executable, by an entry or
// by a link in one: ~/.local/bin/python3.12 to where uv has installed it.
func (f Finder) leads(real string) bool {
	dir, base := filepath.Split(real)
	dir = filepath.Clean(dir)
	if f.onPath(dir) {
		return true
	}
	names := []string{base}
	if l := ofCommand(base); l != nil {
		names = append(names, l.Commands...)
	}
	for _, entry := range f.pathDirs(&missing{}) {
		for _, name := range names {
			if to, _, err := resolve(entry + "/" + name); err == nil && filepath.Dir(to) == dir {
				return true
			}
		}
	}
	return false
}

// mayBase is whether a Python may be brought as the base of a virtual
// environment: what PATH leads to, or what is installed where only
// interpreters are. Any other would be the choice of who wrote the environment.
func (f Finder) mayBase(base string) bool {
	p := filepath.Dir(filepath.Dir(base))
	return shown(base) || under(p, "/opt") && p != "/opt" || f.leads(base) || f.installedIn(p)
}

// installedIn: p is a directory of a version manager's, for one interpreter.
func (f Finder) installedIn(p string) bool {
	for _, r := range installRoots {
		if dir := f.getenv(r.env); filepath.IsAbs(dir) && isRoot(filepath.Clean(dir)+r.envDir, p) {
			return true
		}
	}
	for _, home := range f.homes() {
		for _, r := range installRoots {
			if isRoot(home+r.homeDir, p) {
				return true
			}
		}
		for _, name := range condas {
			if real, _, err := resolve(home + name); err == nil && real == p {
				return true
			}
		}
	}
	return false
}

// isRoot: p lies directly in dir, wherever that is really.
func isRoot(dir, p string) bool {
	real, _, err := resolve(dir)
	return err == nil && filepath.Dir(p) == real
}

// foreignBase is the refusal of a virtual environment that leads where the
// caller does not.
func foreignBase(dir, to string) *refusal.Error {
	return refusal.Newf("virtual environment %s: it is made of %s, which is not shown: PATH does not lead to it", quote(dir), quote(to)).
		Hint("PATH=DIR:$PATH sandglass run --venv VENV FILE   # if that is the Python it was made with, in DIR")
}
