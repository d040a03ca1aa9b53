package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// export copies the tracked files of a tree, as they are now. What lies beside
// them (a scratch file that the compiler would take, a go.work above) cannot get
// into a release.
func export(root, to string) error {
	list, err := gitIn(root, "ls-files", "-z", "--cached").Output()
	if err != nil {
		return fmt.Errorf("git ls-files: %v: a release is made of a checkout", err)
	}
	for name := range bytes.SplitSeq(bytes.TrimRight(list, "\x00"), []byte{0}) {
		from := filepath.Join(root, string(name))
		info, err := os.Lstat(from)
		if os.IsNotExist(err) {
			continue // removed and not committed: a development version
		}
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is no regular file", name)
		}
		data, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := put(filepath.Join(to, string(name)), data, 0o644|info.Mode()&0o111); err != nil {
			return err
		}
	}
	return nil
}

// put writes a file with exactly this mode, whatever the umask.
func put(path string, data []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, data, mode); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

// compile builds a command for an architecture. What a builder's environment
// could change in the binary is set here; cache is a directory for the compiler,
// "" for the usual one.
func (r *release) compile(tree, arch, command, out, cache string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid= -X main.version="+r.stamp, "-o", out, "./cmd/"+command)
	cmd.Dir = tree
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=-mod=readonly", "GOWORK=off", "GOEXPERIMENT=")
	if cache != "" {
		cmd.Env = append(cmd.Env, "GOCACHE="+cache)
	}
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build for %s: %v\n%s", arch, err, text)
	}
	return os.Chmod(out, 0o755)
}

const nfpmVersion = "v2.43.0"

// nfpm is the program that makes packages: a tool of the build, of which nothing
// is in what it makes. The checksum database vouches for it.
func nfpm(root string, needed bool) (string, error) {
	bin := filepath.Join(root, "build", "nfpm-"+nfpmVersion)
	if _, err := os.Stat(bin); err == nil || !needed {
		return bin, nil
	}
	dir, err := os.MkdirTemp(filepath.Join(root, "build"), "nfpm-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	fmt.Fprintln(os.Stderr, "dist: building nfpm", nfpmVersion)
	cmd := exec.Command("go", "install", "github.com/goreleaser/nfpm/v2/cmd/nfpm@"+nfpmVersion)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOBIN="+dir, "GOFLAGS=")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go install nfpm@%s: %v\n%s", nfpmVersion, err, strings.TrimSpace(string(text)))
	}
	return bin, os.Rename(filepath.Join(dir, "nfpm"), bin)
}
