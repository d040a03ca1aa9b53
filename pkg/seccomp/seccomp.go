// Package seccomp gives compiled seccomp filters by name or from a file, and
// refuses those that the kernel would not take or that do not confine. It does
// not install them: init does, with the raw bytes.
package seccomp

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"sandglass/internal/refusal"
	"sandglass/pkg/seccomp/bpfvm"
	profiles "sandglass/seccomp-profiles"
)

// Filter is a compiled filter for the architecture of this binary.
type Filter struct {
	Name   string // "default", or the path it was read from
	BPF    []byte // struct sock_filter, native byte order, at most 4096 of them
	SHA256 string // of BPF, lower-case hex
}

// Default is the built-in filter that a run has when nothing else is said.
const Default = "default"

// Names are the built-in filters that Load knows.
func Names() []string { return profiles.Names() }

// Load gives the built-in filter of that name, or reads a compiled filter when
// nameOrPath contains a '/'. Every error is a *refusal.Error. A file is held to
// Validate; the built-in one was by the tests.
func Load(nameOrPath string) (Filter, error) {
	if strings.Contains(nameOrPath, "/") {
		return loadFile(nameOrPath)
	}
	if bpf := profiles.Compiled(nameOrPath); bpf != "" {
		return newFilter(nameOrPath, []byte(bpf)), nil
	}
	if nameOrPath == "unconfined" {
		return Filter{}, refusal.Newf("seccomp profile unconfined: every run is filtered, since the kernel's whole system call surface is what an escape needs").
			Hint("compile a profile of your own: sandglass profile compile my.json").
			Hint("--security-opt seccomp=./my.bpf")
	}
	return Filter{}, refusal.Newf("seccomp profile %q is unknown, there is: %s", nameOrPath, strings.Join(Names(), ", ")).
		Hint("a compiled filter is given as a path with a slash: --security-opt seccomp=./my.bpf")
}

func newFilter(name string, bpf []byte) Filter {
	sum := sha256.Sum256(bpf)
	return Filter{Name: name, BPF: bpf, SHA256: hex.EncodeToString(sum[:])}
}

func loadFile(path string) (Filter, error) {
	if strings.HasSuffix(path, ".json") {
		return Filter{}, refusal.Newf("seccomp profile %s: this is a source, runs take compiled filters only", refusal.Word(path)).
			Hint("sandglass profile compile -o %s %s", refusal.Shell(strings.TrimSuffix(path, ".json")+".bpf"), refusal.Shell(path))
	}
	bpf, err := readRegular(path, bpfvm.MaxInsns*bpfvm.InsnSize)
	if err != nil {
		return Filter{}, refusal.Newf("seccomp profile %s: %v", refusal.Word(path), err)
	}
	if err := Validate(bpf); err != nil {
		return Filter{}, refusal.Newf("seccomp profile %s: %v", refusal.Word(path), err).
			Hint("a JSON profile is compiled by: sandglass profile compile my.json")
	}
	return newFilter(path, bpf), nil
}

// readRegular reads at most limit bytes of a regular file. O_NONBLOCK: opening
// a FIFO would otherwise wait for a writer for ever.
func readRegular(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		var pathErr *fs.PathError
		if errors.As(err, &pathErr) {
			return nil, pathErr.Err
		}
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	// One byte more than allowed, so that a file that grows is noticed.
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, errors.New("more than 4096 instructions, the kernel's limit")
	}
	return data, nil
}
