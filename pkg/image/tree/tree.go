// Package tree is the files of an image in memory, while layers are put on top
// of each other.
//
// An archive is hostile: names that lead upwards, a link that is made first and
// then written through, a hard link to a file of the host's. None of that can
// lead anywhere here, because no path of an archive ever meets a file system:
// links are followed in this tree alone, whose root is its top, and what comes
// out at the end is a list of directories, files and links that is made from
// nothing, in a directory that nobody else knows.
package tree

import (
	"slices"
	"strings"

	"sandglass/internal/refusal"
)

// Kind is what a node is. There are no others: devices, FIFOs and sockets of an
// archive are left out.
type Kind byte

// The kinds, as the list of files writes them.
const (
	Dir  Kind = 'd'
	File Kind = 'f'
	Link Kind = 'l'
)

// Node is one entry, as the archive has it.
type Node struct {
	Kind     Kind
	Mode     uint32 // with the set-uid, set-gid and sticky bits
	UID, GID int64
	MTime    int64  // seconds since 1970
	Size     int64  // of a file
	Sum      string // SHA-256 of a file's content, in hex
	Target   string // of a link
	Caps     bool   // it had file capabilities

	layer    int
	swept    int // the last layer that took lower ones' entries away below it
	children map[string]*Node
}

// UsualNodes are enough for the largest images that people run code in.
const UsualNodes = 400000

// Over refuses more than most of something that --max-files, which is files, bounds.
func Over(files, most int64, what string) *refusal.Error {
	return refusal.Newf("more than %d %s", most, what).Hint("--max-files %d   # or more: what follows was not counted", max(2*files, UsualNodes))
}

// Bounds of what a tree takes.
type Bounds struct {
	Nodes int64 // files, directories and links
	Path  int   // bytes of a path
	Depth int   // directories below each other
}

// Tree is all of them.
type Tree struct {
	Root   *Node
	bounds Bounds
	nodes  int64
	text   int64 // bytes of all names and links
	layer  int
}

// New is an empty tree.
func New(b Bounds) *Tree {
	return &Tree{Root: &Node{Kind: Dir, Mode: 0o755, children: map[string]*Node{}}, bounds: b}
}

// Begin starts a layer: what is put from now on lies above what was there.
func (t *Tree) Begin() { t.layer++ }

// Nodes counts what the tree holds.
func (t *Tree) Nodes() int64 { return t.nodes }

// maxLinks is the kernel's MAXSYMLINKS.
const maxLinks = 40

// maxSteps is how many names one lookup goes through, those of links included. Forty
// links of four thousand bytes are 80000, for each entry of an archive of zeros.
const maxSteps = 4096

// PerNode is how many bytes of name and link a node may have on average: four
// hundred thousand links to 4000 bytes each would be gigabytes of memory, and
// nothing at all in a compressed archive.
const PerNode = 128

// maxPart is the kernel's NAME_MAX.
const maxPart = 255

// split takes a path of an archive apart. An absolute one means the image's
// root, as tar has it. One that leads upwards means nothing that anybody would
// write, so it is refused and not bent into something else.
func (t *Tree) split(name string) ([]string, error) {
	if len(name) > t.bounds.Path {
		return nil, refusal.Newf("a path has %d bytes, more than %d: %s...", len(name), t.bounds.Path, refusal.Word(name[:64]))
	}
	var parts []string
	for _, p := range strings.Split(name, "/") {
		switch {
		case p == "" || p == ".":
		case p == "..":
			return nil, refusal.Newf("%s leads upwards", refusal.Word(name))
		case len(p) > maxPart:
			return nil, refusal.Newf("%s...: a name has %d bytes, more than %d", refusal.Word(p[:64]), len(p), maxPart)
		case strings.ContainsRune(p, 0):
			return nil, refusal.Newf("%s has a NUL byte", refusal.Word(name))
		default:
			parts = append(parts, p)
		}
	}
	if len(parts) > t.bounds.Depth {
		return nil, refusal.Newf("%s...: %d directories below each other, more than %d", refusal.Word(parts[0]), len(parts), t.bounds.Depth)
	}
	return parts, nil
}

