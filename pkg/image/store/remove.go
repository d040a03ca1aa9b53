package store

import (
	"os"
	"slices"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/hostpath"
	"sandglass/pkg/image"
	"sandglass/pkg/image/tree"
	"sandglass/pkg/image/unpack"

	"golang.org/x/sys/unix"
)

// Removable is the digest that a name or digest means to Remove: "" for a name that
// means nothing, which can be taken away as well.
func Removable(s *image.Store, ref string) (string, error) {
	name := image.Normal(ref)
	id, err := s.Resolve(ref)
	if err != nil && image.CheckName(name) == nil {
		if _, why := s.Meaning(name); why == image.ErrDigest {
			return "", nil
		}
	}
	if err != nil || name != ref || !image.IsDigest(ref) {
		return id, err
	}
	var st unix.Stat_t
	if unix.Fstatat(s.FD, dirOf(id), &st, unix.AT_SYMLINK_NOFOLLOW) == unix.ENOENT {
		return "", image.ErrNone
	}
	return id, nil
}

// Remove takes a name away, and the image when no other name means it. By a
// digest it takes the image and its name away; all its names, if force says so.
// One that a run uses stays.
func Remove(s *image.Store, ref string, force bool) (removed string, err error) {
	l, err := lock(s)
	if err != nil {
		return "", err
	}
	defer l.Close()
	id, err := Removable(s, ref)
	if err != nil {
		return "", err
	}
	mine := image.Normal(ref)
	if id == "" {
		return "", unname(s, mine)
	}
	names, err := NamesOf(s, id)
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(ref, image.DigestPrefix) {
		if slices.ContainsFunc(names, func(n string) bool { return n != mine }) {
			return "", unname(s, mine)
		}
		names = []string{mine}
	} else if len(names) > 1 && !force {
		return "", refusal.Newf("image %s has %d names: %s", id, len(names), strings.Join(names[:min(len(names), 8)], ", ")).
			Hint("sandglass image rm %s   # one of them", names[0]).
			Hint("sandglass image rm --force %s   # all of them, and the image", id)
	}
	held, err := hold(s, id, ref)
	if err != nil {
		return "", err
	}
	defer held.Close()
	// First the names: whoever kills this leaves none that means nothing.
	for _, n := range names {
		if err := unname(s, n); err != nil {
			return "", err
		}
	}
	gone, err := detach(s, id)
	if err != nil {
		return "", err
	}
	l.Close() // what follows nobody can see
	return id, discard(s, gone)
}

// NamesOf are the names that mean an image.
func NamesOf(s *image.Store, id string) ([]string, error) {
	all, err := s.Names()
	if err != nil {
		return nil, err
	}
	var mine []string
	for _, n := range all {
		switch got, err := s.Meaning(n); {
		case err == nil && got == id:
			mine = append(mine, n)
		case err != nil && err != image.ErrNone && err != image.ErrDigest:
			return nil, failed(s, image.NamesDir+"/"+n, err) // it may be the image's
		}
	}
	return mine, nil
}

func unname(s *image.Store, name string) error {
	if err := unix.Unlinkat(s.FD, image.NamesDir+"/"+name, 0); err != nil && err != unix.ENOENT {
		return failed(s, image.NamesDir+"/"+name, err)
	}
	return nil
}

func dirOf(id string) string {
	return image.ImagesDir + "/" + strings.TrimPrefix(id, image.DigestPrefix)
}

// hold keeps runs from an image that is to be removed, until it is closed. One that
// a run uses already, or who reads it, is refused; one that is broken nobody can run.
func hold(s *image.Store, id, ref string) (*os.File, error) {
	fd, err := hostpath.Beneath(s.FD, dirOf(id)+"/"+image.MetaFile, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil // whose Close does nothing
	}
	if image.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil {
		unix.Close(fd)
		return nil, refusal.Newf("image %s is in use, by a run or by who verifies or exports it", id).Hint("sandglass image rm %s   # again, when that has ended", refusal.Shell(ref))
	}
	return os.NewFile(uintptr(fd), image.MetaFile), nil
}

// detach moves an image that is held out of sight, and is its new name below tmp,
// "" when it was not there. The store is locked.
func detach(s *image.Store, id string) (string, error) {
	dir := dirOf(id)
	temp, err := hostpath.DirBeneath(s.FD, image.TempDir)
	if err != nil {
		return "", failed(s, image.TempDir, err)
	}
	defer unix.Close(temp)
	name, err := freshDir(temp)
	if err == nil {
		err = unix.Renameat(s.FD, dir, temp, name) // an empty directory gives way
	}
	if err == unix.ENOENT {
		return "", unix.Unlinkat(temp, name, unix.AT_REMOVEDIR)
	}
	if err != nil {
		return "", failed(s, dir, err)
	}
	return name, nil
}

