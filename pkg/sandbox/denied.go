package sandbox

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sandglass/internal/refusal"
	"sandglass/pkg/launch"
	"sandglass/pkg/result"
	"sandglass/pkg/rootfs"
)

// denied finds the cause where a program of a mount's may not be executed though
// its mode says that it may: a mount keeps the flags that it has on the host, and
// what is its owner's alone is nobody's inside where ids cannot be mapped.
func (r *runner) denied(e *launch.Ending) {
	if e.Outcome != result.Refused || e.ExitCode != refusal.ExitNotExecutable {
		return
	}
	name := r.plan.Program.Argv[0]
	in := r.plan.Input
	for _, m := range append(slices.Clone(in.Mounts), in.Interpret...) {
		rest, below := strings.CutPrefix(name, target(m))
		if !below || rest != "" && rest[0] != '/' {
			continue
		}
		if why, hint := r.whyDenied(m, rest); why != "" {
			e.Error += ": " + refusal.Word(m.Path) + " is on a file system that " + why
			e.Hints = append([]string{hint}, e.Hints...)
		}
		return
	}
}

func (r *runner) whyDenied(m rootfs.Bind, rest string) (why, hint string) {
	var fs unix.Statfs_t
	switch {
	case unix.Statfs(m.Path, &fs) == nil && fs.Flags&unix.MS_NOEXEC != 0:
		// A program that is named as a file is copied, and the copy may be executed.
		return "is mounted noexec on this host", r.plan.Spec.Again(false) + " " + refusal.ShellLine(m.Path+rest, r.plan.Program.Argv[1:]...) + "   # a copy of the program, which may be executed"
	case slices.Contains(r.box.Unmapped, m.Path):
		return "cannot map ids, so the program's id may use only what everybody may", "chmod -R a+rX -- " + refusal.Shell(m.Path)
	}
	return "", ""
}

// target is where a bind is inside; an interpreter is at its own path.
func target(m rootfs.Bind) string {
	if m.Target == "" {
		return m.Path
	}
	return m.Target
}