// walk finds the directory that a path means inside of the image: its links are
// followed, and none leads above the root. What is missing is made where mk says so.
func (t *Tree) walk(parts []string, mk bool) (*Node, error) {
	at := []*Node{t.Root}
	todo := slices.Clone(parts)
	for links, steps := 0, 0; len(todo) > 0; steps++ {
		if steps > maxSteps {
			return nil, refusal.Newf("%s: links that lead through more than %d names", refusal.Word(strings.Join(parts, "/")), maxSteps)
		}
		part := todo[0]
		todo = todo[1:]
		switch part {
		case "", ".":
			continue
		case "..": // of a link's text
			at = at[:max(len(at)-1, 1)]
			continue
		}
		here := at[len(at)-1]
		next := here.children[part]
		switch {
		case next == nil && !mk:
			return nil, nil
		case next == nil:
			var err error
			if next, err = t.add(here, part, &Node{Kind: Dir, Mode: 0o755}, len(at)); err != nil {
				return nil, err
			}
		case next.Kind == File:
			return nil, refusal.Newf("%s: %s is a file, not a directory", refusal.Word(strings.Join(parts, "/")), refusal.Word(part))
		case next.Kind == Link:
			if links++; links > maxLinks {
				return nil, refusal.Newf("%s: links that lead to each other", refusal.Word(strings.Join(parts, "/")))
			}
			if strings.HasPrefix(next.Target, "/") {
				at = at[:1]
			}
			todo = append(strings.Split(next.Target, "/"), todo...)
			continue
		}
		at = append(at, next)
	}
	return at[len(at)-1], nil
}

// add puts a node where there is none.
func (t *Tree) add(in *Node, name string, n *Node, depth int) (*Node, error) {
	if depth > t.bounds.Depth {
		return nil, refusal.Newf("%s: more than %d directories below each other", refusal.Word(name), t.bounds.Depth)
	}
	if len(name) > maxPart { // of a link's text
		return nil, refusal.Newf("%s...: a name has %d bytes, more than %d", refusal.Word(name[:64]), len(name), maxPart)
	}
	if t.nodes++; t.nodes > t.bounds.Nodes {
		return nil, Over(t.bounds.Nodes, t.bounds.Nodes, "files and directories")
	}
	if t.text += int64(len(name) + len(n.Target)); t.text/PerNode > t.bounds.Nodes {
		return nil, Over(t.bounds.Nodes, PerNode*t.bounds.Nodes, "bytes of names and links")
	}
	n.layer = t.layer
	if n.Kind == Dir {
		n.children = map[string]*Node{}
	}
	in.children[name] = n
	return n, nil
}

// drop takes a node away, with all below it.
func (t *Tree) drop(in *Node, name string) {
	t.forget(name, in.children[name])
	delete(in.children, name)
}

// forget takes a node and all below it out of the counts.
func (t *Tree) forget(name string, n *Node) {
	t.nodes--
	t.text -= int64(len(name) + len(n.Target))
	for below, c := range n.children {
		t.forget(below, c)
	}
}

// Put puts a node at a path. As in a layer that is unpacked over another, what is
// there is replaced, and only a directory over a directory keeps what is in it.
func (t *Tree) Put(name string, n Node) error {
	parts, err := t.split(name)
	if err != nil {
		return err
	}
	if len(parts) == 0 {
		if n.Kind != Dir {
			return refusal.Newf("%s: the root is no directory", refusal.Word(name))
		}
		n.children, n.layer, n.swept = t.Root.children, t.layer, t.Root.swept
		*t.Root = n
		return nil
	}
	if n.Kind == Link && (n.Target == "" || len(n.Target) > t.bounds.Path || strings.ContainsRune(n.Target, 0)) {
		return refusal.Newf("%s: not a link's text, or one of more than %d bytes", refusal.Word(name), t.bounds.Path)
	}
	in, err := t.walk(parts[:len(parts)-1], true)
	if err != nil {
		return err
	}
	last := parts[len(parts)-1]
	old := in.children[last]
	switch {
	case old != nil && old.Kind == Dir && n.Kind == Dir:
		n.children, n.layer, n.swept = old.children, t.layer, old.swept
		*old = n
		return nil
	case old != nil:
		t.drop(in, last)
	}
	_, err = t.add(in, last, &n, len(parts))
	return err
}

