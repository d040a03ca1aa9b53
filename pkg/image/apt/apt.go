// Package apt gets packages by the distribution's own tools. apt chooses them,
// downloads them and checks each by the signed list that it is in; dpkg-deb
// unpacks them to a stream. Nothing is installed, no maintainer script is run, and
// the host's own apt and dpkg see nothing of it: lists, archives and what counts as
// installed are files of a directory of the caller's. It needs no root.
package apt

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandglass/internal/refusal"
	"sandglass/pkg/hostpath"
	"sandglass/pkg/image"
)

// Source is a mirror that is named on the command line, "" for the host's own sources.
type Source struct {
	URL, Suite, Keyring string
	// Instead is the host's command that from-host makes an image like this of, "" for none.
	Instead string
	// Old takes lists that are past their date: a lock has the digest of each
	// package, so that an old list can bring no old package.
	Old bool
	// Waits is called when another build is waited for, once.
	Waits func(dir string)
}

// Apt is apt with a state of its own.
type Apt struct {
	Arch  string
	dir   string // of these sources
	debs  string // archives, of all sources
	lock  *os.File
	env   []string
	src   Source
	trips string // what the last update could not get

	patience time.Duration // see watch
}

const (
	aptGet  = "/usr/bin/apt-get"
	dpkgDeb = "/usr/bin/dpkg-deb"

	archives = "archives" // below the directory of all sources
)

// Open makes the state ready, and waits for a build that uses it.
func Open(src Source, arch string) (*Apt, error) {
	for _, tool := range []string{aptGet, dpkgDeb} {
		if unix.Access(tool, unix.X_OK) != nil {
			return nil, src.instead(refusal.Newf("packages are got by apt-get and dpkg-deb, and this host has no %s", tool), "of what is installed here").
				Hint("sandglass image import --name python python.tar   # of an image that was made elsewhere")
		}
	}
	if err := src.check(); err != nil {
		return nil, err
	}
	top, err := cacheDir(os.Getenv)
	if err != nil {
		return nil, err
	}
	a := &Apt{Arch: arch, src: src, dir: filepath.Join(top, src.key()), debs: filepath.Join(top, archives), patience: patience}
	if err := a.prepare(top); err != nil {
		a.Close()
		return nil, failed(top, err)
	}
	a.env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "HOME=/nonexistent"}
	for _, name := range []string{"http_proxy", "https_proxy", "no_proxy", "ftp_proxy"} {
		if v := os.Getenv(name); v != "" {
			a.env = append(a.env, name+"="+v)
		}
	}
	return a, nil
}

// failed is the refusal of a state that cannot be used.
func failed(dir string, err error) error {
	if _, ok := err.(*refusal.Error); ok {
		return err
	}
	r := refusal.Newf("%s: %v", refusal.Word(dir), refusal.Cause(err))
	if noSpace(r.What) {
		return full(r, dir)
	}
	return r.Hint("ls -la -- %s", refusal.Shell(dir)).
		Hint("export XDG_CACHE_HOME=/var/tmp/\"$(id -un)\"   # any directory of your own")
}

// cacheDir is where the state is. All of it can be removed at any time.
func cacheDir(getenv func(string) string) (string, error) {
	top := getenv("XDG_CACHE_HOME")
	switch home := getenv("HOME"); {
	case strings.HasPrefix(top, "/"):
	case os.Geteuid() == 0:
		top = "/var/cache"
	case strings.HasPrefix(home, "/"):
		top = filepath.Join(home, ".cache")
	default:
		return "", refusal.Newf("neither XDG_CACHE_HOME nor HOME says where packages can be kept").
			Hint("export XDG_CACHE_HOME=/var/tmp/\"$(id -un)\"   # any directory of your own")
	}
	dir := filepath.Join(top, "sandglass", "packages")
	// It stands in a file of settings, between quotes.
	if strings.ContainsAny(dir, "\"\\;{}#") || strings.ContainsFunc(dir, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", refusal.Newf("the directory for packages, %s, has a character that apt would read as its own", refusal.Word(dir)).
			Hint("export XDG_CACHE_HOME=/var/tmp/\"$(id -un)\"   # any directory of your own")
	}
	return dir, nil
}

