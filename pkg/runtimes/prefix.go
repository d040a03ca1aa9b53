package runtimes

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// neverPrefix are directories that many things share; opening one because an
// interpreter lies in its bin would open them all.
var neverPrefix = [...]string{
	"/", "/boot", "/etc", "/home", "/lost+found", "/media", "/mnt", "/nix", "/opt", "/root", "/run", "/snap", "/srv", "/tmp",
	"/usr/local", "/var", "/var/lib", "/var/tmp", "/var/opt",
}

// homeParts are directories of a home that hold keys and histories beside programs.
var homeParts = [...]string{".local", ".config", ".cache", ".var", ".mozilla"}

// secrets at the top of a directory show that it is, or serves as, somebody's home.
var secrets = [...]string{
	".ssh", ".aws", ".gnupg", ".azure", ".kube", ".docker", ".config", ".password-store", ".netrc", ".git-credentials",
	".pypirc", ".pgpass", ".env", ".bash_history", ".bashrc", ".profile",
}

// stores are package trees whose programs link into each other and that are
// readable to everybody by design.
var stores = [...]string{"/nix/store", "/gnu/store"}

// prefix says what to mount for the real executable exe: nothing, a directory,
// or the file alone and what else there is of it.
func (f Finder) prefix(lang *Language, exe string) (prefix string, fileOnly bool, extra []string) {
	if inHostView(exe) {
		return "", false, nil
	}
	for _, s := range stores {
		if under(exe, s) && exe != s {
			return s, false, nil
		}
	}
	p := filepath.Dir(filepath.Dir(exe))
	if filepath.Base(filepath.Dir(exe)) != "bin" {
		return exe, true, nil
	}
	lib := landmark(lang, p, filepath.Base(exe))
	switch {
	case lib == "":
		return exe, true, nil
	case f.shared(p) == "":
		return p, false, brewed(p)
	case lang != nil && lang.Name == "python" && ownPath(lib):
		// Installed with --prefix=$HOME: the standard library is the interpreter's, the home around it is not.
		return exe, true, []string{lib}
	}
	return exe, true, nil
}

// shared says why a directory must not be mounted as a whole, or "".
func (f Finder) shared(p string) string {
	if slices.Contains(neverPrefix[:], p) || inHostView(p) && filepath.Dir(p) == "/" || underAny(p, kernelDirs[:]) || hasControl(p) {
		return "is shared by the whole system"
	}
	if filepath.Dir(p) == "/home" {
		return "is a home directory"
	}
	for _, home := range f.homes() {
		if home == p || under(home, p) {
			return "is or contains the home directory"
		}
	}
	if slices.Contains(homeParts[:], filepath.Base(p)) {
		return "holds more than an interpreter"
	}
	for _, s := range secrets {
		// .config is a common ancestor of programs, .ssh is not.
		if s != ".config" && strings.Contains(p+"/", "/"+s+"/") {
			return "lies in " + s
		}
		var st unix.Stat_t
		if unix.Lstat(p+"/"+s, &st) == nil {
			return "contains " + s
		}
	}
	return ""
}

// homes are the caller's home as named and as it really is: /home may be a link.
func (f Finder) homes() []string {
	if !filepath.IsAbs(f.Home) {
		return nil
	}
	named := filepath.Clean(f.Home)
	real, _, err := resolve(named)
	if err != nil || real == named {
		return []string{named}
	}
	return []string{named, real}
}

// landmark is the directory below p that proves p to be the own prefix of the
// interpreter, or "". A bare lib or share proves nothing: ~/.local has both.
func landmark(lang *Language, p, exe string) string {
	if lang == nil {
		for _, d := range [...]string{"/lib/", "/share/"} {
			if exists(p + d + exe) {
				return p + d + exe
			}
		}
		return ""
	}
	if lang.Name == "python" {
		// bin/python3.12 needs no directory to be read.
		if dir := p + "/lib/" + strings.TrimSuffix(exe, "m"); strings.HasPrefix(exe, "python") && regular(dir+"/os.py") {
			return dir
		}
	}
	for _, mark := range lang.marks {
		if found := match(p, mark); found != "" {
			return filepath.Dir(found)
		}
	}
	return ""
}

// match finds the first path below p that fits a pattern with at most one *,
// which is in one element. It is no glob: p may have brackets in its name.
func match(p, pattern string) string {
	before, after, star := strings.Cut(pattern, "*")
	if !star {
		if exists(p + "/" + pattern) {
			return p + "/" + pattern
		}
		return ""
	}
	dir, start := filepath.Split(before)
	dir = filepath.Join(p, dir)
	end, rest, _ := strings.Cut(after, "/")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	for _, e := range entries {
		if name := e.Name(); strings.HasPrefix(name, start) && strings.HasSuffix(name, end) {
			if found := filepath.Join(dir, name, rest); exists(found) {
				return found
			}
		}
	}
	return ""
}

// ownPath: no element of path is a symbolic link that leads elsewhere.
func ownPath(path string) bool {
	real, _, err := resolve(path)
	return err == nil && real == path
}

// brewed: a keg of Homebrew links into its neighbours, so these come with it.
// Not the whole prefix of Homebrew: its var and etc hold databases.
func brewed(p string) []string {
	root, keg, ok := strings.Cut(p, "/Cellar/")
	if !ok || keg == "" || !exists(root+"/bin/brew") {
		return nil
	}
	var extra []string
	for _, d := range [...]string{"/Cellar", "/opt", "/lib"} {
		if exists(root + d) {
			extra = append(extra, root+d)
		}
	}
	return extra
}

// config lists the files outside /usr without which an interpreter of the host
// view does not start: inside, /etc is a synthetic one. Only named ones, since
// the same directories may hold passwords (jmxremote.password).
func config(lang *Language, exe string) []string {
	dir := ""
	if lang.Name == "java" {
		// Debian: lib/jvm.cfg is a link to /etc/java-17-openjdk/jvm-amd64.cfg.
		real, _, err := resolve(filepath.Join(filepath.Dir(filepath.Dir(exe)), "lib/jvm.cfg"))
		if err != nil || !strings.HasPrefix(real, "/etc/java-") {
			return nil
		}
		dir = filepath.Dir(real)
	} else if !inHostView(exe) {
		return nil
	}
	var found []string
	for _, name := range lang.etc {
		path := name
		if dir != "" {
			path = match(dir, name)
		}
		if path != "" && exists(path) {
			found = append(found, path)
		}
	}
	return found
}
