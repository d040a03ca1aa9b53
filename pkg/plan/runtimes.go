package plan

import (
	"path/filepath"
	"slices"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/rootfs"
	"sandglass/pkg/runtimes"
)

// always are the interpreters that are offered inside wherever the host keeps
// them, since a shell or a timeout(1) may call them by name.
var always = []string{"python", "python3", "node"}

// runtimes makes the caller's own interpreters usable inside.
func (b *builder) runtimes() error {
	if !b.host() {
		return nil
	}
	if dir := b.plan.Spec.Venv; dir != "" {
		if _, err := b.judge("virtual environment", dir, false); err != nil {
			return err
		}
		found, err := b.finder.Venv(dir)
		if err != nil {
			return refused(err)
		}
		if err := b.adopt(found); err != nil {
			return err
		}
		b.venv = dir
	}
	names := always
	if argv := b.plan.Spec.Program.Command; len(argv) > 0 {
		names = append(names[:len(names):len(names)], runtimes.Mentioned(argv)...)
	}
	for _, name := range names {
		if found, err := b.finder.Find(name); err == nil {
			err := b.adopt(found)
			// One that nobody asked for and that cannot be had is only not there.
			if argv := b.plan.Spec.Program.Command; err != nil && len(argv) > 0 && argv[0] == name {
				return err
			}
		}
	}
	return nil
}

// Languages are those whose code can be run in the host's view: what Spec's
// Program.Lang may be.
func Languages() []string {
	f := finder()
	var list []string
	for _, name := range runtimes.OfCode() {
		found, err := f.Find(name)
		if err == nil && (name != "typescript" || runtimes.RunsTypeScript(found.Exe)) {
			list = append(list, name)
		}
	}
	return list
}

// interpreter is the path inside of what runs a language or a #! line.
func (b *builder) interpreter(name string) (string, error) {
	if !b.host() {
		// An image's own PATH decides; python3 is the name that images have.
		if lang, ok := runtimes.Lang(name); ok && lang == "python" {
			return "python3", nil
		}
		return name, nil
	}
	if b.venv != "" {
		if lang, ok := runtimes.Lang(name); ok && lang == "python" {
			return filepath.Join(b.venv, "bin", "python"), nil
		}
	}
	found, err := b.finder.Find(name)
	if err != nil {
		return "", refused(err)
	}
	return found.Exe, b.adopt(found)
}

// scriptInterpreter is the path inside of what a #! line names. The line is as
// hostile as the script: it chooses among what the caller has on PATH, in --venv
// and in mounts, and has nothing mounted.
func (b *builder) scriptInterpreter(name string) (string, error) {
	if !b.host() || !filepath.IsAbs(name) {
		return b.interpreter(name)
	}
	if b.inMount(name) {
		return name, nil
	}
	if b.ofVenv(name) {
		return filepath.Join(b.venv, "bin", "python"), nil
	}
	found, err := b.finder.ForScript(name)
	if err != nil {
		return "", refused(err)
	}
	return found.Exe, b.adopt(found)
}

// ofVenv: name is a python of --venv.
func (b *builder) ofVenv(name string) bool {
	if lang, ok := runtimes.Lang(filepath.Base(name)); b.venv == "" || !ok || lang != "python" {
		return false
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(name))
	if err != nil {
		return false
	}
	bin, err := filepath.EvalSymlinks(filepath.Join(b.venv, "bin"))
	return err == nil && dir == bin
}

// adopt adds what an interpreter needs inside. What lies where no mount may
// come from is refused as a mount is: it was found by the caller's PATH, by a
// link, by a file that an earlier run has written.
func (b *builder) adopt(in runtimes.Interpreter) error {
	paths := in.Extra
	if in.Prefix != "" {
		paths = append([]string{in.Prefix}, paths...)
	}
	var binds []rootfs.Bind
	for _, p := range paths {
		if b.bound(p) {
			continue
		}
		if err := b.plan.Spec.CheckSource(p, false); err != nil && !ownConfig(p) {
			return err
		}
		src, mode, err := rootfs.Pin(p)
		if err != nil {
			return refusal.Newf("interpreter %s: %s: %v", refusal.Word(in.Name), refusal.Word(p), err)
		}
		// Installed under a umask of 077 it is its owner's alone, whom root's
		// sandboxes are not.
		binds = append(binds, rootfs.Bind{Source: src, Open: true, IDMap: mode&0o004 == 0, Offered: true})
	}
	b.binds = append(b.binds, binds...)
	for _, l := range in.Links {
		b.name(l.Path, l.Target)
	}
	for _, d := range in.BinDirs {
		if !slices.Contains(b.dirs, d) {
			b.dirs = append(b.dirs, d)
		}
	}
	if base := in.Name; filepath.Base(in.Exe) != base && !filepath.IsAbs(base) && base != "" {
		b.name(rootfs.NamesDir+"/"+base, in.Exe)
	}
	return nil
}

// ownConfig are the places in /etc of which package runtimes names single files
// that an interpreter does not start without.
func ownConfig(path string) bool {
	return strings.HasPrefix(path, "/etc/java-") || strings.HasPrefix(path, "/etc/R/")
}

func (b *builder) bound(path string) bool {
	for _, x := range b.binds {
		if x.Path == path {
			return true
		}
	}
	return false
}

func (b *builder) name(path, text string) {
	for _, l := range b.links {
		if l.Target == path {
			return
		}
	}
	b.links = append(b.links, rootfs.Link{Target: path, Text: text})
}
