// Package store writes the store of images that package image reads: imports,
// removals, the proof that what is there is still what it was.
//
// An import works in a directory of its own below tmp, which it holds a lock on.
// What it made appears by one rename, whole; what a killed one left is taken away
// by the next, which can take that lock. Nothing is written through a link, and
// nothing of an archive is a name here but below rootfs.
package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"strconv"

	"sandglass/internal/refusal"
	"sandglass/pkg/hostpath"
	"sandglass/pkg/image"
	"sandglass/pkg/image/tree"

	"golang.org/x/sys/unix"
)

// Create opens the store of this process's user, and makes it where it is missing.
func Create() (*image.Store, error) {
	at, err := image.Locate(os.Getenv)
	if err != nil {
		return nil, err
	}
	if at, err = image.Real(at); err != nil { // before anything is made there
		return nil, err
	}
	if err := os.MkdirAll(at, 0o700); err != nil {
		return nil, refusal.Newf("image store %s: %v", refusal.Word(at), refusal.Cause(err)).
			Hint("export XDG_DATA_HOME=/var/tmp/\"$(id -un)\"   # any directory of your own")
	}
	s, err := image.OpenAt(at)
	if err != nil {
		return nil, err
	}
	for _, d := range []string{image.ImagesDir, image.NamesDir, image.FilesDir, image.TempDir} {
		if err := unix.Mkdirat(s.FD, d, 0o700); err != nil && err != unix.EEXIST {
			s.Close()
			return nil, failed(s, d, err)
		}
	}
	return s, nil
}

// failed is the refusal of an operation on the store.
func failed(s *image.Store, what string, err error) error {
	if _, ok := err.(*refusal.Error); ok {
		return err
	}
	r := refusal.Newf("image store %s: %s: %v", refusal.Word(s.Path), what, refusal.Cause(err))
	if noSpace(err) {
		return r.Hint("sandglass image prune").Hint("df -h -- %s", refusal.Shell(s.Path))
	}
	return r.Hint("ls -la -- %s", refusal.Shell(s.Path))
}

// lock takes the store's lock, which is held for moments only. Closing the file
// gives it back.
func lock(s *image.Store) (*os.File, error) {
	fd, err := hostpath.Beneath(s.FD, image.LockFile, unix.O_RDWR|unix.O_CREAT, 0o600)
	if err != nil {
		return nil, failed(s, image.LockFile, err)
	}
	if err := image.Flock(fd, unix.LOCK_EX); err != nil {
		unix.Close(fd)
		return nil, failed(s, image.LockFile, err)
	}
	return os.NewFile(uintptr(fd), image.LockFile), nil
}

// Work is an import in progress. It is a Sink of package unpack.
type Work struct {
	store *image.Store
	temp  int    // STORE/tmp
	name  string // of the work's own directory there
	dir   int
	blobs int // contents, by their key
	files int // STORE/files
	known map[string]bool

	harmed map[string]bool // on the shelf, and not what their key says

	stop  *Stopper
	room  room
	buf   bytes.Buffer
	count int
}

// Begin starts an import that can be stopped, and takes away what killed ones have left.
func Begin(s *image.Store, stop *Stopper) (*Work, error) {
	l, err := lock(s)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	w := &Work{store: s, stop: stop, temp: -1, dir: -1, blobs: -1, files: -1, known: map[string]bool{}, harmed: map[string]bool{}}
	if err := w.open(); err != nil {
		w.Close()
		return nil, failed(s, image.TempDir, err)
	}
	return w, nil
}

func (w *Work) open() (err error) {
	if w.temp, err = hostpath.DirBeneath(w.store.FD, image.TempDir); err != nil {
		return err
	}
	if _, err := sweep(w.temp); err != nil {
		return err
	}
	if w.files, err = hostpath.DirBeneath(w.store.FD, image.FilesDir); err != nil {
		return err
	}
	if err := w.full(Room(w.temp, importer)); err != nil {
		return err
	}
	w.stop.mu.Lock()
	if w.name, err = freshDir(w.temp); err == nil {
		w.stop.work = w
	}
	w.stop.mu.Unlock()
	if err != nil {
		return err
	}
	if w.dir, err = hostpath.DirBeneath(w.temp, w.name); err != nil {
		return err
	}
	if err := image.Flock(w.dir, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return err
	}
	if err := unix.Mkdirat(w.dir, "blobs", 0o700); err != nil {
		return err
	}
	if w.blobs, err = hostpath.DirBeneath(w.dir, "blobs"); err != nil {
		return err
	}
	return w.full(w.grant())
}

// freshDir makes a directory with a name that nobody has.
func freshDir(in int) (string, error) {
	for {
		var r [8]byte
		if _, err := unix.Getrandom(r[:], 0); err != nil && err != unix.EINTR {
			return "", err
		}
		name := hex.EncodeToString(r[:])
		if err := unix.Mkdirat(in, name, 0o700); err != unix.EEXIST {
			return name, err
		}
	}
}

// sweep removes work whose lock nobody holds: its worker is dead. It says of how many.
func sweep(temp int) (n int, err error) {
	names, err := list(temp)
	if err != nil {
		return n, err
	}
	for _, name := range names {
		fd, err := hostpath.DirBeneath(temp, name)
		if err != nil {
			continue
		}
		if image.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) == nil {
			err = removeAll(temp, name)
			n++
		}
		unix.Close(fd)
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// list is what is in an open directory. One that was removed meanwhile, by whoever
// sweeps or stops beside us, has nothing; os says so in an error of its own kind.
func list(dir int) ([]string, error) {
	fd, err := hostpath.DirBeneath(dir, ".")
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), ".")
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	return names, err
}

