package check

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Names of what is laid out on disk.
const (
	dirPrefix    = "sandglass-check-"
	canaryPrefix = ".sandglass-check-"
)

// lock holds a flock on a path for as long as the bait lies there, so that the
// next check can tell it from what a killed one has left behind.
func (b *bait) lock(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	b.later(func() { unix.Close(fd) })
	return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
}

// Sweep removes what checks of this user that were killed have left, and says
// what it was.
func Sweep() (removed []string) {
	var found []string
	for _, dir := range canaryDirs() {
		found = append(found, named(dir, canaryPrefix, "0123456789abcdef")...)
	}
	found = append(found, named(os.TempDir(), dirPrefix, "0123456789")...)
	for _, path := range found {
		// RemoveAll follows no link, nor does abandoned.
		if abandoned(path) && os.RemoveAll(path) == nil {
			removed = append(removed, path)
		}
	}
	return removed
}

// named lists what has a name of ours in a directory. Ours go on with digits alone:
// what people call their own files ("sandglass-check-report.json") is theirs.
func named(dir, prefix, digits string) []string {
	list, _ := filepath.Glob(filepath.Join(dir, prefix+"*"))
	return slices.DeleteFunc(list, func(path string) bool {
		rest := strings.TrimPrefix(filepath.Base(path), prefix)
		return rest == "" || strings.Trim(rest, digits) != ""
	})
}

// settled is how old something must be: a check that starts right now has made
// its files and not locked them yet.
const settled = time.Minute

// abandoned says that a path is this user's and nobody holds its lock. Others
// may put anything under such names into /tmp: links and FIFOs do not count.
func abandoned(path string) bool {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || int(st.Uid) != os.Geteuid() {
		return false
	}
	if kind := st.Mode & unix.S_IFMT; kind != unix.S_IFREG && kind != unix.S_IFDIR {
		return false
	}
	if time.Since(time.Unix(st.Mtim.Unix())) < settled {
		return false
	}
	return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) == nil
}
