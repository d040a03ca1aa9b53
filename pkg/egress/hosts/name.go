package hosts

import (
	"slices"
	"strings"
)

// The bounds of RFC 1035, a name without its last dot.
const (
	maxName  = 253
	maxLabel = 63
)

// Canonical is the one spelling of a name that was asked for: lower case, no
// dot at the end. It is not ok where no host can have that name: what is not
// letters, digits, hyphens and underscores could mean something else to another
// reader (a NUL ends C strings), and what resolvers take for an address in an
// odd form (0x7f.1) is an address that nobody judged.
func Canonical(raw string) (name string, ok bool) {
	if len(raw) > maxName+1 {
		return "", false
	}
	name = strings.TrimSuffix(raw, ".")
	if badName(name) != "" {
		return "", false
	}
	return lower(name), true
}

func canonical(name string) bool {
	c, ok := Canonical(name)
	return ok && c == name
}

// lower is for ASCII alone: strings.ToLower makes a K of the Kelvin sign.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// badName says what is wrong with a name, which has no dot at its end.
func badName(name string) string {
	if len(name) > maxName {
		return "is longer than the 253 bytes of a name"
	}
	label := ""
	for rest, more := name, true; more; {
		label, rest, more = strings.Cut(rest, ".")
		if why := badLabel(label); why != "" {
			return why
		}
	}
	if numeric(label) {
		return "is neither a name nor an address: a number stands at its end"
	}
	return ""
}

func badLabel(label string) string {
	switch {
	case label == "":
		return "has an empty part"
	case len(label) > maxLabel:
		return "has a part of more than 63 bytes"
	case label[0] == '-' || label[len(label)-1] == '-':
		return "has a hyphen at an end of a part"
	}
	for i := range len(label) {
		c := label[i]
		switch {
		case c >= 0x80:
			return notASCII
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
		default:
			return "has a character that no host name has"
		}
	}
	return ""
}

const notASCII = "is not in ASCII"

// numeric tells whether a last label makes readers take the whole for an IPv4
// address: inet_aton takes 127.1, 2130706433, 0x7f.1 and 017700000001 (the rule
// of the URL standard, "ends in a number").
func numeric(label string) bool {
	digits := "0123456789"
	if hex, found := strings.CutPrefix(lower(label), "0x"); found {
		label, digits = hex, "0123456789abcdefABCDEF"
	}
	return strings.Trim(label, digits) == ""
}

// ownNames are words for the host itself. What they lead to differs between
// hosts, and inside they name the sandbox.
var ownNames = []string{
	"localhost", "localhost4", "localhost6", "ip6-localhost", "ip6-loopback", "loopback",
	"localhost.localdomain", "localhost4.localdomain4", "localhost6.localdomain6", "localdomain",
}

// own tells whether a canonical name is one of the host itself.
func own(name string) bool {
	return slices.Contains(ownNames, name) || strings.HasSuffix(name, ".localhost") // RFC 6761
}
