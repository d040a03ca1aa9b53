package plan

import (
	"path/filepath"
	"strconv"

	"sandglass/internal/refusal"
	"sandglass/pkg/policy"
	"sandglass/pkg/rootfs"

	"golang.org/x/sys/unix"
)

// mounts resolves the sources of -v once, and judges what they really are: a
// link to the docker socket is the docker socket.
func (b *builder) mounts() error {
	for _, m := range b.plan.Spec.Mounts {
		src, err := b.source(m.Source, m.Write)
		if err != nil {
			return err
		}
		b.mapped = append(b.mapped, rootfs.Bind{Source: src, Target: m.Target, Write: m.Write, Open: true, IDMap: true})
	}
	return nil
}

func (b *builder) source(path string, write bool) (rootfs.Source, error) {
	real, err := b.judge("mount source", path, write)
	if err != nil {
		return rootfs.Source{}, err
	}
	src, mode, err := rootfs.Pin(real)
	if err == unix.ELOOP {
		return rootfs.Source{}, refusal.Newf("mount source %s became a link while it was looked at", strconv.Quote(path))
	}
	if err != nil {
		return rootfs.Source{}, refusal.Newf("mount source %s: %v", strconv.Quote(path), err)
	}
	if kind := badKind(mode); kind != "" && !allowed(&b.plan.Spec, real) {
		e := refusal.Newf("mount source %s is a %s: it leads out of the sandbox", strconv.Quote(path), kind)
		if real != path {
			return rootfs.Source{}, e.Hint("%s", policy.WhereALinkLeads(path))
		}
		return rootfs.Source{}, e.Hint("--allow-mount %s   # only if the program may speak to it", refusal.Shell(real))
	}
	if err := readable(real, mode); err != nil {
		return rootfs.Source{}, refusal.Newf("mount source %s: %v", strconv.Quote(path), err).
			Hint("ls -ld -- %s", refusal.Shell(path))
	}
	return src, nil
}

// badKind names the kinds of file that are a door rather than data.
func badKind(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFSOCK:
		return "socket"
	case unix.S_IFBLK, unix.S_IFCHR:
		return "device"
	case unix.S_IFIFO:
		return "named pipe"
	}
	return ""
}

// readable finds out now what the program would only meet as an empty folder.
func readable(path string, mode uint32) error {
	how := uint32(unix.R_OK)
	if mode&unix.S_IFMT == unix.S_IFDIR {
		how |= unix.X_OK
	}
	return unix.Access(path, how)
}

func allowed(s *policy.Spec, path string) bool {
	for _, p := range s.AllowMounts {
		if filepath.Clean(p) == path {
			return true
		}
	}
	return false
}
