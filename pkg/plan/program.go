package plan

import (
	"bytes"
	"cmp"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/hostpath"
	"sandglass/pkg/rootfs"
	"sandglass/pkg/runtimes"
)

// maxCopy bounds a file that is handed in as the program. Larger ones are mounted.
const maxCopy = 256 << 20

// program decides what init executes.
func (b *builder) program() error {
	p := &b.plan.Spec.Program
	switch {
	case len(p.Code) > 0:
		return b.runCode(p.Lang, runtimes.CodeFile(p.Lang), &rootfs.Code{Content: p.Code, Size: int64(len(p.Code))})
	case p.File != "":
		return b.runFile(p.File)
	}
	return b.runCommand(p.Command)
}

// runCode runs a copied source file with its language's interpreter.
func (b *builder) runCode(lang, name string, code *rootfs.Code) error {
	if name == "" {
		return noCode(lang)
	}
	exe, err := b.interpreter(lang)
	if err != nil {
		return err
	}
	code.Name = name
	b.code = code
	b.exec(runtimes.CodeArgs(lang, exe, rootfs.CodeDir+"/"+name, b.plan.Spec.Program.Args))
	return nil
}

// noCode refuses code of a language that runs no single file, or that there is none of.
func noCode(lang string) error {
	if _, known := runtimes.Lang(lang); known {
		return refusal.Newf("language %s cannot run a single file", strconv.Quote(lang)).
			Hint("sandglass run -v \"$PWD:/task:ro\" -- COMMAND /task/FILE")
	}
	return refusal.Newf("language %s is not known: %s", strconv.Quote(lang), strings.Join(runtimes.OfCode(), ", ")).
		Hint("--lang python").Code(refusal.ExitNotFound)
}

// runFile runs a host file: a script by its extension or #! line, or a binary.
func (b *builder) runFile(path string) error {
	real, err := b.judge("file", path, false)
	if err != nil {
		return err
	}
	f, head, size, err := look(path, real)
	if err != nil {
		return err
	}
	b.plan.keep(f)
	name := filepath.Base(path)
	elf := bytes.HasPrefix(head, []byte("\x7fELF"))
	if _, known := runtimes.Lang(name); elf && known && b.host() {
		// An interpreter finds its library by its path: a copy would not be the
		// one that was named, and a virtual environment's python not its own.
		return b.runCommand(append([]string{path}, b.plan.Spec.Program.Args...))
	}
	code := &rootfs.Code{File: f, CopyFrom: real, Size: size, Name: name}
	lang := b.plan.Spec.Program.Lang
	if lang == "" {
		lang, _ = runtimes.ByExtension(path)
		if b.saysOther(head, lang) {
			lang = ""
		}
	}
	at, mounted := b.mountedAt(real)
	if lang != "" && mounted && !elf {
		return b.runMounted(lang, at)
	}
	if lang != "" {
		return b.runCode(lang, name, code)
	}
	code.Exec = true
	b.code = code
	inside := rootfs.CodeDir + "/" + name
	if elf {
		b.exec(append([]string{inside}, b.plan.Spec.Program.Args...))
		return nil
	}
	sb, ok := runtimes.FromShebang(head)
	if !ok {
		return unknownKind(path, cmp.Or(b.lang, "python"), b.plan.Spec.Program.Args)
	}
	if mounted {
		b.code, inside = nil, at
	}
	exe, err := b.scriptInterpreter(sb.Interpreter)
	if err != nil {
		return err
	}
	argv := append([]string{exe}, sb.Args...)
	b.exec(append(append(argv, inside), b.plan.Spec.Program.Args...))
	return nil
}

// saysOther is whether a file's #! line is not of the language of the file's
// name: NAME.sh is often bash's, and what a file says goes before what it is
// called. A language that is not here is then named as missing: Ruby that a
// shell runs line by line does anything but what it says. An interpreter that
// nobody knows counts only when it is here.
func (b *builder) saysOther(head []byte, lang string) bool {
	sb, ok := runtimes.FromShebang(head)
	if !ok {
		return false
	}
	l, known := runtimes.Lang(filepath.Base(sb.Interpreter))
	if known || !b.host() {
		return l != lang
	}
	if b.inMount(sb.Interpreter) {
		return true
	}
	_, err := b.finder.ForScript(sb.Interpreter)
	r, refused := err.(*refusal.Error)
	// One that is here and may not be had is named as that, and no other runs the file.
	return err == nil || refused && r.Exit == refusal.ExitNotExecutable
}

// look opens the regular file that is to be copied in, and reads its head. What
// is copied later is what was opened here.
func look(path, real string) (f *os.File, head []byte, size int64, err error) {
	fail := func(err error) (*os.File, []byte, int64, error) {
		if f != nil {
			f.Close()
		}
		return nil, nil, 0, err
	}
	f, size, err = hostpath.OpenRegular(real)
	switch {
	case err == hostpath.ErrNotRegular:
		return fail(refusal.Newf("file %s is not a regular file", strconv.Quote(path)))
	case err != nil:
		return fail(refusal.Newf("file %s: %v", strconv.Quote(path), refusal.Cause(err)).Hint("ls -l -- %s", refusal.Shell(path)))
	case size > maxCopy:
		return fail(refusal.Newf("file %s is larger than 256 MiB", strconv.Quote(path)).
			Hint("sandglass run -v %s -- /opt/program", refusal.Shell(path+":/opt/program")))
	}
	head = make([]byte, 512)
	n, err := f.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return fail(refusal.Newf("file %s: %v", strconv.Quote(path), refusal.Cause(err)))
	}
	return f, head[:n], size, nil
}

// runCommand runs argv as it stands. A host path that the view does not have is
// mounted, alone or with its interpreter's prefix: the caller named it.
func (b *builder) runCommand(argv []string) error {
	name := argv[0]
	if b.host() && filepath.IsAbs(name) && !b.inside(name) {
		found, err := b.finder.Find(filepath.Clean(name))
		if r, ok := err.(*refusal.Error); ok && r.Exit == refusal.ExitNotExecutable {
			return err // the caller's own word, which is there: "not found" would be wrong
		}
		if err == nil {
			if err := b.adopt(found); err != nil {
				return err
			}
			argv = append([]string{found.Exe}, argv[1:]...)
		}
	}
	b.exec(argv)
	return nil
}

// inside says that an absolute path means a place of the sandbox: below the
// view, the code or one of the caller's mounts. The scratch is empty at the
// start, so a program in /tmp can only be the host's.
func (b *builder) inside(path string) bool {
	path = filepath.Clean(path)
	places := []string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/nix/store", "/gnu/store", "/dev", "/proc", "/sys", "/etc", rootfs.CodeDir}
	for _, p := range places {
		if path == p || strings.HasPrefix(path, p+"/") {
			return true
		}
	}
	return b.inMount(path)
}

// inMount: a path inside is one of the caller's mounts or lies below one.
func (b *builder) inMount(path string) bool {
	for _, m := range b.plan.Spec.Mounts {
		if path == m.Target || strings.HasPrefix(path, m.Target+"/") {
			return true
		}
	}
	return false
}

func (b *builder) exec(argv []string) { b.plan.Program.Argv = argv }