// HardLink puts a second name for what is at target, which must be there: a hard
// link can lead nowhere but into the archive that it came in.
func (t *Tree) HardLink(name, target string) error {
	parts, err := t.split(target)
	if err != nil {
		return err
	}
	var old *Node
	if len(parts) > 0 {
		in, err := t.walk(parts[:len(parts)-1], false)
		if err != nil {
			return err
		}
		if in != nil {
			old = in.children[parts[len(parts)-1]]
		}
	}
	if old == nil {
		return refusal.Newf("%s: a hard link to %s, which is not in the image", refusal.Word(name), refusal.Word(target))
	}
	if old.Kind == Dir {
		return refusal.Newf("%s: a hard link to the directory %s", refusal.Word(name), refusal.Word(target))
	}
	return t.Put(name, *old)
}

// The names of a layer that take away what lower layers have (OCI image
// specification, layer.md).
const (
	whiteout = ".wh."
	opaque   = ".wh..wh..opq"
)

// Whiteout does what a name of a layer says about lower ones, and whether it
// is such a name. What is not there cannot be taken away, and that is no error.
func (t *Tree) Whiteout(name string) (bool, error) {
	parts, err := t.split(name)
	if err != nil {
		return false, err
	}
	if len(parts) == 0 {
		return false, nil
	}
	last := parts[len(parts)-1]
	gone, ok := strings.CutPrefix(last, whiteout)
	if !ok {
		return false, nil
	}
	in, err := t.walk(parts[:len(parts)-1], false)
	if err != nil {
		return true, err
	}
	switch {
	case gone == "" || gone == "." || gone == "..":
		return true, refusal.Newf("%s takes away no name", refusal.Word(name))
	case in == nil:
	case last == opaque:
		t.lower(in)
	case strings.HasPrefix(gone, whiteout): // another bookkeeping name of aufs
	case in.children[gone] != nil:
		t.take(in, gone)
	}
	return true, nil
}

// lower takes away what lies below a directory and is of lower layers, once in
// each layer: an archive that says so a million times costs no more.
func (t *Tree) lower(in *Node) {
	if in.swept == t.layer {
		return
	}
	in.swept = t.layer
	for name := range in.children {
		t.take(in, name)
	}
}

// take takes away what lower layers have of a name. A directory in which this
// layer has something stays, with that.
func (t *Tree) take(in *Node, name string) {
	n := in.children[name]
	t.lower(n)
	if n.layer < t.layer && len(n.children) == 0 {
		t.drop(in, name)
	}
}

// Look finds what is at a path, without following a link at its end; nil for nothing.
func (t *Tree) Look(name string) *Node {
	parts, err := t.split(name)
	if err != nil || len(parts) == 0 {
		return nil
	}
	in, err := t.walk(parts[:len(parts)-1], false)
	if err != nil || in == nil {
		return nil
	}
	return in.children[parts[len(parts)-1]]
}

// MakeDir makes a directory, and those above it, where they are missing.
func (t *Tree) MakeDir(name string) error {
	parts, err := t.split(name)
	if err == nil {
		_, err = t.walk(parts, true)
	}
	return err
}

// Names are the names in a directory, sorted.
func (n *Node) Names() []string {
	list := make([]string, 0, len(n.children))
	for name := range n.children {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// Child is one of them.
func (n *Node) Child(name string) *Node { return n.children[name] }

// Disk is the mode of a node in the store. Set-uid, set-gid and sticky bits mean
// nothing inside and would mean something on the host. The file belongs to the
// caller there and to the program inside, whoever owned it in the archive, so
// its owner may do what anybody might.
func (n *Node) Disk() uint32 {
	mode := n.Mode & 0o777
	mode |= (mode>>3 | mode) & 0o7 << 6
	if n.Kind == Dir {
		return mode | 0o500
	}
	return mode | 0o400
}

// Key names a file's content in the store. Files that share it share the mode and
// the time as well, which hard links have in common.
func (n *Node) Key() string { return Key(n.Sum, n.Disk(), n.MTime) }
