package hostid

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"sandglass/internal/refusal"
)

// An ordinary user's sandboxes have ids of the user's subordinate ranges, which
// only newuidmap and newgidmap may map for that user (package uidmap). Their
// locks lie in the user's own runtime directory: nobody else can enter it, so
// nobody else can be in the way of a lock.

// Where the ranges stand, and the files that newuidmap reads beside them.
const (
	subUID   = "/etc/subuid"
	subGID   = "/etc/subgid"
	passwd   = "/etc/passwd"
	nsswitch = "/etc/nsswitch.conf"
)

// UserDir is where a user's locks are, followed by the user's id: XDG_RUNTIME_DIR
// as systemd makes it, and not what the environment says, for two runs of one
// user must meet.
const UserDir = "/run/user/"

// userFile is the name of the file of locks there.
const userFile = "sandglass-ids"

// Ranges is what the user of this process may map, and by which programs.
type Ranges struct {
	UIDHelper, GIDHelper string

	uids, gids []span
	user       int
}

// LookUser says what an ordinary user's sandboxes can have. The error says what
// is missing, and how to come by it.
func LookUser() (*Ranges, *refusal.Error) {
	r := &Ranges{user: os.Geteuid()}
	if why := r.helpers(); why != nil {
		return nil, why
	}
	if why := r.find(); why != nil {
		return nil, why
	}
	dir, err := openUserDir(r.user)
	if err != nil {
		return nil, noPlace(r.user, err)
	}
	unix.Close(dir)
	return r, nil
}

func noPlace(user int, err error) *refusal.Error {
	id := strconv.Itoa(user)
	return refusal.Newf("there is no place for the locks of the ids: %s: %v", UserDir+id, err).
		Hint("sudo loginctl enable-linger %s   # systemd then makes it at boot, and now", id).
		Hint("sudo install -d -m 700 -o %s %s   # where there is no systemd", id, UserDir+id)
}

// find reads the ranges.
func (r *Ranges) find() *refusal.Error {
	names := namesOf(r.user)
	var lists [2][]grant
	var bad [2]int
	for i, path := range []string{subUID, subGID} {
		text, err := readFile(path)
		if err != nil && !os.IsNotExist(err) {
			return refusal.Newf("the ids that this user may map are not known: %v", err)
		}
		lists[i], bad[i] = parseGrants(text)
	}
	for i, where := range []struct {
		path, maps string
		spans      *[]span
	}{{subUID, "/proc/self/uid_map", &r.uids}, {subGID, "/proc/self/gid_map", &r.gids}} {
		text, err := readFile(where.maps)
		if err != nil {
			return refusal.Newf("the ids of this user namespace are not known: %v", err)
		}
		*where.spans = mapped(usable(lists[i], names), text)
		*where.spans = without(*where.spans, span{r.user, 1})
		*where.spans = without(*where.spans, span{os.Getegid(), 1})
		if total(*where.spans) == 0 {
			return noRange(where.path, names, lists[i], lists, bad[i])
		}
	}
	return nil
}

// noRange says why a file gives this user nothing.
func noRange(path string, names []string, list []grant, lists [2][]grant, malformed int) *refusal.Error {
	e := refusal.Newf("%s has no ids for %s", path, names[len(names)-1])
	for _, g := range list {
		if g.owner == names[0] || g.owner == names[len(names)-1] {
			e = refusal.Newf("%s has no ids for %s that are above 65535, in this user namespace and nobody else's", path, names[len(names)-1])
		}
	}
	if malformed > 0 {
		e.What += " (lines that are not OWNER:FIRST:COUNT: " + strconv.Itoa(malformed) + ")"
	}
	if text, err := readFile(nsswitch); err == nil && foreignSource(text) {
		e.What += " (subid in " + nsswitch + " names a directory service, whose ranges are not read)"
	}
	first := free(lists[0], lists[1])
	ids := strconv.Itoa(first) + "-" + strconv.Itoa(first+1<<16-1)
	if len(names) > 1 {
		return e.Hint("sudo usermod --add-subuids %s --add-subgids %s %s", ids, ids, names[1])
	}
	return e.Hint("echo %s:%d:65536 | sudo tee -a %s %s", names[0], first, subUID, subGID)
}

// foreignSource says whether ranges come from elsewhere than the files:
// newuidmap asks that one alone then.
func foreignSource(text []byte) bool {
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("subid:")); ok {
			return string(bytes.TrimSpace(rest)) != "files"
		}
	}
	return false
}

// namesOf is how the lines of a user begin: the number, and the name where
// /etc/passwd has one.
func namesOf(user int) []string {
	id := strconv.Itoa(user)
	text, err := readFile(passwd)
	if err != nil {
		return []string{id}
	}
	for line := range bytes.Lines(text) {
		f := bytes.Split(line, []byte(":"))
		if len(f) >= 7 && len(f[0]) > 0 && string(f[2]) == id {
			return []string{id, string(f[0])}
		}
	}
	return []string{id}
}

// maxFile bounds a file of the host's that is read whole.
const maxFile = 4 << 20

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = &os.PathError{Op: "read", Path: path, Err: unix.EFBIG}
	}
	return text, err
}

// gidBytes is where the locks of groups begin in the file: an id of the one kind
// is not that of the other.
const gidBytes = 1 << 32

// Take holds a free pair of ids. The search starts at a place that nobody can
// know: containers of one user that share a range and not its locks then hardly
// ever meet.
func (r *Ranges) Take() (*ID, error) {
	fd, err := openUserFile(r.user)
	if err != nil {
		return nil, err
	}
	l := locks{fd: fd}
	n := min(total(r.uids), total(r.gids))
	seed, err := random(n)
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	for i := range n {
		k := (seed + i) % n
		uid, gid := at(r.uids, k), at(r.gids, k)
		ok, err := l.take(uid)
		if ok && err == nil {
			if ok, err = l.take(gidBytes + gid); !ok {
				l.set(uid, unix.F_UNLCK)
			}
		}
		if err != nil {
			unix.Close(fd)
			return nil, err
		}
		if ok {
			return &ID{N: uid, GID: gid, locks: l}, nil
		}
	}
	unix.Close(fd)
	return nil, ErrExhausted
}

// random is a number below n. crypto/rand would link math/big into every start.
func random(n int) (int, error) {
	var b [8]byte
	if _, err := unix.Getrandom(b[:], 0); err != nil { // up to 256 bytes come whole
		return 0, os.NewSyscallError("getrandom", err)
	}
	return int(binary.NativeEndian.Uint64(b[:]) % uint64(n)), nil
}

// take says whether the lock of one id was free.
func (l locks) take(n int) (bool, error) {
	switch err := l.set(n, unix.F_WRLCK); err {
	case nil:
		return true, nil
	case unix.EAGAIN, unix.EACCES: // in use
		return false, nil
	default:
		return false, &os.PathError{Op: "lock", Path: strconv.Itoa(n), Err: err}
	}
}

// openUserDir opens the user's runtime directory, and no other: one that somebody
// else could enter would have locks of theirs in the way.
func openUserDir(user int) (int, error) {
	return openPrivate(UserDir+strconv.Itoa(user), user, "not a private directory of this user's")
}

func openUserFile(user int) (int, error) {
	path := UserDir + strconv.Itoa(user)
	dir, err := openUserDir(user)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(dir)
	fd, err := unix.Openat(dir, userFile, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path + "/" + userFile, Err: err}
	}
	return fd, nil
}
