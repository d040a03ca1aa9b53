package policy

import (
	"errors"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/image"
)

// Imported says that a Spec's image is one of the store's, by its digest: so the
// policy says which bytes are run, and a name that means another image tomorrow
// changes nothing about it.
func Imported(name string) bool { return strings.HasPrefix(name, image.DigestPrefix) }

// namedImage looks up --image NAME.
func (h Host) namedImage(p *Parsed) error {
	name := p.pending.named
	if name == "" {
		return nil
	}
	found, err := h.imported(p, name)
	if err == nil && !found {
		e := refusal.Newf("--image: %s is neither host, a directory nor an image that was imported", quote(name))
		if near := h.near(name); near != "" {
			e.Hint("--image %s   # an image that is here", refusal.Shell(near))
		}
		return e.Hint("sandglass image list").
			Hint("--image host").
			Hint("--image %s   # if it is a directory", refusal.Shell("./"+name))
	}
	return err
}

// imported takes an imported image for the root, when the word means one.
func (h Host) imported(p *Parsed, ref string) (bool, error) {
	if strings.Contains(ref, "/") {
		return false, nil
	}
	id, config, err := h.Image(ref)
	if errors.Is(err, image.ErrNone) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	p.Spec.Image, p.Spec.ImageName, p.pending.config = id, ref, config
	if !p.pending.workdir && config.WorkingDir != "" {
		p.Spec.Workdir = config.WorkingDir
	}
	return true, nil
}

// noCommand is the refusal of an image without a word to run.
func (p *Parsed) noCommand() error {
	flags, name := p.Spec.Flags(), refusal.Shell(p.Spec.called())
	if c := &p.pending.config; p.pending.entrypoint != nil && len(c.Entrypoint)+len(c.Cmd) > 0 {
		return refusal.Newf("nothing to run: --entrypoint takes the place of the image's own command, and none follows").
			Hint("%s %s   # the image's own", flags, name).
			Hint("%s --entrypoint '' %s COMMAND", flags, name)
	}
	return refusal.Newf("nothing to run: the image has no command of its own, and none follows").Hint("%s %s COMMAND", flags, name)
}

// command is what is run of words, as docker has it: the image's entrypoint, then
// the words or, without any, the image's command. An entrypoint of the caller's
// takes the place of both of the image's.
func (p *Parsed) command(words []string) error {
	first, rest := p.pending.config.Entrypoint, p.pending.config.Cmd
	if e := p.pending.entrypoint; e != nil {
		first, rest = nil, nil
		if *e != "" {
			first = []string{*e}
		}
	}
	if len(words) > 0 {
		rest = words
	}
	p.Spec.Program.Command = append(first[:len(first):len(first)], rest...)
	if len(p.Spec.Program.Command) > 0 {
		return nil
	}
	if p.Spec.Image != "host" {
		return p.noCommand()
	}
	return noProgram("nothing to run")
}
