package plan

import (
	"path/filepath"
	"strconv"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/rootfs"
	"sandglass/pkg/runtimes"
)

// mountedAt is where a host file is inside because -v shows its directory, and
// whether one does. A script then runs from there and not as a copy, and finds
// the files beside it. real is its path without links.
func (b *builder) mountedAt(real string) (string, bool) {
	for _, m := range b.mapped {
		rel, err := filepath.Rel(m.Path, real)
		if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
			continue
		}
		at := filepath.Join(m.Target, rel)
		if !b.covered(at, m.Target) {
			return at, true
		}
	}
	return "", false
}

// covered is whether another mount lies over the path of one at target.
func (b *builder) covered(path, target string) bool {
	for _, m := range b.mapped {
		if len(m.Target) > len(target) && (path == m.Target || strings.HasPrefix(path, m.Target+"/")) {
			return true
		}
	}
	return false
}

// runMounted runs a script of a mount with its language's interpreter.
func (b *builder) runMounted(lang, at string) error {
	exe, err := b.interpreter(lang)
	if err != nil {
		return err
	}
	b.exec(runtimes.CodeArgs(lang, exe, at, b.plan.Spec.Program.Args))
	return nil
}

// copied are the files that are put into the scratch.
func (b *builder) copied() error {
	var size int64
	for i := range b.plan.Spec.Files {
		f := &b.plan.Spec.Files[i]
		c := rootfs.Code{Name: f.Name, Content: f.Content, Size: int64(len(f.Content)), Exec: f.Exec}
		if f.Source != "" {
			real, err := b.judge("file", f.Source, false)
			if err != nil {
				return err
			}
			if c.File, _, c.Size, err = look(f.Source, real); err != nil {
				return err
			}
			b.plan.keep(c.File)
			c.CopyFrom = real
		}
		size += c.Size
		b.files = append(b.files, c)
	}
	return b.plan.Spec.FilesFit(size)
}

// unknownKind is the refusal of a file that nothing says how to run. Sources of
// compiled languages get the line that compiles and runs them.
func unknownKind(path, lang string, args []string) error {
	e := refusal.Newf("cannot tell how to run %s: no known extension, no #! line, not an ELF binary", strconv.Quote(path)).
		Code(refusal.ExitNotExecutable)
	dir, name := filepath.Dir(path), filepath.Base(path)
	compile := ""
	switch filepath.Ext(name) {
	case ".c":
		compile = "gcc -o /work/a /task/%s && /work/a"
	case ".cc", ".cpp", ".cxx":
		compile = "g++ -o /work/a /task/%s && /work/a"
	case ".rs":
		compile = "rustc -o /work/a /task/%s && /work/a"
	case ".go":
		const flags = "--memory 1g --disk 512m --pids-limit 256 --cpus 2 --timeout 120s"
		return source(e, flags+" -v "+refusal.Shell(dir)+":/task -e GOCACHE=/tmp/c -- go run", refusal.ShellLine("/task/"+name, args...))
	}
	if compile != "" {
		script := strings.ReplaceAll(compile, "%s", refusal.Shell(name))
		return source(e, "-v "+refusal.Shell(dir)+":/task -- sh -c", refusal.Shell(script))
	}
	return e.Hint("sandglass run --lang %s %s   # says what language it is", lang, refusal.ShellLine(path, args...))
}

func source(e *refusal.Error, flags, last string) error {
	e.What += "; it is source that is compiled first"
	return e.Hint("sandglass run %s %s", flags, last)
}
