package build

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/image"
	"sandglass/pkg/image/manifest"
	"sandglass/pkg/image/recipe"
	"sandglass/pkg/image/unpack"
	"sandglass/pkg/runtimes"
)

// host makes an image of what is installed here.
type host struct {
	*builder
	trees   []string // what is taken whole
	queue   []string // programs and libraries whose libraries are to be found
	loader  string
	odd     []string // directories of libraries where a loader does not look by itself
	private bool     // the caller's own prefix is being taken, not the system's
}

// leftOut is what an interpreter's directories hold beside its standard library:
// what people have installed, which may be anything, and tests.
var leftOut = recipe.Must(
	"/**/site-packages", "/**/dist-packages", "/**/python3*/test", "/**/python3*/**/tests", "/**/python3*/config-3*",
	"/**/python3*/idlelib", "/**/python3*/turtledemo", "/**/lib/node_modules", "/**/share/man", "/**/share/doc", "/**/man/man1",
	"/**/lib/src.zip", "/**/jmods", "/usr/lib/php/*/*.so.debug",
)

// Host makes an image of interpreters and programs of this host, by name.
func Host(names []string, f runtimes.Finder, sink unpack.Sink) (*unpack.Unpacked, error) {
	h := &host{builder: newBuilder(sink)}
	for _, name := range names {
		if err := h.program(f, name); err != nil {
			return nil, err
		}
	}
	if err := h.libraries(); err != nil {
		return nil, err
	}
	for _, path := range []string{"/usr/lib/locale/C.utf8", "/usr/lib/locale/C.UTF-8", "/etc/ssl/certs/ca-certificates.crt"} {
		if err := h.take(path); err != nil {
			return nil, err
		}
	}
	if err := h.base(); err != nil {
		return nil, err
	}
	config := image.Config{Cmd: []string{filepath.Base(names[0])}}
	if len(h.odd) > 0 {
		slices.Sort(h.odd)
		config.Env = []string{"LD_LIBRARY_PATH=" + strings.Join(slices.Compact(h.odd), ":")}
	}
	return h.finish("host "+strings.Join(names, " "), nil, config)
}

// program takes one interpreter with its standard library.
func (h *host) program(f runtimes.Finder, name string) error {
	in, err := f.Find(name)
	if err != nil {
		return missing(name, err)
	}
	for _, dir := range scratch {
		if strings.HasPrefix(in.Exe, dir) {
			return refusal.Newf("%s is %s: %s is the sandbox's own inside, so that it could not be run", refusal.Word(name), refusal.Word(in.Exe), strings.TrimSuffix(dir, "/")).
				Hint("install -D -- %s \"$HOME\"/bin/%s && sandglass image from-host \"$HOME\"/bin/%[2]s", refusal.Shell(in.Exe), refusal.Shell(filepath.Base(in.Exe)))
		}
	}
	standard, err := runtimes.Standard(in)
	if err != nil {
		return err
	}
	if err := h.interpreter(name, in.Exe); err != nil {
		return err
	}
	h.private = in.Prefix != ""
	h.trees = append(h.trees, standard...)
	for _, path := range append([]string{in.Exe}, standard...) {
		if err := h.take(path); err != nil {
			return err
		}
	}
	h.private = false
	return h.names(name, in)
}

// scratch are directories where a run has its own, whatever the image has there.
var scratch = []string{"/tmp/", "/work/", "/out/", "/code/", "/dev/", "/proc/", "/sys/"}

// missing gives the refusal of a command that is not found the hints of this verb:
// those of a run are of no use here.
func missing(name string, err error) error {
	r := refusal.Within("from-host", err)
	if r.Hints = nil; strings.Contains(name, "/") && !filepath.IsAbs(name) {
		return r.Hint("sandglass image from-host \"$PWD\"/%s", refusal.Shell(filepath.Clean(name)))
	}
	if filepath.IsAbs(name) {
		return r.Hint("ls -ld -- %s", refusal.Shell(name))
	}
	return r.Hint("command -v %s   # whether your shell has it", refusal.Shell(name)).
		Hint("sandglass image build --help   # images of packages")
}

