package store

import (
	"errors"
	"io"

	"sandglass/internal/refusal"

	"golang.org/x/sys/unix"
)

// A disk that is full ends more than an import: what else runs here loses its data.
// So an import leaves some of it free, or a twentieth of a small one, and looks again
// after half of what there was beside that, at the latest after so much. An archive's
// own word for its size counts for nothing.
const (
	spareBytes  = 256 << 20
	spareInodes = 4096
	spareShare  = 20

	importer = "an import"

	lookBytes  = 16 << 20
	lookInodes = 512
)

// room is what may be written before the next look.
type room struct{ bytes, inodes int64 }

// Room refuses, in the name of who, a file system that is as full as it may be.
func Room(dir int, who string) error { return new(room).look(dir, who) }

// look is Room, and says what may be written. A file system that says nothing of its
// inodes, as btrfs, has as many as there are bytes.
func (r *room) look(dir int, who string) error {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(dir, &fs); err != nil {
		return err
	}
	spare := min(spareBytes, int64(fs.Blocks)*fs.Bsize/spareShare)
	more := int64(fs.Bavail)*fs.Bsize - spare
	if more < 0 {
		return refusal.Newf("%d kB are free on the disk, and %s leaves at least %d kB", (more+spare)>>10, who, spare>>10)
	}
	least := min(spareInodes, int64(fs.Files)/spareShare)
	files := int64(fs.Ffree) - least
	if fs.Files == 0 {
		files = 2 * lookInodes
	}
	if files < 0 {
		return refusal.Newf("%d files can still be made on the disk, and %s leaves at least %d", fs.Ffree, who, least)
	}
	*r = room{bytes: min(more/2, lookBytes), inodes: min(files/2, lookInodes)}
	return nil
}

// spend counts what is about to be written.
func (w *Work) spend(bytes, inodes int64) error {
	w.room.bytes -= bytes
	w.room.inodes -= inodes
	if w.room.bytes > 0 && w.room.inodes > 0 {
		return nil
	}
	return w.full(w.room.look(w.temp, importer))
}

// full is the refusal of what the disk has no room for, with where it is.
func (w *Work) full(err error) error {
	var r *refusal.Error
	if err == nil || errors.As(err, &r) && len(r.Hints) > 0 {
		return err
	}
	if r == nil && !noSpace(err) {
		return err
	}
	return refusal.Newf("image store %s: %s", refusal.Word(w.store.Path), refusal.Cause(err)).Hint("sandglass image prune").
		Hint("df -h -- %s; df -i -- %[1]s", refusal.Shell(w.store.Path)).
		Hint("export XDG_DATA_HOME=DIR   # a store on another disk")
}

func noSpace(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// measured is what r gives, as long as there is room for it.
func (w *Work) measured(r io.Reader) io.Reader { return &measured{r, w} }

type measured struct {
	r io.Reader
	w *Work
}

func (m *measured) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	if full := m.w.spend(int64(n), 0); full != nil {
		return n, full
	}
	return n, err
}
