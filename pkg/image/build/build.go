// Package build makes images: of packages by a recipe, or of what is installed on
// this host. Either way the image is a tree in memory whose contents go to a sink,
// as with an import; nothing is unpacked over a file system, and nothing of the
// image is executed but, for Python's bytecode, in a sandbox. The same packages give the same bytes: owners are root, times
// are the packages' own, the order is that of names.
package build

import (
	"bytes"
	"io"
	"path"
	"runtime"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/image"
	"sandglass/pkg/image/jks"
	"sandglass/pkg/image/manifest"
	"sandglass/pkg/image/recipe"
	"sandglass/pkg/image/tree"
	"sandglass/pkg/image/unpack"
	"sandglass/pkg/rootfs"
)

// builder is one image in the making.
type builder struct {
	sink   unpack.Sink
	out    *unpack.Unpacked
	owner  map[string]string // of each file, by its path
	newest int64             // the time of what is made here: as new as the newest file
}

func newBuilder(sink unpack.Sink) *builder {
	limits := unpack.Defaults()
	return &builder{sink: sink, out: &unpack.Unpacked{Tree: tree.New(limits.Bounds())}, owner: map[string]string{}}
}

// merged are the directories of the root that lie in /usr. A package of an earlier
// day has files in both places, and they are the same place.
var merged = []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"}

// place is where a path of a package's or of the host's is in the image, without
// the slash in front; "" is the root.
func place(name string) string {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	top, _, _ := strings.Cut(name, "/")
	for _, m := range merged {
		if top == m {
			return "usr/" + name
		}
	}
	return name
}

// file takes a file with its content.
func (b *builder) file(name, owner string, mode uint32, mtime int64, r io.Reader) error {
	if err := b.free(name); err != nil {
		return err
	}
	n := tree.Node{Kind: tree.File, Mode: mode & 0o777, MTime: mtime}
	sum, size, err := b.sink.Add(r, n.Disk(), mtime)
	if err != nil {
		return err
	}
	n.Sum, n.Size = sum, size
	b.newest = max(b.newest, mtime)
	b.owner[name] = owner
	return b.out.Tree.Put(name, n)
}

// free refuses a file or link in a directory's place, with which what is in the
// directory would go.
func (b *builder) free(name string) error {
	if old := b.out.Tree.Look(name); old != nil && old.Kind == tree.Dir {
		return refusal.Newf("%s is a directory already", refusal.Word(name))
	}
	return nil
}

func (b *builder) link(name, target string, mtime int64) error {
	if err := b.free(name); err != nil {
		return err
	}
	return b.out.Tree.Put(name, tree.Node{Kind: tree.Link, Mode: 0o777, MTime: mtime, Target: target})
}

// made is a file of ours.
func (b *builder) made(name, text string) error {
	return b.file(name, manifest.Ours, 0o644, b.newest, strings.NewReader(text))
}

// base is what every image has: the links of a merged /usr, and who there is.
func (b *builder) base() error {
	for _, d := range []string{"etc", "usr/bin", "usr/sbin", "usr/lib"} {
		if err := b.out.Tree.MakeDir(d); err != nil {
			return err
		}
	}
	for _, m := range merged {
		if b.out.Tree.Look("usr/"+m) == nil || b.out.Tree.Look(m) != nil {
			continue
		}
		if err := b.link(m, "usr/"+m, b.newest); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{"etc/passwd": rootfs.Passwd(nobody, nobody), "etc/group": rootfs.Group(nobody)} {
		if b.out.Tree.Look(name) != nil {
			continue
		}
		if err := b.made(name, text); err != nil {
			return err
		}
	}
	if b.out.Tree.Look("etc/mtab") == nil {
		return b.link("etc/mtab", "/proc/self/mounts", b.newest)
	}
	return nil
}

// nobody is who the program is, without --user.
const nobody = 65534

// finish completes the image and says what it is made of.
func (b *builder) finish(origin string, packages []manifest.Package, config image.Config) (*unpack.Unpacked, error) {
	m := &b.out.Meta
	m.OS, m.Architecture, m.Config = runtime.GOOS, runtime.GOARCH, config
	if err := unpack.Finish(b.out, b.sink); err != nil {
		return nil, err
	}
	list := &manifest.Manifest{Origin: origin, Packages: packages}
	err := b.out.Tree.Walk(func(name string, n *tree.Node) error {
		if n.Kind == tree.Dir && n.MTime == 0 {
			n.MTime = b.newest // of a directory that no package has as its own
		}
		if n.Kind != tree.File {
			return nil
		}
		owner := b.owner[name]
		if owner == "" {
			owner = manifest.Ours
		}
		list.Files = append(list.Files, manifest.File{Sum: n.Sum, Package: owner, Path: name})
		return nil
	})
	b.out.Manifest = list.Text()
	return b.out, err
}

// exists refuses a link that leads to nothing: a recipe says so when its packages
// have changed, and not a program in a run.
func (b *builder) exists(l recipe.Link) error {
	if b.out.Tree.Look(place(l.Resolve())) == nil {
		return refusal.Newf("link %s: there is no %s in the image", l.Path, l.Resolve())
	}
	return nil
}

// links makes the recipe's links.
func (b *builder) links(list []recipe.Link) error {
	for _, l := range list {
		name := place(l.Path)
		if old := b.out.Tree.Look(name); old != nil && (old.Kind != tree.Link || old.Target != l.Target) {
			return refusal.Newf("link %s: the image has something else there", l.Path)
		}
		if err := b.exists(l); err != nil {
			return err
		}
		if err := b.link(name, l.Target, b.newest); err != nil {
			return err
		}
	}
	return nil
}

// joined collects what a join line puts together.
type joined struct {
	recipe.Join
	parts map[string][]byte
}

// text is all of it, in the order of names. Java's store tells when each certificate
// was put there.
func (j *joined) text(names []string, time int64) (string, error) {
	if j.Java {
		var s jks.Store
		for _, n := range names {
			if err := s.Add(strings.TrimSuffix(path.Base(n), path.Ext(n)), j.parts[n], time); err != nil {
				return "", err
			}
		}
		return string(s.Bytes()), nil
	}
	var b bytes.Buffer
	for _, n := range names {
		b.Write(j.parts[n])
		if t := j.parts[n]; len(t) > 0 && t[len(t)-1] != '\n' {
			b.WriteByte('\n')
		}
	}
	return b.String(), nil
}