// prepare makes the directories and the settings. They are open for reading: as
// root apt downloads as a user of its own, _apt, and nothing here is secret.
func (a *Apt) prepare(top string) error {
	defer unix.Umask(unix.Umask(0o022))
	if err := os.MkdirAll(top, 0o755); err != nil {
		return err
	}
	for _, d := range []string{"", "/state", "/state/lists", "/cache", "/none", "/none/partial", "/etc"} {
		if err := os.Mkdir(a.dir+d, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	for _, d := range []string{"", "/partial"} {
		if err := os.Mkdir(a.debs+d, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	fd, err := hostpath.OpenDir(top)
	if err != nil {
		return err
	}
	// Who can write here chooses what is in the images.
	err = image.Private(fd)
	unix.Close(fd)
	if err != nil {
		return err
	}
	if a.lock, err = openLock(top); err != nil {
		return err
	}
	if image.Flock(int(a.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == unix.EWOULDBLOCK && a.src.Waits != nil {
		a.src.Waits(top)
	}
	if err := image.Flock(int(a.lock.Fd()), unix.LOCK_EX); err != nil {
		return err
	}
	if err := a.heal(top); err != nil {
		return err
	}
	if err := a.src.write(a.dir + "/etc"); err != nil {
		return err
	}
	return os.WriteFile(a.dir+"/apt.conf", []byte(a.settings()), 0o644)
}

// partial are halves of lists, of no use to who did not begin them.
const partial = "/state/lists/partial"

// heal takes away what a build that was killed has left half, and not for apt to find:
// it refuses all lists where one of these is not what it made.
func (a *Apt) heal(top string) error {
	root, err := os.OpenRoot(top)
	if err != nil {
		return err
	}
	defer root.Close()
	name := a.src.key() + partial
	c := cleaner{root: root}
	if err := c.remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return root.Mkdir(name, 0o755)
}

func openLock(top string) (*os.File, error) {
	return os.OpenFile(filepath.Join(top, "lock"), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o644)
}

// Close lets another build have the state.
func (a *Apt) Close() {
	if a.lock != nil {
		a.lock.Close()
	}
}

// settings are read last: what they say the host's own settings cannot undo. These
// still say how to reach the network.
func (a *Apt) settings() string {
	lines := []string{
		`Dir::State "` + a.dir + `/state";`, `Dir::State::lists "lists";`, `Dir::State::status "` + a.dir + `/state/status";`,
		`Dir::State::extended_states "` + a.dir + `/state/extended_states";`,
		`Dir::Cache "` + a.dir + `/cache";`, `Dir::Cache::archives "` + a.debs + `";`,
		// Settings that keep containers small make each call read all lists anew.
		`Dir::Cache::pkgcache "pkgcache.bin";`, `Dir::Cache::srcpkgcache "srcpkgcache.bin";`, `Acquire::GzipIndexes "false";`,
		`Dir::Log "` + a.dir + `/cache";`, `Dir::Etc::preferences "/dev/null";`, `Dir::Etc::preferencesparts "/dev/null";`,
		// Their commands are for a system that packages are installed on.
		`#clear APT::Update::Pre-Invoke;`, `#clear APT::Update::Post-Invoke;`, `#clear APT::Update::Post-Invoke-Success;`,
		`#clear APT::Install::Pre-Invoke;`, `#clear APT::Install::Post-Invoke-Success;`,
		`#clear DPkg::Pre-Invoke;`, `#clear DPkg::Post-Invoke;`, `#clear DPkg::Pre-Install-Pkgs;`, `#clear AptCli::Hooks;`,
		`#clear APT::Architectures;`, `APT::Architecture "` + a.Arch + `";`, `APT::Architectures { "` + a.Arch + `"; };`,
		`#clear Acquire::Languages;`, `Acquire::Languages "none";`,
		`Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";`, `Acquire::IndexTargets::deb::CNF::DefaultEnabled "false";`,
		`Acquire::Retries "1";`, `Acquire::http::Timeout "30";`, `Acquire::https::Timeout "30";`, `Acquire::ForceHash "SHA256";`,
		// No list without a signature, and no package without a list.
		`Acquire::AllowInsecureRepositories "false";`, `Acquire::AllowWeakRepositories "false";`,
		`Acquire::AllowDowngradeToInsecureRepositories "false";`, `APT::Get::AllowUnauthenticated "false";`,
		`APT::Get::Force-Yes "false";`, `APT::Install-Recommends "false";`, `APT::Install-Suggests "false";`, `APT::Default-Release "";`,
		// A name is a name: no pattern, no task.
		`APT::Cmd::Pattern-Only "true";`, `Debug::NoLocking "true";`, `quiet "2";`,
	}
	if a.src.URL != "" {
		// A host whose clock or mirror is of another day says so for its own sources alone.
		lines = append(lines, `Acquire::Check-Date "true";`, `Acquire::Check-Valid-Until "true";`, `Dir::Etc::sourcelist "`+a.dir+`/etc/sources.list";`, `Dir::Etc::sourceparts "/dev/null";`)
	}
	return strings.Join(lines, "\n") + "\n"
}

// run runs apt-get. Its stderr comes back in lines.
func (a *Apt) run(args ...string) (stdout string, warnings []string, err error) {
	defer unix.Umask(unix.Umask(0o022)) // _apt has to read what root's apt made
	cmd := exec.Command(aptGet, append([]string{"-c", a.dir + "/apt.conf"}, args...)...)
	cmd.Env, cmd.Dir = a.env, a.dir
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = a.watched(cmd)
	return out.String(), strings.Split(strings.TrimRight(errs.String(), "\n"), "\n"), err
}

// refuse is the refusal of what apt would not do, in its words. What the last update
// could not get is the cause, and comes first: without lists no package is known.
func (a *Apt) refuse(what string, said []string, err error) *refusal.Error {
	var r *refusal.Error
	if errors.As(err, &r) {
		return r
	}
	text := a.word(said, "E: ")
	if text == "" || errors.Is(err, errStuck) {
		text = err.Error()
	}
	r = refusal.Newf("apt-get %s: %s", what, refusal.Line(text))
	if a.trips != "" && what != "update" {
		r.What = "apt-get update: " + refusal.Line(a.trips) + "; so apt-get " + what + ": " + refusal.Line(text)
	}
	if noSpace(r.What) {
		return full(r, filepath.Dir(a.debs))
	}
	if strings.HasPrefix(a.src.URL, "file:") {
		r.What = strings.ReplaceAll(r.What, "copy:/", "file:/") // as it was given
	}
	if a.trips != "" || what == "update" || errors.Is(err, errStuck) {
		a.reach(r)
		a.src.instead(r, "needs no network")
	}
	return r
}

// reach adds how to see whether the sources can be had.
func (a *Apt) reach(r *refusal.Error) {
	at := strings.TrimRight(a.src.URL, "/") + "/dists/" + a.src.Suite + "/InRelease"
	switch path, local := strings.CutPrefix(at, "file:"); {
	case a.src.URL == "":
		r.Hint("apt-get update   # as root, says whether the host's own sources work")
	case local:
		r.Hint("ls -l -- %s", refusal.Shell("/"+strings.TrimLeft(path, "/")))
	default:
		r.Hint("curl -I %s   # whether the mirror answers", refusal.Shell(at))
	}
}

// instead adds the way that needs no packages, where there is one.
func (s *Source) instead(r *refusal.Error, why string) *refusal.Error {
	if s.Instead != "" {
		r.Hint("sandglass image from-host %s   # %s", s.Instead, why)
	}
	return r
}

// word is the first line that begins so.
func (a *Apt) word(said []string, mark string) string {
	for _, l := range said {
		if rest, ok := strings.CutPrefix(l, mark); ok {
			return rest[:min(len(rest), 500)]
		}
	}
	return ""
}

// Update gets the lists. One that cannot be had is not the end: the host may have
// sources that are of no use here, and lists of an earlier day may do. One that is
// not signed as it should be counts for nothing.
func (a *Apt) Update() error {
	_, said, err := a.run("update")
	if a.trips = a.word(said, "W: Failed to fetch "); a.trips != "" {
		a.trips = "failed to fetch " + a.trips
	}
	if err != nil {
		return a.refuse("update", said, err)
	}
	return nil
}
