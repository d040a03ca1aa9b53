package store

import (
	"errors"
	"fmt"
	"io"
	"os"

	"sandglass/internal/refusal"
	"sandglass/pkg/hostpath"

	"golang.org/x/sys/unix"
)

// A disk that is full ends more than an import: what else runs here loses its data.
// So an import leaves some of it free, or a twentieth of a small one, and looks again
// after half of what there was beside that, at the latest after so much. An archive's
// own word for its size counts for nothing. What one may take until it looks again,
// the others under way leave to it: each alone would else find the same room.
const (
	spareBytes  = 256 << 20
	spareInodes = 4096
	spareShare  = 20

	importer = "an import"
	roomFile = "room" // in a work's directory: what it may take

	lookBytes  = 16 << 20
	lookInodes = 512

	block = 4 << 10 // of the disk, which the smallest file takes one of
)

// room is what may be written before the next look.
type room struct{ bytes, inodes int64 }

// Room refuses, in the name of who, a file system that is as full as it may be.
func Room(dir int, who string) error { return new(room).look(dir, who, room{}) }

// look is Room, and says what may be written beside what is promised to others. A file system that says nothing of its
// inodes, as btrfs, has as many as there are bytes.
func (r *room) look(dir int, who string, promised room) error {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(dir, &fs); err != nil {
		return err
	}
	spare := min(spareBytes, int64(fs.Blocks)*fs.Bsize/spareShare)
	free, others := int64(fs.Bavail)*fs.Bsize, ""
	if promised.bytes > 0 {
		others = fmt.Sprintf(", of which others under way may take %d kB", promised.bytes>>10)
	}
	more := free - spare - promised.bytes
	if more < 0 {
		return refusal.Newf("%d kB are free on the disk%s, and %s leaves at least %d kB", free>>10, others, who, spare>>10)
	}
	least := min(spareInodes, int64(fs.Files)/spareShare)
	files := int64(fs.Ffree) - least - promised.inodes
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
	l, err := lock(w.store)
	if err != nil {
		return err
	}
	defer l.Close()
	return w.full(w.grant())
}

// grant looks for what may be written next, and lets the others know. The store is
// locked.
func (w *Work) grant() error {
	promised, err := w.promised()
	if err != nil {
		return err
	}
	if err := w.room.look(w.temp, importer, promised); err != nil {
		return err
	}
	fd, err := hostpath.Beneath(w.dir, roomFile, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), roomFile)
	_, err = fmt.Fprintf(f, "%d %d\n", w.room.bytes, w.room.inodes)
	return errors.Join(err, f.Close())
}

// promised is what the others under way may take together until they look again. Part
// of it may be taken by now, so it is too much rather than too little.
func (w *Work) promised() (sum room, err error) {
	names, err := list(w.temp)
	for _, name := range names {
		fd, err := hostpath.Beneath(w.temp, name+"/"+roomFile, unix.O_RDONLY|unix.O_NONBLOCK, 0)
		if name == w.name || err != nil { // it is gone, or none that writes
			if err == nil {
				unix.Close(fd)
			}
			continue
		}
		var r room
		f := os.NewFile(uintptr(fd), roomFile)
		if _, err := fmt.Fscan(f, &r.bytes, &r.inodes); err == nil && r.bytes >= 0 && r.inodes >= 0 {
			sum.bytes += min(r.bytes, lookBytes)
			sum.inodes += min(r.inodes, lookInodes)
		}
		f.Close()
	}
	return sum, err
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
