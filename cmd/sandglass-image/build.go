package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/hostpath"
	"sandglass/pkg/image"
	"sandglass/pkg/image/apt"
	"sandglass/pkg/image/build"
	"sandglass/pkg/image/manifest"
	"sandglass/pkg/image/recipe"
	"sandglass/pkg/image/store"
	"sandglass/pkg/image/tree"
	"sandglass/pkg/image/unpack"
	"sandglass/pkg/runtimes"
	etcfiles "sandglass/rootfs"
)

const recipeSuffix = ".recipe"

// openRecipe reads a recipe: a file, for whoever writes a slash or the suffix, else
// one of those that come with this binary.
func openRecipe(word string) (*recipe.Recipe, error) {
	if strings.Contains(word, "/") || strings.HasSuffix(word, recipeSuffix) {
		text, err := readText(word, 1<<20)
		if err != nil {
			return nil, err
		}
		return recipe.Parse(strings.TrimSuffix(filepath.Base(word), recipeSuffix), text, runtime.GOARCH)
	}
	text, err := fs.ReadFile(etcfiles.Recipes, word+recipeSuffix)
	if err != nil {
		return nil, refusal.Newf("there is no recipe %s: there are %s", refusal.Word(word), strings.Join(recipes(), ", ")).
			Hint("sandglass image build ./FILE   # a recipe of your own, see docs/IMAGES.md")
	}
	return recipe.Parse(word, string(text), runtime.GOARCH)
}

// recipes are the names of those that come with this binary.
func recipes() []string {
	files, _ := fs.Glob(etcfiles.Recipes, "*"+recipeSuffix)
	for i, f := range files {
		files[i] = strings.TrimSuffix(f, recipeSuffix)
	}
	return files
}

// readText reads a small file that the caller names.
func readText(name string, most int64) (string, error) {
	real, err := filepath.EvalSymlinks(name)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return "", refusal.Newf("%s: %v", refusal.Word(name), refusal.Cause(err)).Hint("ls -ld -- %s", refusal.Shell(name))
	}
	f, size, err := hostpath.OpenRegular(real)
	if err != nil {
		return "", refusal.Newf("%s: %v", refusal.Word(name), refusal.Cause(err)).Hint("ls -ld -- %s", refusal.Shell(name))
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && (size > most || int64(len(text)) > most) {
		err = errors.New("it is too large")
	}
	if err != nil {
		return "", refusal.Newf("%s: %v", refusal.Word(name), refusal.Cause(err))
	}
	return string(text), nil
}

func buildVerb(args []string) (int, error) {
	o, err := parse("build", args, words{1, "RECIPE"}, "name", "force", "quiet", "lock", "mirror", "suite", "keyring")
	if err != nil {
		return 0, err
	}
	r, err := openRecipe(o.rest[0])
	if err != nil {
		return 0, err
	}
	name := o.name
	if name == "" {
		name = r.Name
	}
	return publish("build", name, o, func(w *store.Work) (*unpack.Unpacked, error) { return packaged(r, o, w) })
}

// publish makes an image of what make makes, under a name.
func publish(verb, name string, o *options, make func(*store.Work) (*unpack.Unpacked, error)) (int, error) {
	if err := image.CheckName(name); err != nil {
		return 0, err
	}
	stop := untilSignal(verb)
	s, err := store.Create()
	if err != nil {
		return 0, err
	}
	defer s.Close()
	w, err := store.Begin(s, stop)
	if err != nil {
		return 0, err
	}
	id := ""
	u, err := make(w)
	if err == nil {
		id, err = w.Publish(u, name, o.force)
	}
	_ = w.Close() // what it cannot remove the next one does: an image that is there is there
	if err != nil {
		return 0, err
	}
	for _, c := range u.Called[:min(len(u.Called), 4)] {
		if personal() {
			o.tell("the archive calls itself " + refusal.Word(c))
		}
	}
	o.meant(image.Normal(name))
	return emit(id + " " + image.Normal(name) + "\n"), nil
}

