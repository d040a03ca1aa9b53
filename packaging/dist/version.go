package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// release is what is made.
type release struct {
	version  string    // 1.2.3, or 0.0.0-git20260102030405
	stamp    string    // what the binary says: of a development version the commit too
	when     time.Time // of the commit: every date in every file
	arches   []string
	packages []string
	nfpm     string // the program
}

var released = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-(alpha|beta|rc)[0-9]*)?$`)

// decide finds the version and the date. A release has a tag or is named by the
// caller; its tree has nothing that is not committed, and CHANGELOG.md a section
// with its name. Everything else is a development version, of the section
// Unreleased.
func decide(root, named string) (*release, error) {
	git := func(args ...string) string {
		text, err := gitIn(root, args...).Output()
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(text))
	}
	r := &release{}
	epoch := os.Getenv("SOURCE_DATE_EPOCH")
	if epoch == "" {
		epoch = git("show", "-s", "--format=%ct", "HEAD")
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("SOURCE_DATE_EPOCH is not a time in seconds, or there is no commit: %q", epoch)
	}
	r.when = time.Unix(seconds, 0).UTC()
	commit, dirty := git("rev-parse", "--short=12", "HEAD"), git("status", "--porcelain") != ""
	if named == "" {
		named = git("describe", "--tags", "--exact-match", "--match", "v[0-9]*")
		if dirty {
			named = ""
		}
	}
	if named = strings.TrimPrefix(named, "v"); named != "" {
		r.version, r.stamp = named, named
		switch {
		case !released.MatchString(named):
			return nil, fmt.Errorf("%q is no version such as 1.2.3 or 1.2.3-rc1", named)
		case dirty:
			return nil, errors.New("a release of a tree with changes that are not committed: nobody could make it again\nhint: git stash")
		}
		return r, changes(root, named)
	}
	r.version = "0.0.0-git" + r.when.Format("20060102150405")
	r.stamp = r.version + "+" + commit
	if dirty {
		r.stamp += ".dirty"
	}
	return r, changes(root, "Unreleased")
}

// gitIn is a command of git's. Whose the checkout is makes no difference: this
// program is a part of it.
func gitIn(root string, args ...string) *exec.Cmd {
	return exec.Command("git", append([]string{"-C", root, "-c", "safe.directory=*"}, args...)...)
}

// changes fails when CHANGELOG.md says nothing about a version.
func changes(root, version string) error {
	text, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	in, lines := false, 0
	for line := range strings.Lines(string(text)) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			name, _, _ := strings.Cut(strings.TrimSpace(title), " ")
			in = name == version
		} else if in && strings.TrimSpace(line) != "" {
			lines++
		}
	}
	if lines == 0 {
		return fmt.Errorf("CHANGELOG.md has no section ## %s, or nothing in it", version)
	}
	return nil
}
