package apt

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sandglass/internal/refusal"
	"sandglass/pkg/image/child"
	"sandglass/pkg/image/manifest"
	"sandglass/pkg/image/recipe"
)

// Resolve says which packages these need, as apt would install them where there is
// nothing but what is left out.
func (a *Apt) Resolve(want []recipe.Want, without []string) ([]manifest.Package, error) {
	if err := a.pretend(without); err != nil {
		return nil, err
	}
	args := []string{"-o", "Dir::Cache::archives=" + a.dir + "/none", "install", "--print-uris", "-y", "--"}
	for _, w := range want {
		if w.Version == recipe.Newest {
			args = append(args, w.Name)
		} else {
			args = append(args, w.Name+"="+w.Version)
		}
	}
	out, said, err := a.run(args...)
	if err != nil {
		r := a.refuse("install", said, err)
		if a.src.URL == "" && a.trips == "" {
			r.Hint("apt-cache policy %s   # says what the host's sources have", want[0].Name)
		}
		return nil, r
	}
	list, err := parseURIs(out, a.Arch)
	if err != nil {
		return nil, err
	}
	for _, w := range want {
		i := slices.IndexFunc(list, func(p manifest.Package) bool { return p.Name == w.Name })
		if i < 0 || w.Version != recipe.Newest && list[i].Version != w.Version {
			return nil, refusal.Newf("apt-get would take no package %s %s", w.Name, w.Version).Hint("apt-cache policy %s", w.Name)
		}
	}
	return list, nil
}

// pretend writes what counts as installed.
func (a *Apt) pretend(without []string) error {
	var b strings.Builder
	for _, name := range without {
		b.WriteString("Package: " + name + "\nStatus: install ok installed\nMaintainer: nobody\nArchitecture: " + a.Arch +
			"\nMulti-Arch: foreign\nVersion: 9999:0\nDescription: left out\n\n")
	}
	if err := os.WriteFile(a.dir+"/state/status", []byte(b.String()), 0o644); err != nil {
		return failed(a.dir, err)
	}
	return nil
}

// uriLine is a line of --print-uris: where it is, what it is called, how large it
// is, its digest.
var uriLine = regexp.MustCompile(`^'[^']*' ([a-z0-9][a-z0-9+.-]*)_([0-9A-Za-z.+~%-]+)_([a-z0-9]+)\.deb [0-9]+ SHA256:([0-9a-f]{64})$`)

func parseURIs(text, arch string) ([]manifest.Package, error) {
	var list []manifest.Package
	for _, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "'") {
			continue
		}
		var p manifest.Package
		m := uriLine.FindStringSubmatch(line)
		if m != nil {
			p = manifest.Package{Name: m[1], Version: strings.ReplaceAll(m[2], "%3a", ":"), Architecture: m[3], Sum: m[4]}
		}
		if m == nil || !recipe.Sane(p, arch) {
			return nil, refusal.Newf("apt-get told of a package in a way that is not known: %s", refusal.Word(line))
		}
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b manifest.Package) int { return strings.Compare(a.Name, b.Name) })
	if len(list) == 0 {
		return nil, refusal.Newf("apt-get would take no package at all")
	}
	return list, nil
}

// file is what apt calls an archive.
func (a *Apt) file(p manifest.Package) string {
	return filepath.Join(a.debs, p.Name+"_"+strings.ReplaceAll(p.Version, ":", "%3a")+"_"+p.Architecture+".deb")
}

// Have says whether all of these are here, by their digests.
func (a *Apt) Have(list []manifest.Package) bool {
	for _, p := range list {
		f, err := a.open(p)
		if err != nil {
			return false
		}
		f.Close()
	}
	return true
}

// Fetch gets exactly these packages. What is here already is kept if its digest is
// right. apt checks what it downloads by its signed lists, and the digests that
// these packages were chosen by are checked again, each time.
func (a *Apt) Fetch(list []manifest.Package, without []string) error {
	args := []string{"install", "--download-only", "-y", "--"}
	all := true
	for _, p := range list {
		args = append(args, p.Name+"="+p.Version)
		if a.Have([]manifest.Package{p}) {
			continue
		}
		all = false
		if err := os.Remove(a.file(p)); err != nil && !os.IsNotExist(err) {
			return failed(a.debs, err)
		}
	}
	if all {
		return nil
	}
	if err := a.pretend(without); err != nil {
		return err
	}
	if _, said, err := a.run(args...); err != nil {
		r := a.refuse("install", said, err)
		if r.What != err.Error() && !noSpace(r.What) {
			r.Hint("--mirror https://MIRROR/debian   # one that still has these versions")
		}
		return r
	}
	for _, p := range list {
		f, err := a.open(p)
		if err != nil {
			return err
		}
		f.Close()
	}
	return nil
}

// open opens an archive whose digest is the right one.
func (a *Apt) open(p manifest.Package) (*os.File, error) {
	f, err := os.OpenFile(a.file(p), os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, failed(a.file(p), err)
	}
	h := sha256.New()
	_, err = io.Copy(h, f)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err == nil && hex.EncodeToString(h.Sum(nil)) != p.Sum {
		err = refusal.Newf("package %s %s: its SHA-256 is %x, and %s was to be expected", p.Name, p.Version, h.Sum(nil), p.Sum).
			Hint("rm -- %s", refusal.Shell(a.file(p)))
	}
	if err != nil {
		f.Close()
		return nil, failed(a.file(p), err)
	}
	return f, nil
}

// Contents gives a package's files to read, as a tar archive.
func (a *Apt) Contents(p manifest.Package, read func(io.Reader) error) error {
	f, err := a.open(p)
	if err != nil {
		return err
	}
	defer f.Close()
	_ = os.Chtimes(a.file(p), time.Time{}, time.Now()) // it is used: see Trim
	// By its descriptor: it is what was looked at.
	cmd := exec.Command(dpkgDeb, "--fsys-tarfile", "/proc/self/fd/3")
	cmd.ExtraFiles, cmd.Env, cmd.Dir = []*os.File{f}, a.env, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return failed(dpkgDeb, err)
	}
	if err := child.Start(cmd); err != nil {
		return failed(dpkgDeb, err)
	}
	err = read(out)
	if err == nil {
		_, err = io.Copy(io.Discard, out) // what follows the end of the archive
	}
	out.Close()
	if werr := child.Wait(cmd); err == nil && werr != nil {
		err = refusal.Newf("dpkg-deb: %v", werr)
	}
	if err != nil {
		return refusal.Within("package "+p.Name+" "+p.Version, err)
	}
	return nil
}
