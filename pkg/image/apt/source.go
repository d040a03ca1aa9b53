package apt

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sandglass/internal/refusal"
)

// DefaultKeyring has the keys that Debian signs its lists with.
const DefaultKeyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// key names the state of a source: lists of one must not be taken for another's.
func (s *Source) key() string {
	if s.URL == "" {
		return "host"
	}
	sum := sha256.Sum256([]byte(s.line()))
	return "mirror-" + hex.EncodeToString(sum[:8])
}

// line is the one of sources.list.
func (s *Source) line() string {
	options := "signed-by=" + s.Keyring
	if s.Old {
		options += " check-valid-until=no"
	}
	// copy: has the files of a local mirror brought to where the others are.
	url := s.URL
	if path, ok := strings.CutPrefix(url, "file:"); ok {
		url = "copy:" + path
	}
	return "deb [" + options + "] " + url + " " + s.Suite + " main\n"
}

func (s *Source) write(dir string) error {
	if s.URL == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(dir, "sources.list"), []byte(s.line()), 0o644)
}

// What may stand in a line of sources.list: a blank or a bracket would begin a
// setting there, and trusted=yes is one.
var (
	goodURL   = regexp.MustCompile(`^(https?://|file:/)[A-Za-z0-9._~/:@%+,=-]+$`)
	goodSuite = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]*(/[A-Za-z0-9._+-]+)*$`)
	goodFile  = regexp.MustCompile(`^/[A-Za-z0-9._~/:@%+,=-]+$`)
)

// check completes a source, and refuses what would mean something else.
func (s *Source) check() error {
	if s.URL == "" {
		if s.Suite != "" || s.Keyring != "" {
			return refusal.Newf("--suite and --keyring are of a mirror, and there is no --mirror").Hint("--mirror URL")
		}
		return checkHost("/etc/apt/sources.list", "/etc/apt/sources.list.d")
	}
	if !goodURL.MatchString(s.URL) {
		return refusal.Newf("--mirror %s is no address of a mirror", refusal.Word(s.URL)).Hint("--mirror https://MIRROR/debian")
	}
	if s.Keyring == "" {
		s.Keyring = DefaultKeyring
	}
	if !goodFile.MatchString(s.Keyring) || filepath.Clean(s.Keyring) != s.Keyring {
		return refusal.Newf("--keyring %s: not an absolute path without blanks", refusal.Word(s.Keyring))
	}
	if _, err := os.Stat(s.Keyring); err != nil {
		r := refusal.Newf("--keyring %s: %v", refusal.Word(s.Keyring), refusal.Cause(err))
		if s.Keyring != DefaultKeyring {
			return r.Hint("ls -ld -- %s", refusal.Shell(s.Keyring))
		}
		return r.Hint("apt-get install debian-archive-keyring")
	}
	if s.Suite == "" {
		s.Suite = codename("/etc/os-release")
	}
	if !goodSuite.MatchString(s.Suite) || strings.Contains(s.Suite, "..") {
		return refusal.Newf("--suite %s is no name of a release", refusal.Word(s.Suite)).Hint("--suite bookworm")
	}
	return nil
}

// codename is this host's release.
func codename(file string) string {
	text, _ := os.ReadFile(file)
	for _, l := range strings.Split(string(text), "\n") {
		if v, ok := strings.CutPrefix(l, "VERSION_CODENAME="); ok {
			return strings.Trim(v, `"'`)
		}
	}
	return ""
}

// unchecked are the settings of a source by which apt takes what nobody signed.
var unchecked = regexp.MustCompile(`(?i)\b(trusted|allow-insecure|allow-weak|allow-downgrade-to-insecure)\s*[:=]\s*(yes|true|with|on|enable|1)\b`)

// checkHost refuses sources whose signatures apt is told not to look at.
func checkHost(list, parts string) error {
	files := []string{list}
	for _, glob := range []string{"/*.list", "/*.sources"} {
		more, _ := filepath.Glob(parts + glob)
		files = append(files, more...)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return refusal.Newf("%s: %v", f, refusal.Cause(err)).Hint("--mirror https://MIRROR/debian")
		}
		for _, line := range strings.Split(string(text), "\n") {
			line, _, _ = strings.Cut(line, "#")
			if m := unchecked.FindString(line); m != "" {
				return refusal.Newf("%s says %s: apt would check no signature of what comes from there", refusal.Word(f), refusal.Word(m)).
					Hint("--mirror https://MIRROR/debian   # one that is signed")
			}
		}
	}
	return nil
}