// discard removes an image that was moved out of sight, and then what no other
// image shares with it.
func discard(s *image.Store, name string) error {
	if name == "" {
		return nil
	}
	temp, err := hostpath.DirBeneath(s.FD, image.TempDir)
	if err != nil {
		return failed(s, image.TempDir, err)
	}
	defer unix.Close(temp)
	files, listErr := readList(temp, name+"/"+image.TreeFile)
	if err := removeAll(temp, name); err != nil {
		return failed(s, image.TempDir+"/"+name, err)
	}
	if listErr != nil {
		return nil // prune looks at all files
	}
	return files.Walk(func(_ string, n *tree.Node) error {
		if n.Kind == tree.File {
			unshare(s, shelf(n.Key()))
		}
		return nil
	})
}

// readList reads a list of files.
func readList(dir int, name string) (*tree.Tree, error) {
	fd, err := hostpath.Beneath(dir, name, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	return tree.Read(f, anyBounds())
}

// anyBounds are those of a list that was written here, under whatever limits.
func anyBounds() tree.Bounds {
	l := unpack.Limits{Files: 1 << 40}
	return l.Bounds()
}

// unshare removes a content that has no other name left, and whether it did.
func unshare(s *image.Store, at string) bool {
	var st unix.Stat_t
	name := image.FilesDir + "/" + at
	if unix.Fstatat(s.FD, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || st.Nlink > 1 {
		return false
	}
	return unix.Unlinkat(s.FD, name, 0) == nil
}

// Pruned is what Prune removed.
type Pruned struct {
	Images []string
	Names  []string // which meant no image
	Work   int      // directories of killed imports
	Files  int64
}

// Prune removes images that have no name, what killed imports left, and shared
// contents that no image has any more.
func Prune(s *image.Store) (Pruned, error) {
	var p Pruned
	l, err := lock(s)
	if err != nil {
		return p, err
	}
	defer l.Close()
	all, err := s.Images()
	if err != nil {
		return p, err
	}
	for _, id := range all {
		names, err := NamesOf(s, id)
		if err != nil {
			return p, err
		}
		if len(names) > 0 {
			continue
		}
		held, err := hold(s, id, id)
		if err != nil {
			continue // a run uses it
		}
		gone, err := detach(s, id)
		if err == nil {
			err = discard(s, gone)
		}
		held.Close()
		if err != nil {
			return p, err
		}
		p.Images = append(p.Images, id)
	}
	if p.Names, err = meaningless(s); err != nil {
		return p, err
	}
	temp, err := hostpath.DirBeneath(s.FD, image.TempDir)
	if err == nil {
		p.Work, err = sweep(temp)
		unix.Close(temp)
	}
	if err != nil {
		return p, failed(s, image.TempDir, err)
	}
	return p, p.shelves(s)
}

// meaningless removes names whose image is not there, and what a change of one that
// was killed has left. The store is locked, so nobody is at it.
func meaningless(s *image.Store) (gone []string, err error) {
	dir, err := hostpath.DirBeneath(s.FD, image.NamesDir)
	if err != nil {
		return gone, failed(s, image.NamesDir, err)
	}
	defer unix.Close(dir)
	names, err := list(dir)
	if err != nil {
		return gone, failed(s, image.NamesDir, err)
	}
	slices.Sort(names)
	for _, n := range names {
		var st unix.Stat_t
		id, err := s.Meaning(n)
		if err == nil {
			err = unix.Fstatat(s.FD, dirOf(id), &st, unix.AT_SYMLINK_NOFOLLOW)
		}
		switch {
		case err == nil && image.CheckName(n) == nil:
			continue
		case err != nil && err != unix.ENOENT && err != image.ErrDigest && err != image.ErrNone:
			return gone, failed(s, image.NamesDir+"/"+n, err)
		}
		if err := unname(s, n); err != nil {
			return gone, err
		}
		if image.CheckName(n) == nil {
			gone = append(gone, n)
		}
	}
	return gone, nil
}

func (p *Pruned) shelves(s *image.Store) error {
	files, err := hostpath.DirBeneath(s.FD, image.FilesDir)
	if err != nil {
		return failed(s, image.FilesDir, err)
	}
	defer unix.Close(files)
	dirs, err := list(files)
	if err != nil {
		return failed(s, image.FilesDir, err)
	}
	for _, d := range dirs {
		fd, err := hostpath.DirBeneath(files, d)
		if err != nil {
			continue
		}
		names, err := list(fd)
		unix.Close(fd)
		if err != nil {
			return failed(s, image.FilesDir, err)
		}
		for _, n := range names {
			if unshare(s, d+"/"+n) {
				p.Files++
			}
		}
	}
	return nil
}