// names makes the links by which the program is found inside.
func (h *host) names(name string, in runtimes.Interpreter) error {
	for _, l := range in.Links {
		if err := h.link(place(l.Path), l.Target, h.newest); err != nil {
			return err
		}
	}
	called := []string{filepath.Base(name)}
	if lang, _ := runtimes.Lang(called[0]); lang == "python" {
		called = append(called, "python3", "python")
	}
	for _, c := range called {
		at := "usr/bin/" + c
		if h.out.Tree.Look(at) != nil {
			continue
		}
		if err := h.link(at, in.Exe, h.newest); err != nil {
			return err
		}
	}
	return nil
}

// take takes a file, or a directory with all that is in it. What is not there is
// not taken.
func (h *host) take(path string) error {
	st, err := os.Stat(path)
	switch {
	case os.IsNotExist(err):
		return nil
	case err != nil:
		return refusal.Newf("%s: %v", refusal.Word(path), refusal.Cause(err))
	case st.IsDir():
		return h.directory(path, 0)
	case st.Mode().IsRegular():
		return h.regular(path, st)
	}
	return nil
}

// maxDeep bounds directories below each other: a link may lead to one above it.
const maxDeep = 32

func (h *host) directory(dir string, deep int) error {
	if deep > maxDeep {
		return refusal.Newf("%s: more than %d directories below each other", refusal.Word(dir), maxDeep)
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		return refusal.Newf("%s: %v", refusal.Word(dir), refusal.Cause(err))
	}
	if err := h.out.Tree.MakeDir(place(dir)); err != nil {
		return err
	}
	for _, e := range list {
		path := dir + "/" + e.Name()
		if recipe.Any(leftOut, place(path)) {
			continue
		}
		switch {
		case e.IsDir():
			err = h.directory(path, deep+1)
		case e.Type()&os.ModeSymlink != 0:
			err = h.symlink(path, deep)
		case e.Type().IsRegular():
			err = h.take(path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// symlink keeps a link that leads to what is taken as well. Another becomes what it
// leads to; what it leads to in /etc is taken only by name, for that has passwords.
func (h *host) symlink(path string, deep int) error {
	target, err := os.Readlink(path)
	if err != nil {
		return refusal.Newf("%s: %v", refusal.Word(path), refusal.Cause(err))
	}
	to := target
	if !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(path), to)
	}
	st, err := os.Stat(path)
	switch {
	case err != nil || h.inTree(to) && !recipe.Any(leftOut, place(to)):
		return h.link(place(path), target, h.newest)
	case st.Mode().IsRegular():
		return h.regular(path, st)
	case st.IsDir() && strings.HasPrefix(to, "/etc/"):
		return h.link(place(path), target, h.newest)
	case st.IsDir():
		return h.directory(path, deep+1)
	}
	return nil
}

// regular takes a file's content, whatever links lead to it.
func (h *host) regular(path string, st os.FileInfo) error {
	at := place(path)
	// What others may not read on the host they may not read in an image either.
	if h.owner[at] != "" || !h.private && st.Mode().Perm()&0o004 == 0 {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return refusal.Newf("%s: %v", refusal.Word(path), refusal.Cause(err))
	}
	defer f.Close()
	if now, err := f.Stat(); err != nil || !os.SameFile(now, st) {
		return refusal.Newf("%s: it was changed meanwhile", refusal.Word(path))
	}
	if err := h.file(at, manifest.Host, uint32(st.Mode().Perm())|0o444, max(st.ModTime().Unix(), 0), io.Reader(f)); err != nil {
		return err
	}
	if isELF(f) {
		h.queue = append(h.queue, path)
	}
	return nil
}
