// Package image opens images that were imported before: the store of them that
// each user has, the names and digests in it, and what an image says of how it
// wants to be run. It unpacks nothing and reads no archive: that is the work of
// a program of its own, sandglass-image (pkg/image/...), which this one shares
// the form of the store with.
//
//	STORE/lock            held while names and images are added or taken away
//	STORE/names/NAME      the digest that a name means
//	STORE/images/HEX/     one image: image.json, whose SHA-256 is HEX; tree, the list
//	                      of its files; rootfs, the files; manifest, of a built one
//	STORE/files/KEY       content that several images share, by hard links
//	STORE/tmp/...         work in progress, locked by who does it
//
// The store is the caller's own and nobody else's: an image that another user
// could change is another user's program.
package image

import (
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/hostpath"

	"golang.org/x/sys/unix"
)

// ErrNone is Find's for a name or digest that the store does not have.
var ErrNone = errors.New("there is no such image")

// Names of what is in a store.
const (
	ImagesDir = "images"
	NamesDir  = "names"
	FilesDir  = "files"
	TempDir   = "tmp"
	LockFile  = "lock"
	MetaFile  = "image.json"
	TreeFile  = "tree"
	RootDir   = "rootfs"

	ManifestFile = "manifest" // of an image that was built here
)

// Store is an open store.
type Store struct {
	Path string // without links
	FD   int    // the directory, O_PATH
}

// Locate says where the store of this process's user is: XDG_DATA_HOME where it
// is set, /var/lib for root, else below the home directory.
func Locate(getenv func(string) string) (string, error) {
	if data := getenv("XDG_DATA_HOME"); strings.HasPrefix(data, "/") {
		return path.Join(data, "sandglass"), nil
	}
	if os.Geteuid() == 0 {
		return "/var/lib/sandglass", nil
	}
	if home := getenv("HOME"); strings.HasPrefix(home, "/") {
		return path.Join(home, ".local/share/sandglass"), nil
	}
	return "", refusal.Newf("image store: neither XDG_DATA_HOME nor HOME says where it is").
		Hint("export XDG_DATA_HOME=/var/tmp/\"$(id -un)\"   # any directory of your own")
}

// Open opens the store of this process's user. One that is not there is ErrNone.
func Open() (*Store, error) {
	at, err := Locate(os.Getenv)
	if err != nil {
		return nil, ErrNone // who has no home has no images
	}
	return OpenAt(at)
}

// OpenAt opens the store at a path.
func OpenAt(at string) (*Store, error) {
	var st unix.Stat_t
	switch unix.Stat(at, &st) {
	case unix.ENOENT, unix.EACCES, unix.ENOTDIR: // a home directory that is closed holds none
		return nil, ErrNone
	}
	real, err := Real(at)
	if err != nil {
		return nil, err
	}
	fd, err := hostpath.OpenDir(real)
	if err == unix.ENOENT || err == unix.EACCES {
		return nil, ErrNone
	}
	if err != nil {
		return nil, refusal.Newf("image store %s: %v", refusal.Word(real), err).Hint("ls -ld -- %s", refusal.Shell(real))
	}
	if err := Private(fd); err != nil {
		unix.Close(fd)
		r := refusal.Newf("image store %s: %v", refusal.Word(real), err).Hint("ls -ld -- %s", refusal.Shell(real))
		if err == errOwner {
			return nil, r.Hint("export XDG_DATA_HOME=/var/tmp/\"$(id -un)\"   # any directory of your own")
		}
		return nil, r.Hint("chmod 700 -- %s", refusal.Shell(real))
	}
	return &Store{Path: real, FD: fd}, nil
}

// Real is the path of a store without its links. Who can write to a directory on
// the way, or owns one, can put another store there, or a link to one; and a store
// need not be theirs to be wrong: one of this user's that was unpacked somewhere will do.
func Real(at string) (string, error) {
	real, err := hostpath.Walk(at, safe)
	var link *hostpath.LinkError
	if errors.As(err, &link) {
		return "", refusal.Newf("image store %s: the symbolic link %s leads to nothing, or could be another user's", refusal.Word(at), refusal.Word(link.Link)).
			Hint("ls -ld -- %s", refusal.Shell(link.Link))
	}
	if err != nil {
		return "", refusal.Newf("image store %s: %v", refusal.Word(at), refusal.Cause(err)).Hint("ls -ld -- %s", refusal.Shell(at))
	}
	for dir := path.Dir(real); ; dir = path.Dir(dir) {
		if !safe(dir) {
			return "", refusal.Newf("image store %s: another user can change %s, and put another store in its place", refusal.Word(real), refusal.Word(dir)).
				Hint("ls -ld -- %s", refusal.Shell(dir)).
				Hint("export XDG_DATA_HOME=/var/tmp/\"$(id -un)\"   # any directory of your own")
		}
		if dir == "/" {
			return real, nil
		}
	}
}

// unmapped says that an id is the one of all who have none in this user namespace,
// as the host's root has none in a container. On the host itself it is a user's.
func unmapped(uid uint32) bool {
	if uid != 65534 {
		return false
	}
	text, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && !slices.Contains(strings.Fields(string(text)), "4294967295")
}

