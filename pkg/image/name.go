package image

import (
	"strings"

	"sandglass/internal/refusal"
)

// DigestPrefix begins digests.
const DigestPrefix = "sha256:"

// IsDigest says that a word is a whole digest.
func IsDigest(s string) bool {
	hex, ok := strings.CutPrefix(s, DigestPrefix)
	return ok && len(hex) == 64 && isHex(hex)
}

func isHex(s string) bool {
	for _, c := range []byte(s) {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return false
		}
	}
	return s != ""
}

// Normal is the name as it is kept: the tag latest is no tag, as docker has it.
func Normal(name string) string { return strings.TrimSuffix(name, ":latest") }

// maxName bounds a name: it is a file name too.
const maxName = 128

// CheckName says what is wrong with a name for an image. A slash is for
// directories, and what could be taken for a flag, for the host's view or for a
// digest is none.
func CheckName(name string) error {
	base, tag, tagged := strings.Cut(name, ":")
	good := nameWord(base) && (!tagged || nameWord(tag)) && len(name) <= maxName
	switch {
	case strings.Contains(name, "/"):
		return refusal.Newf("image name %s has a slash, which is for directories", refusal.Word(name)).
			Hint("--name %s", refusal.Shell(name[strings.LastIndexByte(name, '/')+1:]))
	case !good:
		return refusal.Newf("%s is not a name for an image: letters, digits and ._-, a letter or digit first, and a tag after a colon", refusal.Word(name)).
			Hint("--name my-image:1")
	case base == "host" || base == "sha256":
		return refusal.Newf("image name %s means something else", refusal.Word(name)).Hint("--name my-image")
	}
	return nil
}

func nameWord(s string) bool { return refusal.Plain(s, "._-", "._-", maxName) }
