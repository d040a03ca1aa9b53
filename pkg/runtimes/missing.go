package runtimes

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sandglass/internal/refusal"
)

const (
	missingDirs  = 8 // directories that a message names
	missingNotes = 4
)

// missing gathers why nothing was found.
type missing struct {
	name     string
	lang     *Language
	cmds     []string
	relative int      // entries of PATH that were ignored
	denied   []string // files that may not be executed
	notes    []string // candidates that were passed over
	script   bool     // a #! line chose the name, so that no hint may say it
}

// error says what was looked for and where, in bounded length: PATH may have a
// thousand entries.
func (m *missing) error(dirs []string) *refusal.Error {
	var b strings.Builder
	b.WriteString(quote(m.name) + ": ")
	exit := refusal.ExitNotFound
	switch {
	case len(m.denied) > 0 && len(m.notes) == 0:
		exit = refusal.ExitNotExecutable
		b.WriteString("found but not executable: " + list(m.denied, missingNotes))
	case dirs == nil && m.cmds == nil:
		b.WriteString("not found on this host")
	case len(dirs) == 0:
		b.WriteString("not found: PATH has no absolute directory")
	default:
		b.WriteString("not found: looked for " + list(m.cmds, missingDirs) + " in " + list(dirs, missingDirs))
	}
	if len(m.notes) > 0 {
		notes := m.notes[:min(len(m.notes), missingNotes)]
		b.WriteString("; passed over " + strings.Join(notes, "; "))
	}
	if m.relative > 0 {
		b.WriteString("; relative entries of PATH are ignored: " + strconv.Itoa(m.relative))
	}
	err := refusal.Newf("%s", b.String()).Code(exit)
	if m.script {
		return err.Hint("%s", hintLang)
	}
	if exit == refusal.ExitNotExecutable {
		// access(2) answers for the mount as well as for the file's mode.
		var fs unix.Statfs_t
		if unix.Statfs(m.denied[0], &fs) == nil && fs.Flags&unix.MS_NOEXEC != 0 {
			err.What += ", on a file system that is mounted noexec on this host"
			return err.Hint("findmnt --target %s   # where: mount -o remount,exec as root", refusal.Shell(m.denied[0]))
		}
		return err.Hint("chmod +x %s", refusal.Shell(m.denied[0]))
	}
	if m.lang != nil && m.lang.Package != "" {
		err.Hint("apt-get install %s", m.lang.Package)
	}
	return err.Hint("sandglass run -v /opt/tool:/opt/tool:ro -- /opt/tool/bin/COMMAND")
}

// list joins at most max quoted items.
func list(items []string, max int) string {
	quoted := make([]string, 0, max+1)
	for i, s := range items {
		if i == max {
			quoted = append(quoted, "and "+strconv.Itoa(len(items)-max)+" more")
			break
		}
		quoted = append(quoted, quote(s))
	}
	return strings.Join(quoted, ", ")
}
