package apt

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"sandglass/internal/refusal"
	"sandglass/pkg/image"
	"sandglass/pkg/image/manifest"
)

// What is kept of downloads: each build uses those of the last, and a lock needs them
// when no mirror has them any more. Nothing is lost that a build cannot get again.
const (
	keepFor   = 30 * 24 * time.Hour // since a build used it last
	keepBytes = 2 << 30             // of archives; what was used last stays
)

// Freed is what was removed.
type Freed struct {
	Files int
	Bytes int64
}

// Prune removes what no build has used for a month, and of the rest what is too much;
// all removes everything. A build that is at it has what it needs.
func Prune(all bool) (Freed, error) {
	top, err := cacheDir(os.Getenv)
	if err != nil {
		return Freed{}, nil // who has no home has no downloads
	}
	root, err := os.OpenRoot(top)
	if errors.Is(err, fs.ErrNotExist) {
		return Freed{}, nil
	}
	if err != nil {
		return Freed{}, failed(top, err)
	}
	defer root.Close()
	lock, err := openLock(top)
	if err != nil {
		return Freed{}, failed(top, err)
	}
	defer lock.Close()
	if image.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		if !all {
			return Freed{}, nil // the build does it at its end
		}
		return Freed{}, refusal.Newf("%s: a build uses it", refusal.Word(top)).Hint("sandglass image prune --cache   # again, when the build has ended")
	}
	c := cleaner{root: root, now: time.Now(), age: keepFor, most: keepBytes}
	if all {
		c.age, c.most = 0, 0
	}
	if err := c.clean(); err != nil {
		return c.freed, failed(top, err)
	}
	return c.freed, nil
}

// Trim is Prune for who has the lock, and keeps these packages.
func (a *Apt) Trim(list []manifest.Package) {
	root, err := os.OpenRoot(filepath.Dir(a.debs))
	if err != nil {
		return
	}
	defer root.Close()
	c := cleaner{root: root, now: time.Now(), age: keepFor, most: keepBytes, keep: map[string]bool{}}
	for _, p := range list {
		c.keep[filepath.Base(a.file(p))] = true
	}
	_ = c.clean() // the next one tries again
}

// cleaner removes by names below one directory that it has open: in a directory that
// root's apt has given to its own user, a link leads nowhere.
type cleaner struct {
	root  *os.Root
	now   time.Time
	age   time.Duration
	most  int64
	keep  map[string]bool
	freed Freed
}

func (c *cleaner) clean() error {
	states, err := c.list(".")
	if err != nil {
		return err
	}
	for _, s := range states {
		// Settings are written anew by each build.
		used, err := c.root.Lstat(s.Name() + "/apt.conf")
		if !s.IsDir() || s.Name() == archives || err == nil && !c.old(used) {
			continue
		}
		if err := c.remove(s.Name()); err != nil {
			return err
		}
	}
	for _, dir := range []string{archives, archives + "/partial"} {
		if err := c.archives(dir); err != nil {
			return err
		}
	}
	return nil
}

// archives removes what is old, and what is too much beside what was used later.
func (c *cleaner) archives(dir string) error {
	list, err := c.list(dir)
	if err != nil {
		return err
	}
	slices.SortFunc(list, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	total := int64(0)
	for _, f := range list {
		if f.IsDir() {
			continue
		}
		if total += f.Size(); c.keep[f.Name()] || !c.old(f) && total <= c.most {
			continue
		}
		total -= f.Size()
		if err := c.remove(dir + "/" + f.Name()); err != nil {
			return err
		}
	}
	return nil
}

func (c *cleaner) old(f fs.FileInfo) bool { return c.now.Sub(f.ModTime()) >= c.age }

// list is what is in a directory; one that is not there is empty.
func (c *cleaner) list(dir string) ([]fs.FileInfo, error) {
	f, err := c.root.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdir(-1)
}

// remove removes a file, or a directory with all that is in it, and counts it.
func (c *cleaner) remove(name string) error {
	if st, err := c.root.Lstat(name); err == nil && !st.IsDir() {
		c.freed.Files++
		c.freed.Bytes += st.Size()
		return c.root.Remove(name)
	}
	list, err := c.list(name)
	if err != nil {
		return err
	}
	for _, f := range list {
		if err := c.remove(name + "/" + f.Name()); err != nil {
			return err
		}
	}
	return c.root.Remove(name)
}
