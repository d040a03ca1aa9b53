package runtimes

import (
	"os"
	"path/filepath"
	"strings"
)

const (
	versionBytes = 4 << 10 // of a version file that are read
	versionWords = 16      // versions that one file may name
)

// readVersions reads .python-version and its like: the first word of each
// line, # starts a comment. A word that is not a plain version is left out: a
// version is joined to the manager's directory, and ../../x would name any
// directory of the host (CVE-2022-35861 of pyenv).
func readVersions(data []byte) []string {
	var versions []string
	for line := range strings.Lines(string(data)) {
		words := strings.Fields(line)
		if len(words) > 0 && plainVersion(words[0]) && len(versions) < versionWords {
			versions = append(versions, words[0])
		}
	}
	return versions
}

// readTools reads one tool of a .tool-versions file: `python 3.12.1 system`.
// path: and ref: versions are left out, as in readVersions.
func readTools(data []byte, tool string) []string {
	var versions []string
	for line := range strings.Lines(string(data)) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != tool {
			continue
		}
		for _, w := range words[1:] {
			if plainVersion(w) && len(versions) < versionWords {
				versions = append(versions, w)
			}
		}
	}
	return versions
}

// readTOML reads `tool = "3.12"` of the [tools] table of a mise.toml. Other
// forms (lists, tables, templates) are not understood and not guessed.
func readTOML(data []byte, tool string) []string {
	table := false
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			table = line == "[tools]"
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !table || !ok || strings.Trim(key, " \t\"") != tool {
			continue
		}
		value, _, _ = strings.Cut(value, " #")
		value = strings.TrimSpace(value)
		if len(value) < 2 || value[0] != value[len(value)-1] || value[0] != '"' && value[0] != '\'' {
			return nil
		}
		if value = value[1 : len(value)-1]; plainVersion(value) {
			return []string{value}
		}
		return nil
	}
	return nil
}

// plainVersion: one file name without a meaning of its own.
func plainVersion(v string) bool {
	if v == "" || len(v) > 64 || v[0] == '.' || v[0] == '-' {
		return false
	}
	return strings.IndexFunc(v, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-+", r))
	}) < 0
}

// upward calls try with each file called name, from dir to the root, until it
// is content. Links are not followed: the directory may be a model's.
func upward(dir, name string, try func(data []byte) bool) {
	if !filepath.IsAbs(dir) {
		return
	}
	for dir = filepath.Clean(dir); ; dir = filepath.Dir(dir) {
		if data, err := readFile(filepath.Join(dir, name), versionBytes, false); err == nil && try(data) {
			return
		}
		if dir == "/" {
			return
		}
	}
}

// installed is the directory below dir for a version: by its name, without a
// prefix that people write (python-3.12, v20), or the newest that it begins.
func installed(dir, lang, version string) string {
	names := []string{version}
	for _, p := range [...]string{lang + "-", "v"} {
		if rest, ok := strings.CutPrefix(version, p); ok && plainVersion(rest) {
			names = append(names, rest)
		}
	}
	for _, n := range names {
		if exists(dir + "/" + n) {
			return dir + "/" + n
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	for _, n := range names {
		if best := newest(entries, n); best != "" {
			return dir + "/" + best
		}
	}
	return ""
}

// newest is the highest release among entries that starts with version, as
// `pyenv latest` has it: no development versions, and free-threaded builds
// (3.13t) only for who asks for one.
func newest(entries []os.DirEntry, version string) string {
	stem, threads := version, ""
	if n := len(version); n > 1 && version[n-1] == 't' && digit(version[n-2]) {
		stem, threads = version[:n-1], "t"
	}
	best := ""
	for _, e := range entries {
		v := e.Name()
		rest, ok := strings.CutPrefix(v, stem)
		if !ok || rest == "" || rest[0] != '.' && rest[0] != '-' || !plainVersion(v) {
			continue
		}
		core, free := strings.CutSuffix(v, "t")
		free = free && core != "" && digit(core[len(core)-1])
		if free != (threads != "") || preview(rest) {
			continue
		}
		if best == "" || older(best, v) {
			best = v
		}
	}
	return best
}

// preview: -dev, -src, a1, b2, rc3.
func preview(v string) bool {
	if strings.HasSuffix(v, "-dev") || strings.HasSuffix(v, "-src") || strings.HasSuffix(v, "-latest") {
		return true
	}
	core := strings.TrimRight(v, "0123456789")
	if core == v {
		return false
	}
	return strings.HasSuffix(core, "a") || strings.HasSuffix(core, "b") || strings.HasSuffix(core, "rc")
}

// older compares versions by their numbers: 3.9 is older than 3.12.
func older(a, b string) bool {
	for a != "" && b != "" {
		na, ra := leading(a)
		nb, rb := leading(b)
		switch {
		case na == "" || nb == "":
			if a[0] != b[0] {
				return a[0] < b[0]
			}
			ra, rb = a[1:], b[1:]
		case len(na) != len(nb):
			return len(na) < len(nb)
		case na != nb:
			return na < nb
		}
		a, b = ra, rb
	}
	return a == "" && b != ""
}

// leading splits off a number without its leading zeros.
func leading(s string) (number, rest string) {
	i := 0
	for i < len(s) && digit(s[i]) {
		i++
	}
	number = s[:i]
	for len(number) > 1 && number[0] == '0' {
		number = number[1:]
	}
	return number, s[i:]
}

func digit(c byte) bool { return c >= '0' && c <= '9' }
