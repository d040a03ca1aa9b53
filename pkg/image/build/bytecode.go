package build

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"sandglass/internal/refusal"
	"sandglass/pkg/hostpath"
	"sandglass/pkg/image/child"
	"sandglass/pkg/image/manifest"
	"sandglass/pkg/image/recipe"
	"sandglass/pkg/image/tree"
)

// Run runs a command in a sandbox whose root is a tree, and gives its output to read.
type Run func(t *tree.Tree, argv []string, read func(io.Reader) error) error

// compiler writes a tar archive of the bytecode of all modules below its arguments.
// In one process, in one order and with one seed of hashes the same sources give the
// same bytes.
const compiler = `
import importlib._bootstrap_external as external, importlib.util, io, os, sys, tarfile
out = tarfile.open(fileobj=sys.stdout.buffer, mode="w|", format=tarfile.GNU_FORMAT)
for top in sys.argv[1:]:
    for where, dirs, files in os.walk(top):
        dirs.sort()
        for name in sorted(files):
            if not name.endswith(".py"):
                continue
            path = os.path.join(where, name)
            with open(path, "rb") as f:
                source = f.read()
            try:
                code = compile(source, path, "exec", dont_inherit=True, optimize=0)
            except (SyntaxError, ValueError):
                continue  # a template, or a test of the compiler's
            mtime = int(os.stat(path).st_mtime)
            data = external._code_to_timestamp_pyc(code, mtime, len(source))
            entry = tarfile.TarInfo(importlib.util.cache_from_source(path))
            entry.size = len(data)
            out.addfile(entry, io.BytesIO(data))
out.close()
`

// bytecode adds what Debian's scripts make of Python modules when they are installed:
// in a read-only root every run would compile what it imports. It is made by the
// image's own Python, in a sandbox like any other.
func (p *packager) bytecode(run Run) error {
	if len(p.recipe.Bytecode) == 0 {
		return nil
	}
	var tops []string
	err := p.out.Tree.Walk(func(name string, n *tree.Node) error {
		if n.Kind == tree.Dir && recipe.Any(p.recipe.Bytecode, name) && !below(tops, name) {
			tops = append(tops, "/"+name)
		}
		return nil
	})
	if err != nil || len(tops) == 0 {
		return refusal.Newf("bytecode: no directory is called so")
	}
	argv := append([]string{"/usr/bin/python3", "-S", "-B", "-W", "ignore", "-c", compiler}, tops...)
	return run(p.out.Tree, argv, func(in io.Reader) error { return p.compiled(in, tops) })
}

// below says whether a name is below one of these directories.
func below(tops []string, name string) bool {
	return slices.ContainsFunc(tops, func(top string) bool { return strings.HasPrefix("/"+name, top+"/") })
}

// compiled takes bytecode beside the modules that it is of, and nothing else.
func (p *packager) compiled(in io.Reader, tops []string) error {
	t := tar.NewReader(in)
	for {
		h, err := t.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		name := place(h.Name)
		dir, base := path.Split(name)
		module, _, _ := strings.Cut(base, ".")
		source := p.out.Tree.Look(path.Join(path.Dir(path.Clean(dir)), module+".py"))
		ours := path.Base(dir) == "__pycache__" && strings.HasSuffix(base, ".pyc") && h.Typeflag == tar.TypeReg && below(tops, name)
		if !ours || source == nil || source.Kind == tree.Dir {
			return refusal.Newf("bytecode: %s is of no module", refusal.Word(name))
		}
		if err := p.file(name, manifest.Ours, 0o644, source.MTime, t); err != nil {
			return err
		}
	}
}

// Sandbox runs a command with sandglass, which lies beside this program, in a sandbox
// whose root is a directory. Its limits may be held by weaker means: they are there
// for a compiler that does not end.
func Sandbox(root string, argv []string, read func(io.Reader) error) error {
	at, err := hostpath.Beside("sandglass")
	if err != nil {
		return refusal.Newf("where this binary lies cannot be told: %v", err)
	}
	fd, err := hostpath.Program(at)
	if err != nil {
		return refusal.Newf("%s: %v", refusal.Word(at), err).Hint("install -m 755 sandglass %s   # from the same build", refusal.Shell(filepath.Dir(at)+"/"))
	}
	program := os.NewFile(uintptr(fd), at)
	defer program.Close()
	flags := []string{"run", "-q", "--allow-degraded", "memory,cpu,pids", "--timeout", "20m", "-m", "1g", "--cpus", "2", "--output-limit", "1g",
		"-e", "PYTHONHASHSEED=0", "--image", root, "--"}
	cmd := exec.Command("/proc/self/fd/3", append(flags, argv...)...)
	cmd.Args[0], cmd.ExtraFiles = "sandglass", []*os.File{program}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = child.Start(cmd)
	}
	if err != nil {
		return refusal.Newf("%s: %v", refusal.Word(at), err)
	}
	err = read(out)
	if err == nil {
		_, err = io.Copy(io.Discard, out)
	}
	out.Close()
	if werr := child.Wait(cmd); werr != nil && (err == nil || errors.Is(err, io.ErrUnexpectedEOF)) {
		first, _, _ := strings.Cut(strings.TrimPrefix(errs.String(), "sandglass: error: "), "\n")
		err = refusal.Newf("running %s in a sandbox: %v: %s", argv[0], werr, refusal.Line(first[:min(len(first), 500)])).Hint("sandglass doctor")
	}
	return err
}
