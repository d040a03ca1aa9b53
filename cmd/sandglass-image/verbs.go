package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sandglass/internal/refusal"
	"sandglass/pkg/image"
	"sandglass/pkg/image/apt"
	"sandglass/pkg/image/store"
	"sandglass/pkg/image/unpack"
	"sandglass/pkg/policy"
)

func importVerb(args []string) (int, error) {
	o, err := parse("import", args, words{1, "FILE|DIR"}, "name", "force", "quiet", "max-files", "max-bytes", "max-ratio", "max-layers", "max-config")
	if err != nil {
		return 0, err
	}
	if o.rest[0] == "-" {
		return 0, refusal.Newf("image import: stdin is not read, for an archive is read more than once: give a file").
			Hint("docker save %s > image.tar && sandglass image import --name %[1]s image.tar", refusal.Shell(cmp.Or(o.name, "python:3.12")))
	}
	if err := elsewhere(o.rest[0]); err != nil {
		return 0, err
	}
	name := o.name
	if name == "" {
		if name, err = defaultName(o.rest[0]); err != nil {
			return 0, err
		}
	}
	return publish("import", name, o, func(w *store.Work) (*unpack.Unpacked, error) {
		u, err := unpack.Import(o.rest[0], o.limits, w)
		if err == nil && !o.quiet && personal() && !u.Tree.Runs() {
			o.tell("there is no program in it, so that nothing of it can be run: is it the root that you meant?")
		}
		return u, err
	})
}

// personal is whether a person reads stderr.
func personal() bool {
	_, err := unix.IoctlGetTermios(2, unix.TCGETS)
	return err == nil
}

// open opens the store. Without one there are no images.
func open() (*image.Store, error) {
	s, err := image.Open()
	if errors.Is(err, image.ErrNone) {
		return nil, reachable()
	}
	return s, err
}

// find opens an image, and words the refusal where there is none.
func find(s *image.Store, ref string) (*image.Image, error) {
	if err := image.TooShort(ref); err != nil {
		return nil, err
	}
	err := image.ErrNone
	if s != nil {
		var img *image.Image
		if img, err = s.Find(ref); err == nil {
			return img, nil
		}
	}
	return nil, noImage(ref, err)
}

// openImage opens the store, and an image of it.
func openImage(ref string) (*image.Store, *image.Image, error) {
	s, err := open()
	if err != nil {
		return nil, nil, err
	}
	img, err := find(s, ref)
	return s, img, err
}

func noImage(ref string, err error) error {
	if errors.Is(err, image.ErrNone) {
		r := missing(ref)
		if image.CheckName(image.Normal(ref)) == nil {
			r.Hint("sandglass image import --name %s FILE", refusal.Shell(ref))
		}
		return r
	}
	return err
}

// missing is the refusal of an image that is not there, with the one that was likely
// meant.
func missing(ref string) *refusal.Error {
	r := refusal.Newf("there is no image %s", refusal.Word(ref))
	if near := policy.NearImage(image.All, ref); near != "" {
		r.Hint("did you mean %s?", near)
	}
	return r.Hint("sandglass image list")
}

func verifyVerb(args []string) (int, error) {
	o, err := parse("verify", args, anyWords)
	if err != nil {
		return 0, err
	}
	s, err := open()
	if err != nil {
		return 0, err
	}
	look := func(ref string) (*image.Image, error) { return find(s, ref) }
	if len(o.rest) == 0 && s != nil {
		look = s.Find
		if o.rest, err = s.Images(); err != nil {
			return 0, err
		}
	}
	bad := 0
	var hints []string
	var b strings.Builder
	for _, ref := range o.rest {
		img, err := look(ref)
		if err == image.ErrNone {
			continue // it was removed since it was listed
		}
		var broken *refusal.Error
		if len(args) == 0 && errors.As(err, &broken) {
			fmt.Fprintf(&b, "%s: %s\n", ref, refusal.Line(broken.What))
			hints = append(hints, broken.Hints...)
			bad++
			continue
		}
		if err != nil {
			return 0, err
		}
		problems, err := store.Verify(s, img)
		img.Close()
		if err != nil {
			return 0, err
		}
		if len(problems) == 0 {
			fmt.Fprintf(&b, "%s: %d files are as they were\n", ref, img.Files)
			continue
		}
		bad++
		for _, p := range problems {
			fmt.Fprintf(&b, "%s: %s\n", ref, p)
		}
		hints = append(hints, again(s, img, ref))
	}
	if code := emit(b.String()); code != 0 || bad == 0 {
		return code, nil
	}
	os.Stderr.WriteString(refusal.Text(fmt.Sprintf("image verify: %d damaged", bad), hints[:min(len(hints), 8)]))
	return 1, nil
}

