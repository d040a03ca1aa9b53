package build

import (
	"archive/tar"
	"bytes"
	"io"
	"maps"
	"slices"

	"sandglass/internal/refusal"
	"sandglass/pkg/image"
	"sandglass/pkg/image/manifest"
	"sandglass/pkg/image/recipe"
	"sandglass/pkg/image/tree"
	"sandglass/pkg/image/unpack"
)

// Archives gives the files of a package as a tar archive.
type Archives interface {
	Contents(p manifest.Package, read func(io.Reader) error) error
}

// packager puts packages together.
type packager struct {
	*builder
	recipe *recipe.Recipe
	joins  []*joined
}

// Recipe makes an image of the packages that a recipe came to.
func Recipe(r *recipe.Recipe, list []manifest.Package, from Archives, sink unpack.Sink, run Run) (*unpack.Unpacked, error) {
	p := &packager{builder: newBuilder(sink), recipe: r}
	for _, j := range r.Joins {
		p.joins = append(p.joins, &joined{j, map[string][]byte{}})
	}
	for _, pkg := range list {
		p.out.Tree.Begin()
		err := from.Contents(pkg, func(in io.Reader) error { return p.archive(in, pkg.Name) })
		if err != nil {
			return nil, err
		}
	}
	err := p.complete()
	if err == nil {
		err = p.bytecode(run)
	}
	if err != nil {
		return nil, refusal.Within("recipe "+refusal.Word(r.Name), err)
	}
	return p.finish("recipe "+r.Name, list, image.Config{Env: r.Env, Cmd: r.Cmd})
}

// complete does what maintainer scripts would have done, as far as the recipe says so.
func (p *packager) complete() error {
	for _, j := range p.joins {
		if len(j.parts) == 0 {
			return refusal.Newf("join %s: nothing is called so", j.From.Text)
		}
		text, err := j.text(slices.Sorted(maps.Keys(j.parts)), p.newest)
		if err == nil {
			err = p.made(place(j.Path), text)
		}
		if err != nil {
			return err
		}
	}
	if err := p.links(p.recipe.Links); err != nil {
		return err
	}
	return p.base()
}

func (p *packager) archive(in io.Reader, pkg string) error {
	t := tar.NewReader(in)
	for {
		h, err := t.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := p.entry(t, h, pkg); err != nil {
			return err
		}
	}
}

// maxJoined bounds a file that is joined with others.
const maxJoined = 1 << 20

// entry takes one entry. Devices and the like are left out, and so are set-uid bits.
func (p *packager) entry(t io.Reader, h *tar.Header, pkg string) error {
	name, mtime := place(h.Name), min(max(h.ModTime.Unix(), 0), 1<<34)
	if name == "" || name == "usr" && h.Typeflag == tar.TypeDir {
		return nil
	}
	if h.Typeflag == tar.TypeReg && slices.ContainsFunc(p.joins, func(j *joined) bool { return j.From.Match(name) }) {
		text, err := io.ReadAll(io.LimitReader(t, maxJoined+1))
		if err != nil {
			return err
		}
		if len(text) > maxJoined {
			return refusal.Newf("%s has more than %d bytes, too many to be joined", refusal.Word(name), maxJoined)
		}
		for _, j := range p.joins {
			if j.From.Match(name) {
				j.parts[name] = text
			}
		}
		t, p.newest = bytes.NewReader(text), max(p.newest, mtime)
	}
	if p.recipe.Removes(name) {
		return nil
	}
	switch h.Typeflag {
	case tar.TypeDir:
		// A directory of one package is a link in another: what lies in it goes where
		// the link leads, as dpkg has it.
		if old := p.out.Tree.Look(name); old != nil && old.Kind == tree.Link {
			return nil
		}
		return p.out.Tree.Put(name, tree.Node{Kind: tree.Dir, Mode: uint32(h.Mode)&0o777 | 0o755, MTime: mtime})
	case tar.TypeSymlink:
		return p.link(name, h.Linkname, mtime)
	case tar.TypeLink:
		old := p.out.Tree.Look(place(h.Linkname))
		if old == nil || old.Kind != tree.File {
			return refusal.Newf("%s is a second name of %s, which is left out", refusal.Word(name), refusal.Word(h.Linkname))
		}
		p.owner[name] = pkg
		return p.out.Tree.HardLink(name, place(h.Linkname))
	case tar.TypeReg, tar.TypeGNUSparse:
		return p.file(name, pkg, uint32(h.Mode), mtime, t)
	}
	return nil
}
