package session

import (
	"encoding/base64"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// decoder reads one JSON text, and is stricter than encoding/json: that takes a
// name twice, in any case, and puts U+FFFD for what is no character, so that two
// readers of one request could read two. It reads into what the caller wants and
// nothing else; what the caller does not know is an error at once, so that neither
// depth nor memory is the sender's choice.
type decoder struct {
	text   string
	at     int
	values int
}

// maxValues bounds the members and elements of one request, which each cost more
// memory than the two bytes that they take in a line.
const maxValues = 100_000

// syntaxError says what is wrong with a request's form.
type syntaxError struct{ what string }

func (e *syntaxError) Error() string { return e.what }

func (d *decoder) fail(what string) error {
	return &syntaxError{what + ", at byte " + strconv.Itoa(d.at)}
}

func (d *decoder) space() {
	for d.at < len(d.text) && strings.IndexByte(" \t\r\n", d.text[d.at]) >= 0 {
		d.at++
	}
}

// next is the first byte of what comes, 0 at the end.
func (d *decoder) next() byte {
	d.space()
	if d.at == len(d.text) {
		return 0
	}
	return d.text[d.at]
}

// take reads one byte of punctuation.
func (d *decoder) take(c byte) bool {
	if d.next() != c {
		return false
	}
	d.at++
	return true
}

// end is the end of the text.
func (d *decoder) end() error {
	if d.next() != 0 || d.at < len(d.text) {
		return d.fail("more than one object")
	}
	return nil
}

// count counts one value against the bound.
func (d *decoder) count() error {
	if d.values++; d.values > maxValues {
		return d.fail("more than " + strconv.Itoa(maxValues) + " values")
	}
	return nil
}

// object calls member for the name of each member; it reads the value.
func (d *decoder) object(what string, member func(name string) error) error {
	if !d.take('{') {
		return d.fail(what + " is not an object")
	}
	if d.take('}') {
		return nil
	}
	seen := map[string]bool{}
	for {
		name, err := d.str("a name")
		if err != nil {
			return err
		}
		switch {
		case seen[name]:
			return d.fail("the field " + quote(name) + " is there twice")
		case !d.take(':'):
			return d.fail("no colon after the field " + quote(name))
		}
		seen[name] = true
		if err := d.count(); err != nil {
			return err
		}
		if err := member(name); err != nil {
			return err
		}
		if more, err := d.more(what, '}'); !more {
			return err
		}
	}
}

// more says whether another member or element follows.
func (d *decoder) more(what string, end byte) (bool, error) {
	switch {
	case d.take(','):
		return true, nil
	case d.take(end):
		return false, nil
	}
	return false, d.fail(what + " does not go on with a comma or end")
}

// array calls each for each element; it reads the value.
func (d *decoder) array(what string, each func() error) error {
	if !d.take('[') {
		return d.fail(what + " is not an array")
	}
	if d.take(']') {
		return nil
	}
	for {
		if err := d.count(); err != nil {
			return err
		}
		if err := each(); err != nil {
			return err
		}
		if more, err := d.more(what, ']'); !more {
			return err
		}
	}
}

// str reads a string.
func (d *decoder) str(what string) (string, error) {
	if !d.take('"') {
		return "", d.fail(what + " is not a string")
	}
	start := d.at
	var b strings.Builder
	for d.at < len(d.text) {
		switch c := d.text[d.at]; {
		case c == '"':
			s := d.text[start:d.at]
			d.at++
			if b.Len() == 0 {
				return strings.Clone(s), nil // the line does not stay in memory for it
			}
			b.WriteString(s)
			return b.String(), nil
		case c == '\\':
			b.WriteString(d.text[start:d.at])
			r, err := d.escape()
			if err != nil {
				return "", err
			}
			b.WriteRune(r)
			start = d.at
		case c < ' ':
			return "", d.fail("a control character in a string")
		default:
			d.at++
		}
	}
	return "", d.fail("a string does not end")
}

// escape reads what begins with a backslash.
func (d *decoder) escape() (rune, error) {
	if d.at+1 == len(d.text) {
		return 0, d.fail("a string does not end")
	}
	c := d.text[d.at+1]
	const from, to = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	if i := strings.IndexByte(from, c); i >= 0 {
		d.at += 2
		return rune(to[i]), nil
	}
	r, ok := d.hex()
	if !ok {
		return 0, d.fail("no such escape in a string")
	}
	if !utf16.IsSurrogate(r) {
		return r, nil
	}
	low, _ := d.hex()
	if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
		return 0, d.fail("half of a surrogate pair in a string")
	}
	return r, nil
}