// meant tells of a name that is a command's too: to a run it means the image.
func (o *options) meant(name string) {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		st, err := os.Stat(filepath.Join(dir, name))
		if filepath.IsAbs(dir) && err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			o.tell(name + " is a command of this host too: sandglass run " + name + " means the image now, sandglass run -- " + name + " the command")
			return
		}
	}
}

// instead are the host's commands of which from-host makes an image like a recipe's.
var instead = map[string]string{"bash": "bash", "python": "python3", "python-science": "python3", "node": "node"}

// packaged builds by a recipe.
func packaged(r *recipe.Recipe, o *options, w *store.Work) (*unpack.Unpacked, error) {
	// What is started is told to end when the thread that started it does.
	runtime.LockOSThread()
	locked, err := readLock(r, o.lock)
	if err != nil {
		return nil, err
	}
	a, err := apt.Open(apt.Source{URL: o.mirror, Suite: o.suite, Keyring: o.keyring, Instead: instead[r.Name], Old: locked != nil, Waits: o.waits}, runtime.GOARCH)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	list, err := o.choose(r, a, locked)
	if err != nil {
		return nil, err
	}
	o.tell(fmt.Sprintf("unpacking %d packages", len(list)))
	u, err := build.Recipe(r, list, a, w, func(t *tree.Tree, argv []string, read func(io.Reader) error) error {
		o.tell("compiling its modules")
		return w.Trial(t, func(root string) error { return build.Sandbox(root, argv, read) })
	})
	if err == nil && o.lock != "" && locked == nil {
		err = writeLock(o.lock, recipe.Lock(list))
	}
	a.Trim(list)
	o.tell("writing the image")
	return u, err
}

// choose says which packages it is, and gets them. What a lock names and is here
// needs no list: the lock has its digest.
func (o *options) choose(r *recipe.Recipe, a *apt.Apt, locked []manifest.Package) ([]manifest.Package, error) {
	if locked != nil && a.Have(locked) {
		return locked, nil
	}
	o.tell("reading the lists of packages")
	if err := a.Update(); err != nil {
		return nil, err
	}
	list := locked
	if list == nil {
		var err error
		if list, err = a.Resolve(r.Packages, r.Without); err != nil {
			return nil, err
		}
	}
	o.tell(fmt.Sprintf("getting %d packages", len(list)))
	return list, a.Fetch(list, r.Without)
}

// tell says what is being done: minutes of silence look like the end.
func (o *options) tell(what string) {
	if !o.quiet {
		fmt.Fprintf(os.Stderr, "sandglass: %s\n", what)
	}
}

// waits tells that two builds do not use one directory of downloads at once.
func (o *options) waits(dir string) {
	o.tell("waiting for another build, which uses " + refusal.Word(dir))
}

// readLock reads a lock; nil where there is none yet.
func readLock(r *recipe.Recipe, file string) ([]manifest.Package, error) {
	if file == "" {
		return nil, nil
	}
	if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	text, err := readText(file, 1<<20)
	if err != nil {
		return nil, err
	}
	return r.ParseLock(file, text, runtime.GOARCH)
}

func writeLock(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err == nil {
		_, err = f.WriteString(text)
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}
	if err != nil {
		return refusal.Newf("lock %s: %v", refusal.Word(file), refusal.Cause(err)).Hint("ls -ld -- %s", refusal.Shell(filepath.Dir(file)))
	}
	return nil
}

func fromHostVerb(args []string) (int, error) {
	o, err := parse("from-host", args, words{-1, "COMMAND..."}, "name", "force", "quiet")
	if err != nil {
		return 0, err
	}
	name := o.name
	if name == "" {
		// Not the command's own name: that would mean the image from then on.
		name = "host-" + filepath.Base(o.rest[0])
	}
	// Without a directory: files there choose versions, and may be a model's.
	f := runtimes.Finder{Path: os.Getenv("PATH"), Home: os.Getenv("HOME"), Getenv: os.Getenv}
	return publish("from-host", name, o, func(w *store.Work) (*unpack.Unpacked, error) { return build.Host(o.rest, f, w) })
}
