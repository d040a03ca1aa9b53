package tree

import (
	"bufio"
	"io"
	"strconv"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/image"
)

// Key is Node.Key for a content, a mode on the disk and a time.
func Key(sum string, mode uint32, mtime int64) string {
	return sum + "." + strconv.FormatUint(uint64(mode), 8) + "." + strconv.FormatInt(mtime, 10)
}

// Walk calls f for everything in order: each directory before what is in it.
func (t *Tree) Walk(f func(path string, n *Node) error) error { return walk("", t.Root, f) }

// Runs says whether there is anything that the kernel would execute.
func (t *Tree) Runs() bool {
	return t.Walk(func(_ string, n *Node) error {
		if n.Kind == File && n.Mode&0o111 != 0 {
			return io.EOF // enough was seen
		}
		return nil
	}) != nil
}

func walk(path string, n *Node, f func(string, *Node) error) error {
	if err := f(path, n); err != nil {
		return err
	}
	for _, name := range n.Names() {
		below := name
		if path != "" {
			below = path + "/" + name
		}
		if err := walk(below, n.children[name], f); err != nil {
			return err
		}
	}
	return nil
}

// The list of files has a line for each node, in the order of Walk:
//
//	KIND MODE UID GID MTIME SIZE SHA256 "PATH" "TARGET" [caps]
//
// The root's path is "". The owners are there and nowhere else: in the store all
// belongs to the caller. Names are quoted as Go quotes strings, so that no name
// can end its line.

// Write writes the list.
func (t *Tree) Write(w io.Writer) error {
	out := bufio.NewWriter(w)
	err := t.Walk(func(path string, n *Node) error {
		_, err := out.WriteString(n.line(path))
		return err
	})
	if err != nil {
		return err
	}
	return out.Flush()
}

func (n *Node) line(path string) string {
	sum := n.Sum
	if sum == "" {
		sum = "-"
	}
	line := strings.Join([]string{
		string(rune(n.Kind)), strconv.FormatUint(uint64(n.Mode), 8), strconv.FormatInt(n.UID, 10), strconv.FormatInt(n.GID, 10),
		strconv.FormatInt(n.MTime, 10), strconv.FormatInt(n.Size, 10), sum, strconv.Quote(path), strconv.Quote(n.Target),
	}, " ")
	if n.Caps {
		line += " caps"
	}
	return line + "\n"
}

// maxLine is more than a line can be: two paths, each byte of which may take four.
const maxLine = 64 << 10

// Read reads a list. It was written by us, but a disk can lie.
func Read(r io.Reader, b Bounds) (*Tree, error) {
	t := New(b)
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, 4096), maxLine)
	for n := 1; in.Scan(); n++ {
		path, node, ok := parse(in.Text())
		if !ok {
			return nil, refusal.Newf("the list of files: line %d is not one of a list", n)
		}
		if err := t.Put(path, node); err != nil {
			return nil, err
		}
	}
	return t, in.Err()
}

func parse(line string) (path string, n Node, ok bool) {
	f := strings.SplitN(line, " ", 8)
	if len(f) != 8 || len(f[0]) != 1 {
		return "", n, false
	}
	n.Kind = Kind(f[0][0])
	mode, err := strconv.ParseUint(f[1], 8, 12)
	n.Mode, ok = uint32(mode), err == nil && (n.Kind == Dir || n.Kind == File || n.Kind == Link)
	for i, to := range []*int64{&n.UID, &n.GID, &n.MTime, &n.Size} {
		if *to, err = strconv.ParseInt(f[2+i], 10, 64); err != nil {
			ok = false
		}
	}
	if f[6] != "-" {
		// It becomes a file's name when the image is removed.
		n.Sum, ok = f[6], ok && image.IsDigest(image.DigestPrefix+f[6])
	}
	rest := f[7]
	for _, to := range []*string{&path, &n.Target} {
		q, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return "", n, false
		}
		*to, _ = strconv.Unquote(q)
		rest = strings.TrimPrefix(rest[len(q):], " ")
	}
	n.Caps = rest == "caps"
	return path, n, ok && (rest == "" || rest == "caps") && (n.Kind == File) == (n.Sum != "") && (n.Kind == Link) == (n.Target != "")
}