// hex reads \uXXXX.
func (d *decoder) hex() (rune, bool) {
	rest := d.text[d.at:]
	if len(rest) < 6 || rest[:2] != `\u` {
		return 0, false
	}
	var r rune
	for _, c := range []byte(rest[2:6]) {
		i := strings.IndexByte("0123456789abcdef", c|0x20)
		if i < 0 || c < '0' {
			return 0, false
		}
		r = r<<4 | rune(i)
	}
	d.at += 6
	return r, true
}

// flag reads true or false.
func (d *decoder) flag(what string) (bool, error) {
	switch s := d.word(); s {
	case "true", "false":
		return s == "true", nil
	}
	return false, d.fail(what + " is neither true nor false")
}

// scalar reads a string, a number, true or false, as it stands.
func (d *decoder) scalar(what string) (string, error) {
	if d.next() == '"' {
		return d.str(what)
	}
	s := d.word()
	if s == "true" || s == "false" || isNumber(s) {
		return strings.Clone(s), nil
	}
	return "", d.fail(what + " is neither a string, a number, true nor false")
}

// whole reads a whole number, written as one.
func (d *decoder) whole(what string, least, most int64) (int64, error) {
	s := d.word()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || !isNumber(s) || n < least || n > most {
		return 0, d.fail(what + " is no whole number from " + strconv.FormatInt(least, 10) + " to " + strconv.FormatInt(most, 10))
	}
	return n, nil
}

// word reads what can be a number or a literal.
func (d *decoder) word() string {
	d.space()
	start := d.at
	for d.at < len(d.text) && strings.IndexByte("+-.0123456789abcdefghijklmnopqrstuvwxyzE", d.text[d.at]) >= 0 {
		d.at++
	}
	return d.text[start:d.at]
}

// isNumber is JSON's grammar: no leading zero or plus, no hexadecimal.
func isNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	digits := func() bool {
		n := len(s)
		s = strings.TrimLeft(s, "0123456789")
		return len(s) < n
	}
	if after, zero := strings.CutPrefix(s, "0"); zero {
		s = after
	} else if !digits() {
		return false
	}
	if after, ok := strings.CutPrefix(s, "."); ok {
		if s = after; !digits() {
			return false
		}
	}
	if s != "" && (s[0] == 'e' || s[0] == 'E') {
		s = s[1:]
		if s != "" && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		if !digits() {
			return false
		}
	}
	return s == ""
}

// bytes reads a string of standard base64.
func (d *decoder) bytes(what string) ([]byte, error) {
	s, err := d.str(what)
	if err != nil {
		return nil, err
	}
	b, err := base64.StdEncoding.Strict().DecodeString(s)
	if err != nil || strings.ContainsAny(s, "\r\n") {
		return nil, d.fail(what + " is not standard base64")
	}
	return b, nil
}

// strings reads an array of strings.
func (d *decoder) strings(what string) (list []string, err error) {
	err = d.array(what, func() error {
		s, err := d.str("an element of " + what)
		list = append(list, s)
		return err
	})
	return list, err
}

// quote shows a name of the sender's in an error.
func quote(s string) string {
	const most = 64
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return strconv.Quote(s)
}
