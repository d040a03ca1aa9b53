package result

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// JSON is the result as one line of JSON with a newline at its end, as
// docs/result.schema.json describes it. Lists and maps that are nil become
// empty ones, and a zero Schema the present one.
func (r *Result) JSON() ([]byte, error) {
	out := *r
	if out.Schema == 0 {
		out.Schema = Schema
	}
	if out.Limits == nil {
		out.Limits = map[string]Limit{}
	}
	out.Layers = present(out.Layers)
	out.Denied = present(out.Denied)
	out.Artifacts = present(out.Artifacts)
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(&out); err != nil {
		return nil, fmt.Errorf("encode the result: %v", err)
	}
	return escapeSteering(b.Bytes()), nil
}

func present[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// escapeSteering writes as \uXXXX what JSON allows raw but a terminal obeys:
// DEL, the C1 controls (U+009B starts an escape sequence) and the marks that
// turn the direction of text. The program chooses these bytes, and --json is
// often read on a terminal. In JSON they can only stand inside strings.
func escapeSteering(b []byte) []byte {
	if !bytes.ContainsFunc(b, steers) {
		return b
	}
	out := make([]byte, 0, len(b)+64)
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if steers(r) {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = append(out, b[:n]...)
		}
		b = b[n:]
	}
	return out
}

func steers(r rune) bool {
	return r >= 0x7f && r <= 0x9f ||
		r == 0x061c || r == 0x200e || r == 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// SetCaptured fills in what was kept of the stream: as text when it is UTF-8,
// else as base64, because JSON would replace the other bytes without a word.
func (s *Stream) SetCaptured(b []byte) {
	s.Kept = int64(len(b))
	s.Text, s.Base64 = "", ""
	if utf8.Valid(b) {
		s.Text = string(b)
	} else {
		s.Base64 = base64.StdEncoding.EncodeToString(b)
	}
}

// Captured is what SetCaptured was given; an error means that Base64 is not.
func (s *Stream) Captured() ([]byte, error) {
	if s.Base64 != "" {
		return base64.StdEncoding.DecodeString(s.Base64)
	}
	return []byte(s.Text), nil
}
