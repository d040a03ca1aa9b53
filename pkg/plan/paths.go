package plan

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/artifacts"
	"sandglass/pkg/hostpath"
	"sandglass/pkg/policy"
	"sandglass/pkg/rootfs"

	"golang.org/x/sys/unix"
)

// judge is what a path of the caller's really is, if the program may have it: a
// link to the docker socket is the docker socket. what names it in a refusal.
func (b *builder) judge(what, path string, write bool) (string, error) {
	what += " " + strconv.Quote(path)
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", refusal.Newf("%s: %v", what, refusal.Cause(err)).Hint("ls -ld -- %s", refusal.Shell(path))
	}
	s := &b.plan.Spec
	if err := s.CheckSource(real, write); err != nil {
		if real != path {
			err = policy.ByLink(what, path, err)
		}
		return "", err
	}
	if err := s.CheckLink(what, path, real, filepath.EvalSymlinks); err != nil {
		return "", err
	}
	return real, nil
}

// image pins the directory that is the root, as the sources of mounts are.
func (b *builder) image() error {
	if b.host() {
		return nil
	}
	path := b.plan.Spec.Image
	if policy.Imported(path) {
		return b.imported(path)
	}
	real, err := b.judge("image", path, false)
	if err != nil {
		return err
	}
	src, _, err := rootfs.Pin(real)
	if err != nil {
		return refusal.Newf("image %s: %v", strconv.Quote(path), err)
	}
	if !src.Dir {
		return refusal.Newf("image %s is not a directory", strconv.Quote(path)).Hint("ls -ld -- %s", refusal.Shell(path))
	}
	if packed(real) {
		return refusal.Newf("image %s is no root: it is an image as it is passed on, with its files packed in it", strconv.Quote(path)).
			Hint("sandglass image import --name my-image %s   # and run my-image", refusal.Shell(path))
	}
	b.root = src
	return nil
}

// packed says that a directory is an OCI layout, or what podman calls docker-dir. No
// command would be found in it, and nobody would see why.
func packed(dir string) bool {
	has := func(name string) bool {
		st, err := os.Lstat(filepath.Join(dir, name))
		return err == nil && st.Mode().IsRegular()
	}
	root := false
	for _, name := range []string{"bin", "usr"} {
		_, err := os.Lstat(filepath.Join(dir, name))
		root = root || err == nil
	}
	return !root && (has("oci-layout") && has("index.json") || has("manifest.json") && has("version"))
}

// reach is what the program can write to on the host.
func (b *builder) reach() *hostpath.Reach {
	r := &hostpath.Reach{}
	for _, m := range b.mapped {
		if m.Write {
			r.Add(m.Path, m.Dev, m.Ino, m.Dir)
		}
	}
	return r
}

// trusted keeps the compiled filter away from the writable mounts, by what it
// really is: one run would loosen the next one's.
func (b *builder) trusted() error {
	file := b.filterFile()
	if file == "" {
		return nil
	}
	dir, name := hostpath.Split(file)
	fd, err := hostpath.OpenDir(dir)
	if err != nil {
		return refusal.Newf("--seccomp: %s: %v", strconv.Quote(file), err)
	}
	defer unix.Close(fd)
	source, err := b.reach().Holds(fd, name, file)
	if err != nil {
		return refusal.Newf("--seccomp: %s: %v", strconv.Quote(file), err)
	}
	if source != "" {
		return policy.InReach("--seccomp", file, source)
	}
	return nil
}

// filterFile is the file that the filter came from, without links.
func (b *builder) filterFile() string {
	if strings.HasPrefix(b.plan.Filter.Name, "/") {
		return b.plan.Filter.Name
	}
	return ""
}

// out opens where the artefacts will go, and judges it by what it really is.
func (b *builder) out() error {
	s := &b.plan.Spec
	if s.Out == "" {
		return nil
	}
	real, err := hostpath.Walk(s.Out, s.MayFollow)
	if err != nil {
		return b.refuseLink(err)
	}
	if err := s.CheckWritten("--out", real); err != nil {
		return err
	}
	dest, err := artifacts.OpenDest(real)
	if err != nil {
		return err
	}
	b.plan.Out = dest
	return b.outOfReach(dest, real)
}

// outOfReach: the program would replace what is collected, or have its files
// written over others of the caller's.
func (b *builder) outOfReach(dest *artifacts.Dest, real string) error {
	reach := b.reach()
	dir, name := dest.Spot()
	source, err := reach.Holds(dir, name, real)
	if err == nil && source != "" {
		return policy.InReach("--out", real, source)
	}
	if err == nil && name == "." {
		source, err = reach.Below(dir, real)
	}
	if err != nil {
		return refusal.Newf("--out: %s: %v", strconv.Quote(real), err)
	}
	if source != "" {
		return refusal.Newf("--out: %s holds the writable mount %s, where the program could be collected into", strconv.Quote(real), strconv.Quote(source)).
			Hint("choose a directory beside it: --out %s", refusal.Shell(filepath.Join(real, "out")))
	}
	return nil
}

// refuseLink is the refusal of a destination by way of a link: an earlier run
// could have made it, and had the collected files written anywhere.
func (b *builder) refuseLink(err error) error {
	out := b.plan.Spec.Out
	link, ok := err.(*hostpath.LinkError)
	switch {
	case !ok:
		return refusal.Newf("--out: %s: %v", strconv.Quote(out), refusal.Cause(err))
	case link.Nowhere:
		return refusal.Newf("--out: %s is a symbolic link to nothing", strconv.Quote(link.Link)).Hint("rm -- %s", refusal.Shell(link.Link))
	}
	return refusal.Newf("--out: %s is a symbolic link, which a program could have made: name the directory that it leads to", strconv.Quote(link.Link)).
		Hint("readlink -f -- %s   # where it leads now", refusal.Shell(out))
}

// Close lets go of the host's files that the plan has opened.
func (p *Plan) Close() {
	if p.Out != nil {
		p.Out.Close()
	}
	for _, f := range p.files {
		f.Close()
	}
}

// keep has a file closed with the plan.
func (p *Plan) keep(f *os.File) { p.files = append(p.files, f) }