// safe says that no other user but root can rename or replace what is in a directory
// of this user's or of root's. A group that may write is taken for the user's own
// where it is the one that it has: many systems give each user one.
func safe(dir string) bool {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return err == unix.ENOENT || err == unix.EACCES // it is not there, or the open will say so
	}
	owned := st.Uid == 0 || unmapped(st.Uid) || int(st.Uid) == os.Geteuid()
	group := st.Mode&0o020 != 0 && int(st.Gid) != os.Getegid() && st.Gid != 0
	return owned && (st.Mode&unix.S_ISVTX != 0 || st.Mode&0o002 == 0 && !group)
}

var (
	errOwner = errors.New("it belongs to another user, whose programs its images would be")
	errOpen  = errors.New("others can write to it, and could put their programs in its images")
)

// Private says that nobody but this user can change an open file or directory.
func Private(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	switch {
	case int(st.Uid) != os.Geteuid():
		return errOwner
	case st.Mode&0o022 != 0:
		return errOpen
	}
	return nil
}

// Close lets go of the store. Images that were opened stay open.
func (s *Store) Close() { unix.Close(s.FD) }

// Names are the names of the store, sorted.
func (s *Store) Names() ([]string, error) {
	list, err := s.entries(NamesDir)
	return slices.DeleteFunc(list, func(n string) bool { return CheckName(n) != nil }), err
}

// entries are the names in a directory of the store, sorted. A directory that is not
// there yet has none.
func (s *Store) entries(dir string) ([]string, error) {
	fd, err := hostpath.DirBeneath(s.FD, dir)
	if err == unix.ENOENT {
		return nil, nil
	}
	if err != nil {
		return nil, s.broken(dir, "", err)
	}
	f := os.NewFile(uintptr(fd), dir)
	defer f.Close()
	list, err := f.Readdirnames(-1)
	if err != nil && err != io.EOF {
		return nil, s.broken(dir, "", err)
	}
	slices.Sort(list)
	return list, nil
}

// Resolve is the digest that a name, a digest or the beginning of one means.
func (s *Store) Resolve(ref string) (string, error) {
	if rest, ok := strings.CutPrefix(ref, DigestPrefix); ok {
		return s.complete(rest)
	}
	name := Normal(ref)
	if CheckName(name) != nil {
		return "", ErrNone
	}
	id, err := s.Meaning(name)
	if err == ErrNone || err == nil {
		return id, err
	}
	return "", s.broken(NamesDir+"/"+name, name, err)
}

// ErrDigest is a name's that means nothing, as one that a power failure has emptied.
var ErrDigest = errors.New("it holds no digest")

// Meaning is the digest that a name in its normal form means; ErrNone, ErrDigest, or
// why it cannot be read, which is no reason to take it for nothing.
func (s *Store) Meaning(name string) (string, error) {
	text, err := s.read(NamesDir+"/"+name, 128)
	if err == unix.ENOENT {
		return "", ErrNone
	}
	if err == unix.EFBIG {
		return "", ErrDigest
	}
	if err != nil {
		return "", err
	}
	id := strings.TrimSuffix(string(text), "\n")
	if !IsDigest(id) {
		return "", ErrDigest
	}
	return id, nil
}

// leastPrefix is how much of a digest must be given.
const leastPrefix = 12

// TooShort refuses a beginning of a digest that says too little.
func TooShort(ref string) error {
	hex, ok := strings.CutPrefix(ref, DigestPrefix)
	if !ok || !isHex(hex) || len(hex) >= leastPrefix {
		return nil
	}
	return refusal.Newf("image %s: of a digest at least %d digits are needed", ref, leastPrefix).Hint("sandglass image list")
}

// complete finds the one image whose digest begins so.
func (s *Store) complete(hex string) (string, error) {
	if !isHex(hex) || len(hex) > 64 {
		return "", ErrNone
	}
	if err := TooShort(DigestPrefix + hex); err != nil {
		return "", err
	}
	if len(hex) == 64 {
		return DigestPrefix + hex, nil
	}
	all, err := s.Images()
	if err != nil {
		return "", err
	}
	found := ""
	for _, id := range all {
		if !strings.HasPrefix(id, DigestPrefix+hex) {
			continue
		}
		if found != "" {
			return "", refusal.Newf("image %s: more than one digest begins so", DigestPrefix+hex).Hint("sandglass image list")
		}
		found = id
	}
	if found == "" {
		return "", ErrNone
	}
	return found, nil
}

// Images are the digests of all images, sorted.
func (s *Store) Images() ([]string, error) {
	names, err := s.entries(ImagesDir)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, n := range names {
		if IsDigest(DigestPrefix + n) {
			list = append(list, DigestPrefix+n)
		}
	}
	return list, nil
}

// read reads a small file of the store.
func (s *Store) read(name string, most int64) ([]byte, error) {
	fd, err := hostpath.Beneath(s.FD, name, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	return readAll(f, most)
}

func readAll(f *os.File, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = unix.EFBIG
	}
	return text, err
}

// broken is the refusal of a store that is not what it should be: of the image or the
// name ref in it, "" for neither.
func (s *Store) broken(what, ref string, err error) error {
	r := refusal.Newf("image store %s: %s: %v", refusal.Word(s.Path), what, refusal.Cause(err))
	switch {
	case ref == "":
		return r.Hint("ls -la -- %s", refusal.Shell(s.Path))
	case IsDigest(ref):
		return r.Hint("sandglass image rm --force %s   # with its names: then import or build it again", ref)
	}
	return r.Hint("sandglass image rm %s   # then import or build it again", refusal.Shell(ref))
}
