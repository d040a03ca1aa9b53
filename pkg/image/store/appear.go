package store

import (
	"errors"

	"sandglass/internal/refusal"
	"sandglass/pkg/hostpath"
	"sandglass/pkg/image"

	"golang.org/x/sys/unix"
)

// examine says whether an image has to be made: it is not there, or it is damaged.
// harmed is the inode of a damaged one's directory, 0 for none. Who imports the same
// again wants it whole: "it is there already" would be a lie about a damaged one.
func examine(s *image.Store, id string) (fresh bool, harmed uint64) {
	var st unix.Stat_t
	if unix.Fstatat(s.FD, dirOf(id), &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return true, 0
	}
	img, err := s.Load(id)
	if err != nil {
		return true, st.Ino
	}
	defer img.Close()
	if problems, err := Verify(s, img); err != nil || len(problems) > 0 {
		return true, st.Ino
	}
	return false, 0
}

// appear gives the finished image its place and its name, both at once for who
// holds the lock, and says whether it is this import's.
func (w *Work) appear(id, name string, force, fresh bool, harmed uint64) (ours bool, err error) {
	l, err := lock(w.store)
	if err != nil {
		return false, err
	}
	defer l.Close()
	w.stop.mu.Lock()
	defer w.stop.mu.Unlock()
	if !force {
		if err := Free(w.store, name, id); err != nil {
			return false, err
		}
	}
	there := dirOf(id)
	if fresh {
		err := unix.Renameat2(w.dir, "image", w.store.FD, there, unix.RENAME_NOREPLACE)
		if ours = err == nil; err == unix.EEXIST {
			ours, err = w.replace(id, name, harmed)
		}
		if err != nil {
			return false, failed(w.store, there, err)
		}
	} else if img, err := w.store.Load(id); err == nil {
		img.Close()
	} else if errors.Is(err, image.ErrNone) {
		return false, failed(w.store, there, errGone)
	} else {
		return false, err
	}
	err = setName(w.store, name, id)
	if err != nil && ours {
		_ = unix.Renameat(w.store.FD, there, w.dir, "image") // what fails leaves nothing
	}
	w.stop.done = err == nil
	return ours, err
}

// replace puts the finished image in the place of a damaged one, which goes away with
// this import's work. Both change places at once: at no time does a name mean half
// an image. One that a run uses stays, for its files would go away below the run.
func (w *Work) replace(id, name string, harmed uint64) (bool, error) {
	var st unix.Stat_t
	err := unix.Fstatat(w.store.FD, dirOf(id), &st, unix.AT_SYMLINK_NOFOLLOW)
	if err != nil || st.Ino != harmed {
		return false, err // another import of the same was quicker
	}
	held, err := hold(w.store, id, name)
	if err != nil {
		return false, refusal.Newf("image %s is damaged, and in use, by a run or by who verifies or exports it", id).
			Hint("sandglass image verify %s   # and import or build it again, when that has ended", id)
	}
	defer held.Close()
	err = unix.Renameat2(w.dir, "image", w.store.FD, dirOf(id), unix.RENAME_EXCHANGE)
	return err == nil, err
}

// errGone is an image that was there when an import of the same began to end.
var errGone = errors.New("it was removed meanwhile: import it again")

func setName(s *image.Store, name, id string) error {
	fd, err := hostpath.DirBeneath(s.FD, image.NamesDir)
	if err != nil {
		return failed(s, image.NamesDir, err)
	}
	defer unix.Close(fd)
	d, err := hostpath.NewDraft(fd, 0o600)
	if err != nil {
		return failed(s, image.NamesDir, err)
	}
	if _, err = d.Write([]byte(id + "\n")); err == nil {
		err = d.Place(image.Normal(name), true)
	}
	if cerr := d.Close(err == nil); err == nil {
		err = cerr
	}
	if err != nil {
		return failed(s, image.NamesDir+"/"+name, err)
	}
	return nil
}
