package plan

import (
	"errors"
	"path"
	"strconv"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/image"
	"sandglass/pkg/policy"
	"sandglass/pkg/rootfs"
	"sandglass/pkg/runtimes"
)

// imported opens an image of the store. It stays open, and so in the store, until
// the plan is closed.
func (b *builder) imported(id string) error {
	s, err := image.Open()
	if err == nil {
		defer s.Close()
		err = b.fromStore(s, id)
	}
	if errors.Is(err, image.ErrNone) {
		return refusal.Newf("there is no image %s", id).Hint("sandglass image list")
	}
	return err
}

func (b *builder) fromStore(s *image.Store, id string) error {
	img, err := s.Load(id)
	if err != nil {
		return err
	}
	b.plan.keep(img.Lock)
	if err := img.Fits(id); err != nil {
		return err
	}
	if err := b.storeOutOfReach(s); err != nil {
		return err
	}
	src, _, err := rootfs.Pin(img.Root())
	if err != nil || !src.Dir {
		return refusal.Newf("image %s: its files: %v", id, err).Hint("sandglass image verify %s", id)
	}
	b.root, b.plan.Entrypoint = src, len(img.Config.Entrypoint) > 0
	b.lang = language(b.plan.Spec.ImageName, &img.Config)
	return nil
}

// language is what a hint takes for an example, in an image: what it is called by, or
// runs without being asked.
func language(name string, c *image.Config) string {
	name, _, _ = strings.Cut(strings.TrimPrefix(name, "host-"), ":")
	for _, list := range [][]string{{name}, c.Cmd, c.Entrypoint} {
		if len(list) == 0 {
			continue
		}
		if lang, ok := runtimes.Lang(path.Base(list[0])); ok {
			return lang
		}
	}
	return ""
}

// storeOutOfReach: a program that could write to the store would be in every image
// of it from then on.
func (b *builder) storeOutOfReach(s *image.Store) error {
	reach := b.reach()
	source, err := reach.Holds(s.FD, ".", s.Path)
	if err == nil && source != "" {
		return policy.InReach("image store", s.Path, source)
	}
	if err == nil && !reach.Empty() {
		source, err = reach.Below(s.FD, s.Path)
	}
	if err != nil {
		return refusal.Newf("image store %s: %v", strconv.Quote(s.Path), err)
	}
	if source != "" {
		return refusal.Newf("the writable mount %s is in the image store %s", strconv.Quote(source), strconv.Quote(s.Path)).
			Hint("-v %s:TARGET:ro", refusal.Shell(source))
	}
	return nil
}
