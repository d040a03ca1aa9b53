package policy

import (
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/image"
)

// checkHostPaths are the host paths that are not -v: the same places are
// dangerous for them, and --out is written to.
func checkHostPaths(s *Spec) error {
	for _, f := range []struct {
		flag, path string
		write      bool
	}{
		{"--image", s.Image, false}, {"--venv", s.Venv, false}, {"--out", s.Out, true},
	} {
		if f.path == "" && f.flag != "--image" || f.path == "host" && f.flag == "--image" {
			continue
		}
		if f.flag == "--image" && Imported(f.path) {
			if !image.IsDigest(f.path) {
				return refusal.Newf("--image: %s is not a digest", quote(f.path)).Hint("sandglass image list")
			}
			continue
		}
		if why := badPath(f.path); why != "" {
			return refusal.Newf("%s: %s %s", f.flag, quote(f.path), why)
		}
		if e := s.danger(f.path, f.write); e != nil {
			return where(f.flag, e)
		}
	}
	if err := s.checkReach("--out", s.Out); err != nil {
		return err
	}
	if seccompIsFile(s.Seccomp) {
		if err := s.checkReach("--seccomp", s.Seccomp); err != nil {
			return err
		}
	}
	for _, p := range s.AllowMounts {
		if why := badPath(p); why != "" && p != "/" {
			return refusal.Newf("--allow-mount: %s %s", quote(p), why)
		}
	}
	if why := badPath(s.Workdir); why != "" {
		return refusal.Newf("--workdir: %s %s", quote(s.Workdir), why).Hint("--workdir /work")
	}
	return nil
}

// checkReach keeps what the supervisor writes or trusts on the host away from
// writable mounts: the program could put a link there and have the supervisor
// overwrite any file of the caller's, or loosen the filter of the next run. The
// paths are compared as given: the clear case, before anything is opened.
// Whoever opens them compares what they really are, see hostpath.Reach.
func (s *Spec) checkReach(flag, file string) error {
	for _, m := range s.Mounts {
		if m.Write && file != "" && (file == m.Source || below(file, m.Source)) {
			return InReach(flag, file, m.Source)
		}
	}
	return nil
}

// InReach refuses a file of the supervisor's that lies in a writable mount.
func InReach(flag, file, source string) *refusal.Error {
	return refusal.Newf("%s: %s is inside the writable mount %s, where the program could replace it", flag, quote(file), quote(source)).
		Hint("choose a path outside, or mount %s without :rw", refusal.Shell(source))
}

// CheckLink refuses a path in a writable mount that leads out of it: an earlier
// run with the same mount could have put the link there, to be shown what the
// caller never named. real is the path without its links.
func (s *Spec) CheckLink(what, name, real string, resolve func(string) (string, error)) error {
	for _, m := range s.Mounts {
		if !m.Write {
			continue
		}
		src, err := resolve(m.Source)
		if err != nil {
			continue // that mount is refused when its turn comes
		}
		if (below(name, m.Source) || below(name, src)) && real != src && !below(real, src) {
			return refusal.Newf("%s leads out of the writable mount %s, to %s: a program could have put the link there", what, quote(m.Source), quote(real)).
				Hint("name the place itself, if it is the right one: %s", refusal.Shell(real))
		}
	}
	return nil
}

func checkMounts(s *Spec) error {
	if len(s.Mounts) > maxMounts {
		return refusal.Newf("--volume: %d mounts are too many: at most %d", len(s.Mounts), maxMounts)
	}
	for i, m := range s.Mounts {
		if err := s.checkMount(m); err != nil {
			return where("--volume", err)
		}
		for _, before := range s.Mounts[:i] {
			if err := checkPair(before, m); err != nil {
				return where("--volume", err)
			}
		}
	}
	return nil
}

func (s *Spec) checkMount(m Mount) error {
	if why := badPath(m.Source); why != "" && m.Source != "/" {
		return refusal.Newf("source %s %s", quote(m.Source), why)
	}
	if why := badPath(m.Target); why != "" {
		return refusal.Newf("target %s %s", quote(m.Target), why).Hint("use an absolute path inside: /task")
	}
	if why := viewTarget(s.Image, m.Target); why != "" {
		return refusal.Newf("target %s is refused: %s", quote(m.Target), why).Hint("use a path of its own: /task")
	}
	if why := reservedTarget(m.Target); why != "" {
		return refusal.Newf("target %s is refused: %s", quote(m.Target), why).Hint("use a path of its own: /task")
	}
	return s.CheckSource(m.Source, m.Write)
}

// viewTarget says why a mount may not cover the host view there, or "". One
// below /usr that exists may.
func viewTarget(image, target string) string {
	switch target {
	case "/usr", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib64", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32":
		if image == "host" {
			return "it would hide the host's own programs and libraries from the program"
		}
	}
	return ""
}

// reservedTarget says why nothing may be mounted there, or "".
func reservedTarget(target string) string {
	for _, dir := range [...]struct{ path, why string }{
		{"/proc", "it is the view of the sandbox's own processes"},
		{"/sys", "it is the view of the sandbox's own limits"},
		{"/dev", "it holds the sandbox's own devices"},
		{"/code", "the program is there"},
		{"/out", "what the program leaves there is collected; use --out"},
	} {
		if target == dir.path || below(target, dir.path) {
			return dir.why
		}
	}
	if target == "/tmp" {
		// A host directory there would take the scratch out of its limits.
		return "it is the scratch, under --disk"
	}
	const synthetic = " /etc /etc/passwd /etc/group /etc/shadow /etc/hosts /etc/hostname /etc/resolv.conf /etc/nsswitch.conf" +
		" /etc/ld.so.cache /etc/ld.so.preload /etc/localtime /etc/machine-id /etc/mtab "
	if !strings.Contains(target, " ") && strings.Contains(synthetic, " "+target+" ") {
		return "it is made for the sandbox"
	}
	return ""
}

// checkPair judges two mounts in the order given. A mount inside a writable one
// would create its target in the host's directory, under names that the program
// chooses; and a parent that comes later would cover the child.
func checkPair(before, m Mount) error {
	switch {
	case before.Target == m.Target:
		return refusal.Newf("target %s is given twice", quote(m.Target))
	case below(before.Target, m.Target):
		return refusal.Newf("target %s would cover %s: give the outer one first", quote(m.Target), quote(before.Target))
	case below(m.Target, before.Target) && before.Write:
		return refusal.Newf("target %s is inside the writable %s", quote(m.Target), quote(before.Target)).
			Hint("mount them side by side, or the outer one :ro")
	}
	return nil
}
