package artifacts

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"math"
	"strconv"

	"golang.org/x/sys/unix"

	"sandglass/pkg/hostpath"
	"sandglass/pkg/result"
)

// chunk is how much is copied between two looks at the clock.
const chunk = 128 << 10

// file copies the pinned regular file to name in dst.
func (c *collector) file(pin, dst int, name string, a result.Artifact, st *unix.Stat_t) {
	if why := c.tooLarge(st.Size); why != "" {
		c.noteLimit(1, KindBytes, why)
		if c.beyond.Bytes += st.Size; c.beyond.Bytes < 0 {
			c.beyond.Bytes = math.MaxInt64 // the program has files of any size that have no content
		}
		c.skip(a, why)
		return
	}
	// Looked up before the copy to spare it; place decides.
	if f := c.standing(dst, name); f != nil {
		c.fail(a, f)
		return
	}
	in, err := c.reopen(pin, st)
	if c.unlock(pin, 0o400, err) {
		in, err = c.reopen(pin, st)
	}
	if err != nil {
		c.fail(a, err)
		return
	}
	defer unix.Close(in)
	c.at("opened", a.Path)
	if c.kept {
		c.remember(in, a, st)
		return
	}
	out, err := c.draft(dst, 0o600)
	if err != nil {
		c.fail(a, &destFault{err})
		return
	}
	mode := st.Mode&0o755&^c.umask | 0o600
	size, sum, err := c.fill(in, out, mode, a.Path)
	if err == nil {
		c.at("placing", a.Path)
		err = place(out, dst, name, c.force)
	}
	out.Close(err == nil)
	if err != nil {
		c.fail(a, err)
		return
	}
	a.Size, a.SHA256, a.Mode = size, sum, octal(mode)
	c.add(a)
}

// tooLarge says why a file of a claimed size is not worth opening.
func (c *collector) tooLarge(size int64) string {
	switch {
	case size > c.limits.FileBytes:
		return "larger than the limit of one file, " + bytesText(c.limits.FileBytes)
	case size > c.left:
		return "past the limit of all files together, " + bytesText(c.limits.Bytes)
	}
	return ""
}

// fill copies in to out and sets the mode.
func (c *collector) fill(in int, out *hostpath.Draft, mode uint32, path string) (size int64, sum string, err error) {
	size, sum, err = c.copy(in, out, path)
	if err == nil {
		// Before the rename, so the name never shows the file with less or more.
		err = destErr(unix.Fchmod(out.FD, mode))
		c.at("filled", path)
	}
	return size, sum, err
}

// copy copies in to out until in ends, and hashes what was written. It believes
// no size: a file may grow, or be sparse and a terabyte.
func (c *collector) copy(in int, out io.Writer, path string) (int64, string, error) {
	if c.buf == nil {
		c.buf = make([]byte, chunk) // most runs leave no file
	}
	h := sha256.New()
	var size int64
	for {
		if c.expired() {
			return 0, "", c.stopErr
		}
		n, err := retry(func() (int, error) { return unix.Read(in, c.buf) })
		if err != nil {
			return 0, "", err
		}
		if n <= 0 {
			return size, hex.EncodeToString(h.Sum(nil)), nil
		}
		size += int64(n)
		c.left -= int64(n)
		if size > c.limits.FileBytes || c.left < 0 {
			return 0, "", errGrew
		}
		if _, err := out.Write(c.buf[:n]); err != nil {
			return 0, "", &destFault{err}
		}
		h.Write(c.buf[:n])
		c.at("copied", path)
	}
}

// place gives the finished file its name.
func place(out *hostpath.Draft, dst int, name string, force bool) error {
	err := out.Place(name, force)
	switch err {
	case nil:
		return nil
	case unix.EEXIST, unix.EISDIR, unix.ENOTEMPTY:
		if f := standing(dst, name, force); f != nil {
			return f
		}
	}
	return &destFault{err}
}

func (c *collector) standing(dst int, name string) error {
	if c.kept {
		return nil
	}
	return standing(dst, name, c.force)
}

// standing tells what keeps a file from the name in dst; nil when nothing does.
func standing(dst int, name string, force bool) error {
	var st unix.Stat_t
	if unix.Fstatat(dst, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return nil // free, or an error that the creation will meet again
	}
	f := &existsFault{typ: typeOf(st.Mode)}
	f.forceable = f.typ != typeDir
	if f.forceable && force {
		return nil
	}
	return f
}

// makeDir makes the directory name in dst and opens it; with force it may be
// there already. A link at the name is not followed: the caller's destination
// may hold links to anywhere.
func (c *collector) makeDir(dst int, name, path string) (fd int, mode uint32, err error) {
	made := unix.Mkdirat(dst, name, 0o755)
	if made != nil && made != unix.EEXIST {
		return -1, 0, &destFault{made}
	}
	var st unix.Stat_t
	if made == unix.EEXIST {
		if err := unix.Fstatat(dst, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return -1, 0, &destFault{err}
		}
		f := &existsFault{typ: typeOf(st.Mode)}
		f.forceable = f.typ == typeDir
		if !f.forceable || !c.force {
			return -1, 0, f
		}
	}
	c.at("made", path)
	fd, err = openat2(dst, name, unix.O_PATH|unix.O_DIRECTORY, resolveDest)
	if err != nil {
		return -1, 0, &destFault{err}
	}
	if made == nil {
		c.keep(fd)
	}
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return -1, 0, &destFault{err}
	}
	return fd, st.Mode, nil
}

// keep gives the owner its own rights to a directory that was just made: with a
// umask that takes them nothing could be collected into it. By the descriptor,
// since somebody could have put a link at the name.
func (c *collector) keep(fd int) {
	if c.umask&0o700 != 0 {
		// A failure shows in the first file.
		unix.Fchmodat(c.proc, "fd/"+strconv.Itoa(fd), 0o755&^c.umask|0o700, 0)
	}
}

func destErr(err error) error {
	if err == nil {
		return nil
	}
	return &destFault{err}
}
