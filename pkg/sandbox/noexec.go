package sandbox

import (
	"strings"

	"golang.org/x/sys/unix"

	"sandglass/internal/refusal"
	"sandglass/pkg/launch"
	"sandglass/pkg/result"
)

// noexec finds the cause where a program in a mount of the caller's may not be
// executed, though its mode says that it may: a mount keeps the flags that it
// has on the host. A program that is named as a file is copied, and the copy may.
func (r *runner) noexec(e *launch.Ending) {
	if e.Outcome != result.Refused || e.ExitCode != refusal.ExitNotExecutable {
		return
	}
	name := r.plan.Program.Argv[0]
	for _, m := range r.spec.Mounts {
		rest, below := strings.CutPrefix(name, m.Target)
		var fs unix.Statfs_t
		if !below || rest != "" && rest[0] != '/' || unix.Statfs(m.Source, &fs) != nil || fs.Flags&unix.MS_NOEXEC == 0 {
			continue
		}
		e.Error += ": " + refusal.Word(m.Source) + " is on a file system that is mounted noexec on this host"
		e.Hints = append([]string{"sandglass run " + refusal.Shell(m.Source+rest) + "   # a copy of the program, which may be executed"}, e.Hints...)
	}
}
