package unpack

import (
	"runtime"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/image"
	"sandglass/pkg/image/tree"
)

// Bounds of an image's settings, which become arguments and environment.
const (
	maxEnv   = 1000
	maxWords = 100 << 10
)

// settings takes over how an image wants to be run.
func (u *unpacker) settings(s *settings) error {
	if s.OS != runtime.GOOS || s.Architecture != runtime.GOARCH {
		return refusal.Newf("it is for %s, and this machine is %s/%s", refusal.Word(cut(s.OS+"/"+s.Architecture)), runtime.GOOS, runtime.GOARCH).
			Hint("get the image for %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	c := image.Config{Env: s.Config.Env, Entrypoint: s.Config.Entrypoint, Cmd: s.Config.Cmd, WorkingDir: s.Config.WorkingDir, User: s.Config.User}
	u.out.Meta.OS, u.out.Meta.Architecture, u.out.Meta.Config = s.OS, s.Architecture, c
	total := len(c.WorkingDir) + len(c.User)
	for _, list := range [][]string{c.Env, c.Entrypoint, c.Cmd} {
		for _, w := range list {
			total += len(w) + 1
			if strings.ContainsRune(w, 0) {
				return refusal.Newf("the settings: %s has a NUL byte", refusal.Word(cut(w)))
			}
		}
	}
	if total > maxWords || len(c.Env) > maxEnv {
		return refusal.Newf("the settings: %d bytes of environment and arguments, more than %d", total, maxWords)
	}
	for _, e := range c.Env {
		if name, _, ok := strings.Cut(e, "="); !ok || name == "" {
			return refusal.Newf("the settings: %s is no variable", refusal.Word(cut(e)))
		}
	}
	if c.WorkingDir != "" && !strings.HasPrefix(c.WorkingDir, "/") || strings.ContainsRune(c.WorkingDir, 0) {
		return refusal.Newf("the settings: the working directory %s is not an absolute path", refusal.Word(cut(c.WorkingDir)))
	}
	return nil
}

// Ours are the names at the top that the sandbox has its own things at, whatever
// an image has there.
var ours = []string{"dev", "proc", "sys", "tmp", "work", "out", "code"}

// Substituted are the files of /etc that say how names are found and what the
// host is called. The sandbox's own are mounted over them, for which they must be
// there, and be files: over a link nothing can be mounted.
var substituted = []string{"hosts", "hostname", "resolv.conf", "nsswitch.conf"}

// Finish does for an image that was built what is done for one that was imported.
func Finish(out *Unpacked, sink Sink) error {
	out.Meta.Schema = image.Schema
	u := &unpacker{limits: Defaults(), sink: sink, out: out}
	return u.finish()
}

// finish makes of the layers a root that a sandbox can have, and counts it.
func (u *unpacker) finish() error {
	t, m := u.out.Tree, &u.out.Meta
	if len(t.Root.Names()) == 0 {
		return refusal.Newf("it holds no files")
	}
	for _, name := range append([]string{"etc", "var"}, ours...) {
		if n := t.Look(name); n != nil && n.Kind != tree.Dir {
			note(&m.Notes, "/"+name+" is no directory: the sandbox has its own there, or none")
		}
	}
	if etc := t.Look("etc"); etc != nil && etc.Kind == tree.Dir {
		if err := u.placeholders(); err != nil {
			return err
		}
	}
	u.workingDir()
	return t.Walk(func(path string, n *tree.Node) error {
		switch n.Kind {
		case tree.Dir:
			m.Dirs++
		case tree.Link:
			m.Links++
		case tree.File:
			m.Files++
			m.Bytes += n.Size
			if n.Mode&0o6000 != 0 || n.Caps {
				note(&m.Inert, refusal.Word(cut(path)))
			}
		}
		return nil
	})
}

func (u *unpacker) placeholders() error {
	for _, name := range substituted {
		n := u.out.Tree.Look("etc/" + name)
		if n != nil && n.Kind == tree.File {
			continue
		}
		if n != nil {
			note(&u.out.Meta.Notes, "/etc/"+name+" was no file, and is an empty one")
		}
		empty := tree.Node{Kind: tree.File, Mode: 0o644}
		if err := u.take(strings.NewReader(""), 0, &empty); err != nil {
			return err
		}
		if err := u.out.Tree.Put("etc/"+name, empty); err != nil {
			return err
		}
	}
	return nil
}

// workingDir makes the image's working directory, as docker does. Where a file is
// in its way the run is refused, by its name.
func (u *unpacker) workingDir() {
	if dir := u.out.Meta.Config.WorkingDir; dir != "" && u.out.Tree.MakeDir(dir) != nil {
		note(&u.out.Meta.Notes, "the working directory "+refusal.Word(cut(dir))+" cannot be made")
	}
}
