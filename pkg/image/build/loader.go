package build

import (
	"debug/elf"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/image/recipe"
)

// isELF is whether a file is a program or a library.
func isELF(f io.ReaderAt) bool {
	head := make([]byte, 4)
	_, err := f.ReadAt(head, 0)
	return err == nil && string(head) == elf.ELFMAG
}

// interpreter learns which loader a program of this host asks for. A static one
// asks for none.
func (h *host) interpreter(name, exe string) error {
	file, err := os.Open(exe)
	if err != nil {
		return refusal.Newf("%s: %v", refusal.Word(exe), refusal.Cause(err))
	}
	defer file.Close()
	if !isELF(file) {
		return refusal.Newf("%s is %s, a script: only programs are taken", refusal.Word(name), refusal.Word(exe)).
			Hint("sandglass image from-host INTERPRETER   # and mount the script: run -v")
	}
	f, err := elf.NewFile(file)
	if err != nil {
		return refusal.Newf("%s: %v", refusal.Word(exe), err)
	}
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		text, err := io.ReadAll(io.LimitReader(p.Open(), 4096))
		if err != nil {
			return refusal.Newf("%s: %v", refusal.Word(exe), err)
		}
		loader := strings.TrimRight(string(text), "\x00")
		if h.loader != "" && h.loader != loader {
			return refusal.Newf("%s asks for the loader %s, and another program for %s: they do not fit into one image", refusal.Word(exe), refusal.Word(loader), refusal.Word(h.loader))
		}
		h.loader = loader
	}
	return nil
}

// needs is whether a file asks for libraries, and is for this machine's loader.
func needs(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH]
	libs, err := f.ImportedLibraries()
	return err == nil && len(libs) > 0 && f.Machine == machine && f.Class == elf.ELFCLASS64
}

// byLibc are libraries that the C library opens by itself, when a thread ends.
var byLibc = []string{"libgcc_s.so.1"}

// libraries takes all libraries that the loader would load.
func (h *host) libraries() error {
	if h.loader == "" {
		return nil
	}
	if err := h.take(h.loader); err != nil {
		return err
	}
	for len(h.queue) > 0 {
		path := h.queue[0]
		h.queue = h.queue[1:]
		if !needs(path) {
			continue
		}
		list, err := resolve(h.loader, path)
		if err != nil && h.inTree(path) {
			continue // its interpreter loads it after others of its own, as Java does
		}
		if err != nil {
			return err
		}
		for _, lib := range list {
			if filepath.Base(lib) == "libc.so.6" {
				for _, name := range byLibc {
					list = append(list, filepath.Dir(lib)+"/"+name)
				}
			}
		}
		for _, lib := range list {
			h.look(filepath.Dir(lib), path)
			if err := h.take(lib); err != nil {
				return err
			}
		}
	}
	return nil
}

// look notes a directory where the loader looks only because this host's cache
// (ld.so.cache), which the image does not have, tells it to.
func (h *host) look(dir, user string) {
	at := "/" + place(dir)
	usual := []string{"/usr/lib", "/usr/lib64", "/usr/lib/" + recipe.Triplets[runtime.GOARCH]}
	if !h.inTree(dir) && !slices.Contains(usual, at) && at != "/"+place(filepath.Dir(user)) {
		h.odd = append(h.odd, at)
	}
}

// inTree is whether a path is of what is taken whole.
func (h *host) inTree(path string) bool {
	return slices.ContainsFunc(h.trees, func(t string) bool { return strings.HasPrefix(path+"/", t+"/") })
}

// resolve asks the loader which libraries it would load for a file. Unlike ldd,
// which a program can answer for itself, it executes nothing of the file.
func resolve(loader, path string) ([]string, error) {
	cmd := exec.Command(loader, "--list", path)
	cmd.Env, cmd.Dir = []string{"LC_ALL=C"}, "/"
	text, err := cmd.Output()
	if err != nil && len(text) == 0 {
		return nil, refusal.Newf("%s --list %s: %v", loader, refusal.Word(path), err).
			Hint("%s --list %s   # names the library that is missing here", loader, refusal.Shell(path))
	}
	var list []string
	for _, line := range strings.Split(string(text), "\n") {
		_, to, ok := strings.Cut(line, " => ")
		lib, _, _ := strings.Cut(strings.TrimSpace(to), " (")
		if ok && filepath.IsAbs(lib) {
			list = append(list, filepath.Clean(lib))
		}
	}
	return list, nil
}
