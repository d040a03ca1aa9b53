package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// place is where a tree is installed: what packages have below /usr.
type place struct{ destdir, prefix, bin string }

// packagedPrefix is the one that the files of the tree are written for.
const packagedPrefix = "/usr"

// at is the path of a file, and where it is written while an image of a system is
// made (DESTDIR).
func (p place) at(name string) string { return p.destdir + filepath.Join(p.prefix, name) }

// installed are the files of the packages, but for the lists of contents, which
// tell of what make dist compiles.
func (p place) installed(root string) ([]file, error) {
	if !filepath.IsAbs(p.prefix) {
		return nil, fmt.Errorf("PREFIX %q is not an absolute path", p.prefix)
	}
	r, err := decide(root, "")
	if err != nil { // no checkout of git: a tarball of the source
		r = &release{version: "dev", when: time.Now().UTC()}
	}
	list, err := r.files(root)
	if err != nil {
		return nil, err
	}
	for i := range list {
		if list[i].path == profilePath {
			list[i].data = bytes.ReplaceAll(list[i].data, []byte(packagedPrefix+"/bin/"), []byte(filepath.Join(p.prefix, "bin")+"/"))
		}
	}
	for _, command := range commands {
		list = append(list, file{"bin/" + command, 0o755, nil})
	}
	return list, nil
}

// install writes them.
func (p place) install(root string) error {
	list, err := p.installed(root)
	if err != nil {
		return err
	}
	for _, f := range list {
		if name, ok := strings.CutPrefix(f.path, "bin/"); ok {
			if f.data, err = os.ReadFile(filepath.Join(p.bin, name)); err != nil {
				return err
			}
		}
		if err := replace(p.at(f.path), f.data, f.mode); err != nil {
			return err
		}
	}
	fmt.Printf("installed %d files below %s\n", len(list), p.at(""))
	return nil
}

// replace puts a file in the place of another in one step: a binary that runs can
// not be written to, and one that is half written must not be started.
func replace(path string, data []byte, mode fs.FileMode) error {
	fresh := path + ".new"
	if err := os.Remove(fresh); err != nil && !os.IsNotExist(err) {
		return err
	}
	if err := put(fresh, data, mode); err != nil {
		return err
	}
	return os.Rename(fresh, path)
}

// uninstall removes what install has written, and the directories that are
// nobody else's, once they are empty.
func (p place) uninstall(root string) error {
	list, err := p.installed(root)
	if err != nil {
		return err
	}
	removed := 0
	for _, f := range list {
		err := os.Remove(p.at(f.path))
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		if err == nil {
			removed++
		}
	}
	dirs := parents(list)
	for i := len(dirs) - 1; i >= 0; i-- { // what is in one before itself
		if !own(dirs[i]) {
			continue
		}
		err := os.Remove(p.at(dirs[i]))
		if err != nil && !os.IsNotExist(err) && !errors.Is(err, syscall.ENOTEMPTY) {
			return err
		}
	}
	fmt.Printf("removed %d files below %s\n", removed, p.at(""))
	return nil
}

// own says whether a directory has been made for sandglass alone.
func own(dir string) bool {
	for ; dir != "."; dir = path.Dir(dir) {
		if path.Base(dir) == "sandglass" {
			return true
		}
	}
	return false
}
