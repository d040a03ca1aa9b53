package artifacts

import (
	"context"
	"encoding/base64"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"sandglass/pkg/hostpath"
	"sandglass/pkg/result"
)

// The values of Artifact.Type.
const (
	typeFile    = "file"
	typeDir     = "dir"
	typeSymlink = "symlink"
	typeFIFO    = "fifo"
	typeSocket  = "socket"
	typeDevice  = "device"
	typeUnknown = "unknown"
)

// collector is the state of one collection.
type collector struct {
	ctx    context.Context
	limits Limits
	force  bool
	proc   int    // /proc/self
	umask  uint32 // the caller's
	buf    []byte
	left   int64 // of limits.Bytes; a copy that is thrown away counts too, so work is bounded

	list    []result.Artifact
	text    int    // bytes of names and reasons in list
	stop    string // why the walk ended early
	rest    string // the limit that ended it, "" for none
	stopErr error

	exists *ExistsError
	failed *CopyError
	beyond *LimitError
	kept   bool // in the manifest, and there is no destination
	hook   func(stage, path string)
	owned  Opener
	draft  func(dir int, mode uint32) (*hostpath.Draft, error)
}

// at is where a test changes the trees.
func (c *collector) at(stage, path string) {
	if c.hook != nil {
		c.hook(stage, path)
	}
}

// room is how many names of the next directory are worth listing: one more than
// there are places, so that "more" is known.
func (c *collector) room() int { return c.limits.Files - len(c.list) + 1 }

// walk collects names of src into dst. prefix is src's path with a slash, depth
// the level of its entries, 1 below out.
func (c *collector) walk(src, dst int, names []string, prefix string, depth int) {
	for i, name := range names {
		if c.halt() {
			c.noteRest(src, i)
			return
		}
		c.entry(src, dst, name, prefix+name, depth)
	}
}

// halt tells whether the walk must end before another entry, and records why.
func (c *collector) halt() bool {
	switch {
	case c.stop != "" || c.expired():
	case len(c.list) >= c.limits.Files:
		c.stop = "the limit is " + strconv.Itoa(c.limits.Files) + " entries"
		c.rest = "more than " + entries(c.limits.Files)
	case c.text >= textLimit(c.limits.Files):
		c.stop = "the names and link texts are too long together"
		c.rest = c.stop
	}
	return c.stop != ""
}

// expired tells whether the time is over or the caller gave up, and records it.
func (c *collector) expired() bool {
	if c.ctx.Err() == nil {
		return false
	}
	c.stopErr = context.Cause(c.ctx)
	c.stop = c.stopErr.Error()
	return true
}

// textLimit bounds the manifest's text: a thousand names of 4 kB escaped to 16
// would be a flood on whoever reads the result.
func textLimit(files int) int { return max(64<<10, files*1024) }

// entry pins one name and collects what it turns out to be.
func (c *collector) entry(src, dst int, name, path string, depth int) {
	c.at("listed", path)
	pin, st, err := c.pinEntry(src, name)
	if err != nil {
		c.fail(newArtifact(path, typeUnknown), err)
		return
	}
	defer unix.Close(pin)
	c.at("pinned", path)
	a := newArtifact(path, typeOf(st.Mode))
	switch a.Type {
	case typeFile:
		a.Size = st.Size
		c.file(pin, dst, name, a, st)
	case typeDir:
		c.dir(pin, dst, name, path, a, depth)
	case typeSymlink:
		c.link(pin, a)
	default:
		c.skip(a, a.Type)
	}
}

// link reports a symbolic link's text.
func (c *collector) link(pin int, a result.Artifact) {
	buf := make([]byte, 4096) // the kernel's longest link is 4095
	n, err := retry(func() (int, error) { return unix.Readlinkat(pin, "", buf) })
	if err != nil {
		c.fail(a, err)
		return
	}
	a.Target = escape(string(buf[:n]))
	a.Size = int64(n)
	c.skip(a, "symbolic link")
}

// dir makes the pinned directory in dst and collects what it holds. It is read
// before it is made: one that cannot be read leaves nothing behind.
func (c *collector) dir(pin, dst int, name, path string, a result.Artifact, depth int) {
	if depth > c.limits.Depth {
		why := "deeper than " + plural(c.limits.Depth, "level")
		c.noteLimit(1, KindDepth, why)
		c.skip(a, why)
		return
	}
	src, names, err := c.readDir(pin)
	if err != nil {
		c.fail(a, err)
		return
	}
	defer unix.Close(src)
	c.at("opened", path)
	if c.kept {
		a.Mode = octal(0o755)
		c.add(a)
		c.walk(src, -1, names, path+"/", depth+1)
		return
	}
	sub, mode, err := c.makeDir(dst, name, path)
	if err != nil {
		c.fail(a, err)
		return
	}
	defer unix.Close(sub)
	a.Mode = octal(mode)
	c.add(a)
	c.walk(src, sub, names, path+"/", depth+1)
}

func (c *collector) add(a result.Artifact) {
	c.list = append(c.list, a)
	c.text += len(a.Path) + len(a.PathBase64) + len(a.Target) + len(a.Skipped)
}

// skip records an entry that is left out.
func (c *collector) skip(a result.Artifact, why string) {
	a.Skipped = why
	c.add(a)
}

// fail records an entry that err kept out, and whose business err is.
func (c *collector) fail(a result.Artifact, err error) {
	switch e := err.(type) {
	case *existsFault:
		c.noteExists(a.Path, e)
		c.skip(a, e.Error())
	case *destFault:
		c.noteFailed(a.Path, e.err)
		c.skip(a, "destination: "+e.Error())
	default:
		if err == errGrew {
			c.noteLimit(1, KindBytes, err.Error())
		}
		if ours(err) {
			c.noteFailed(a.Path, err)
		}
		c.skip(a, reason(err))
	}
}

func (c *collector) noteFailed(path string, err error) {
	if c.failed == nil {
		c.failed = &CopyError{Path: path, Err: err}
	}
	c.failed.Count++
}

func (c *collector) noteExists(path string, f *existsFault) {
	if c.exists == nil {
		c.exists = &ExistsError{}
	}
	e := c.exists
	e.Count++
	if f.forceable {
		e.Forceable++
	}
	if len(e.Names) < namesKept {
		e.Names = append(e.Names, path)
	}
}

func newArtifact(path, typ string) result.Artifact {
	a := result.Artifact{Path: escape(path), Type: typ}
	if !utf8.ValidString(path) {
		a.PathBase64 = base64.StdEncoding.EncodeToString([]byte(path))
	}
	return a
}

// escape returns s as it is when it is UTF-8, else with \xNN for each byte that
// is not: the JSON encoder would fold all such bytes into one character, and
// two names into one.
func escape(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	const hex = "0123456789abcdef"
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 {
			b.WriteString(`\x`)
			b.WriteByte(hex[s[0]>>4])
			b.WriteByte(hex[s[0]&15])
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

func typeOf(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return typeFile
	case unix.S_IFDIR:
		return typeDir
	case unix.S_IFLNK:
		return typeSymlink
	case unix.S_IFIFO:
		return typeFIFO
	case unix.S_IFSOCK:
		return typeSocket
	case unix.S_IFCHR, unix.S_IFBLK:
		return typeDevice
	}
	return typeUnknown
}

// octal is a mode as ls and chmod users write it.
func octal(mode uint32) string { return "0" + strconv.FormatUint(uint64(mode&0o777), 8) }