// removeAll removes a name with all below it. A directory is opened without
// following a link, and given back the permission to be emptied.
func removeAll(in int, name string) error {
	err := unix.Unlinkat(in, name, 0)
	if err == nil || err == unix.ENOENT {
		return nil
	}
	if err != unix.EISDIR && err != unix.EPERM {
		return err
	}
	fd, err := hostpath.DirBeneath(in, name)
	if err == unix.ENOENT {
		return nil // somebody else who sweeps was quicker
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Fchmod(fd, 0o700); err != nil {
		return err
	}
	names, err := list(fd)
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := removeAll(fd, n); err != nil {
			return err
		}
	}
	if err := unix.Unlinkat(in, name, unix.AT_REMOVEDIR); err != unix.ENOENT {
		return err
	}
	return nil
}

// Close ends the work. What was not published is gone.
func (w *Work) Close() error {
	var err error
	if w.name != "" {
		err = removeAll(w.temp, w.name)
	}
	w.stop.mu.Lock() // not before it is gone: who stops this while it goes away helps
	w.stop.work = nil
	w.stop.mu.Unlock()
	for _, fd := range []int{w.temp, w.dir, w.blobs, w.files} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	return err
}

// Spool keeps what r gives in a file without a name.
func (w *Work) Spool(r io.Reader) (*os.File, error) {
	const name = "spool"
	fd, err := hostpath.Beneath(w.dir, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return nil, failed(w.store, name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	if err = unix.Unlinkat(w.dir, name, 0); err == nil {
		_, err = io.Copy(f, w.measured(r))
	}
	if err != nil {
		f.Close()
		return nil, w.full(err)
	}
	return f, nil
}

// small is what is held in memory to learn its digest before it is written: most
// files of a second image are there already.
const small = 1 << 20

// Add keeps a content under a mode and a time.
func (w *Work) Add(r io.Reader, mode uint32, mtime int64) (string, int64, error) {
	w.buf.Reset()
	if err := w.spend(block, 1); err != nil {
		return "", 0, err
	}
	n, err := w.buf.ReadFrom(io.LimitReader(r, small))
	if err != nil {
		return "", 0, err
	}
	if n < small {
		sum := sha256.Sum256(w.buf.Bytes())
		hex := hex.EncodeToString(sum[:])
		key := tree.Key(hex, mode, mtime)
		if w.have(key, hex, n, mode) {
			return hex, n, nil
		}
		w.known[key] = true
		_, _, err := write(w.blobs, key, w.measured(&w.buf), mode, mtime)
		return hex, n, w.full(err)
	}
	w.count++
	name := "large." + strconv.Itoa(w.count)
	hex, n, err := write(w.blobs, name, w.measured(io.MultiReader(&w.buf, r)), mode, mtime)
	if err != nil {
		return "", 0, w.full(err)
	}
	key := tree.Key(hex, mode, mtime)
	if w.have(key, hex, n, mode) {
		return hex, n, unix.Unlinkat(w.blobs, name, 0)
	}
	w.known[key] = true
	return hex, n, unix.Renameat(w.blobs, name, w.blobs, key)
}

// shelf is where in STORE/files a key is.
func shelf(key string) string { return key[:2] + "/" + key }

// have says that a content is there already: from this import, or from another
// image, whose file then gets one name more. That one is read first: a byte that a
// disk has lost would be in each later image too, from its birth.
func (w *Work) have(key, sum string, size int64, mode uint32) bool {
	if w.known[key] {
		return true
	}
	var st unix.Stat_t
	if w.harmed[key] || unix.Linkat(w.files, shelf(key), w.blobs, key, 0) != nil {
		return false
	}
	err := unix.Fstatat(w.blobs, key, &st, unix.AT_SYMLINK_NOFOLLOW)
	good := err == nil && st.Mode == unix.S_IFREG|mode && st.Size == size && int(st.Uid) == os.Geteuid()
	if good {
		got, err := hashFile(w.blobs, key)
		good = err == nil && got == sum
	}
	if !good {
		w.harmed[key] = true
		_ = unix.Unlinkat(w.blobs, key, 0) // the write that follows fails where it stays
		return false
	}
	w.known[key] = true
	return true
}

// write makes a new file of a content in dir.
func write(dir int, name string, r io.Reader, mode uint32, mtime int64) (sum string, n int64, err error) {
	fd, err := hostpath.Beneath(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return "", 0, err
	}
	f := os.NewFile(uintptr(fd), name)
	h := sha256.New()
	n, err = io.Copy(io.MultiWriter(f, h), r)
	if err == nil {
		err = unix.Fchmod(fd, mode)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = setTime(dir, name, mtime)
	}
	return hex.EncodeToString(h.Sum(nil)), n, err
}

func setTime(dir int, name string, mtime int64) error {
	t := unix.Timespec{Sec: mtime}
	return unix.UtimesNanoAt(dir, name, []unix.Timespec{t, t}, unix.AT_SYMLINK_NOFOLLOW)
}

// Trial has a tree's files in a directory for as long as try takes.
func (w *Work) Trial(t *tree.Tree, try func(root string) error) error {
	const name = "trial"
	err := w.directory(w.dir, name, "", t.Root)
	if err == nil {
		err = try(w.store.Path + "/" + image.TempDir + "/" + w.name + "/" + name)
	}
	if rerr := removeAll(w.dir, name); err == nil {
		err = rerr
	}
	return err
}