// again is the command that makes an image anew, and so replaces a damaged one.
func again(s *image.Store, img *image.Image, ref string) string {
	name := "NAME"
	if image.CheckName(ref) == nil {
		name = refusal.Shell(ref)
	} else if names, _ := store.NamesOf(s, img.ID); len(names) > 0 {
		name = names[0]
	}
	if m, err := store.Manifest(s, img); err == nil {
		switch what, from, _ := strings.Cut(m.Origin, " "); {
		case what == "recipe" && slices.Contains(recipes(), from):
			return fmt.Sprintf("sandglass image build %s --name %s --force", from, name)
		case what == "host":
			words := strings.Fields(from)
			for i, w := range words {
				words[i] = refusal.Shell(w)
			}
			return fmt.Sprintf("sandglass image from-host %s --name %s --force", strings.Join(words, " "), name)
		}
	}
	return fmt.Sprintf("sandglass image import --name %s FILE   # what it came from: a damaged image is replaced", name)
}

func removeVerb(args []string) (int, error) {
	o, err := parse("rm", args, words{-1, "IMAGE..."}, "force")
	if err != nil {
		return 0, err
	}
	s, err := open()
	if err != nil {
		return 0, err
	}
	// All are looked up before the first goes: a typo in the last removes nothing.
	for _, ref := range o.rest {
		err := image.ErrNone
		if s != nil {
			_, err = store.Removable(s, ref)
		}
		if errors.Is(err, image.ErrNone) {
			return 0, missing(ref)
		}
		if err != nil {
			return 0, err
		}
	}
	gone := map[string]bool{}
	for _, ref := range o.rest {
		_, err := store.Remove(s, ref, o.force)
		if errors.Is(err, image.ErrNone) && gone[image.Normal(ref)] {
			err = nil // it was given twice
		}
		if err != nil {
			return 0, noImage(ref, err)
		}
		gone[image.Normal(ref)] = true
	}
	return 0, nil
}

func pruneVerb(args []string) (int, error) {
	o, err := parse("prune", args, none, "cache")
	if err != nil {
		return 0, err
	}
	s, err := open()
	if err != nil {
		return 0, err
	}
	var b strings.Builder
	if s != nil {
		p, err := store.Prune(s)
		if err != nil {
			return 0, err
		}
		told(&b, p)
	}
	freed, err := apt.Prune(o.cache)
	if err != nil && o.cache {
		return 0, err
	}
	if freed.Files > 0 || o.cache {
		fmt.Fprintf(&b, "%s of downloaded packages removed, %s\n", plural(freed.Files, "file"), size(freed.Bytes))
	}
	return emit(b.String()), nil
}

func told(b *strings.Builder, p store.Pruned) {
	for _, id := range p.Images {
		fmt.Fprintf(b, "removed %s\n", id)
	}
	for _, n := range p.Names {
		fmt.Fprintf(b, "removed the name %s, which meant no image\n", refusal.Word(n))
	}
	if p.Work > 0 {
		fmt.Fprintf(b, "removed the leftovers of %s\n", plural(p.Work, "killed import"))
	}
	fmt.Fprintf(b, "%s and %s removed\n", plural(len(p.Images), "image"), plural(int(p.Files), "unused content"))
}

// plural is how many there are of something.
func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func exportVerb(args []string) (int, error) {
	o, err := parse("export", args, words{2, "IMAGE DIR"})
	if err != nil {
		return 0, err
	}
	s, img, err := openImage(o.rest[0])
	if err != nil {
		return 0, err
	}
	defer img.Close()
	got := asked("export", o.rest[1])
	if err := store.Export(s, img, o.rest[1], func() bool { return got.Load() != 0 }); err != store.ErrStopped {
		return 0, err
	}
	return stopped("export", syscall.Signal(got.Load())), nil
}
