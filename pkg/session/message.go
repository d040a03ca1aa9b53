package session

import (
	"encoding/base64"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"

	"sandglass/internal/refusal"
	"sandglass/pkg/policy"
	"sandglass/pkg/result"
)

// Protocol is the version that hello tells. While it is 1, fields and types of
// replies are only added.
const Protocol = 1

// Code says what kind of error a reply is about.
type Code string

// The codes of error replies.
const (
	Malformed   Code = "malformed"    // not a request: JSON, UTF-8, fields or types are wrong
	TooLarge    Code = "too_large"    // the line is longer than hello's line_bytes
	UnknownType Code = "unknown_type" // of request
	DuplicateID Code = "duplicate_id" // a run with this id has no last reply yet
	UnknownID   Code = "unknown_id"   // cancel and more: no run has this id, or it had its last reply
	NotSent     Code = "not_sent"     // more: of pieces that are not on their way
	Busy        Code = "busy"         // too many wait, or they hold too much memory
	Refused     Code = "refused"      // as sandglass run would have: nothing was run
	Canceled    Code = "canceled"     // by a cancel, before it was started
	Closing     Code = "closing"      // the session ends: it was not started
)

// message is one line that is put together.
type message struct{ b []byte }

func newMessage(kind string) *message { return (&message{}).text(`{"type":`, kind) }

func (m *message) raw(s string) *message {
	m.b = append(m.b, s...)
	return m
}

func (m *message) text(before, s string) *message {
	m.raw(before)
	m.b = result.AppendText(m.b, s)
	return m
}

func (m *message) maybe(before, s string) *message {
	if s == "" {
		return m
	}
	return m.text(before, s)
}

func (m *message) number(before string, n int64) *message {
	m.raw(before)
	m.b = strconv.AppendInt(m.b, n, 10)
	return m
}

func (m *message) list(before string, all []string) *message {
	m.raw(before + "[")
	for i, s := range all {
		if i > 0 {
			m.raw(",")
		}
		m.text("", s)
	}
	return m.raw("]")
}

// end is the finished line.
func (m *message) end() []byte { return append(m.b, lastBytes...) }

// hello is the first line.
func (c *Config) hello() []byte {
	m := newMessage("hello").number(`,"protocol":`, Protocol).text(`,"version":`, c.Version)
	m.number(`,"limits":{"line_bytes":`, MaxLine).number(`,"held_bytes":`, MaxHeld)
	m.number(`,"running":`, c.Running).number(`,"queued":`, c.Queued)
	m.number(`,"collect_bytes":`, MaxCollected).number(`,"inline_bytes":`, policy.MaxKept).number(`,"files":`, policy.MaxFiles)
	m.number(`,"window_bytes":`, MaxWindow).number(`,"window_pieces":`, WindowPieces)
	m.list(`},"features":`, []string{"cancel", "stream", "files", "artifacts", "window"})
	m.list(`,"languages":`, c.Languages)
	if len(c.Warm) > 0 {
		m.warm(c.Warm)
	}
	return m.end()
}

// ready is the line that tells that what is kept ready is there.
func (c *Config) ready() []byte { return newMessage("ready").warm(c.Warm).end() }

// warm lists the sandboxes that are kept ready.
func (m *message) warm(all []policy.Warm) *message {
	m.raw(`,"warm":{`)
	for i, w := range all {
		if i > 0 {
			m.raw(",")
		}
		m.number(`"`+w.Kind()+`":`, w.N)
	}
	return m.raw("}")
}

// problem is an error reply; to is the type of the request, as far as it was read.
type problem struct {
	id, to string
	code   Code
	what   string
	hints  []string
	exit   int // of a refusal, as sandglass run would exit
}

func (p *problem) line() []byte {
	m := newMessage("error").maybe(`,"id":`, p.id).maybe(`,"to":`, p.to)
	m.text(`,"code":`, string(p.code)).text(`,"error":`, refusal.Bounded(p.what))
	if p.exit != 0 {
		m.number(`,"exit_code":`, int64(p.exit))
	}
	return m.list(`,"hints":`, p.hints).end()
}

// refused is the reply to a run that was refused, or to a request that is wrong.
func refused(id, to string, err error) *problem {
	if !slices.Contains(requestTypes, to) {
		to = "" // any text of any length
	}
	p := &problem{id: id, to: to, code: Malformed, what: err.Error()}
	if r, ok := err.(*refusal.Error); ok {
		p.code, p.hints, p.exit = Refused, r.Hints, r.Exit
	}
	return p
}

// resultHead goes before a result, and lastBytes in place of its newline.
func resultHead(id string) []byte {
	return newMessage("result").text(`,"id":`, id).raw(`,"result":`).b
}

// oneLine passes a result on without the newline at its end, which is its only one.
type oneLine struct{ to io.Writer }

func (w oneLine) Write(b []byte) (int, error) {
	n := len(b)
	if n > 0 && b[n-1] == '\n' {
		b = b[:n-1]
	}
	if _, err := w.to.Write(b); err != nil {
		return 0, err
	}
	return n, nil
}

func startedLine(id string) []byte { return newMessage("started").text(`,"id":`, id).end() }

// outputLine is a piece of a stream.
func outputLine(id, stream string, data []byte) []byte {
	m := newMessage("output").text(`,"id":`, id).text(`,"stream":`, stream)
	if utf8.Valid(data) {
		return m.text(`,"text":`, string(data)).end()
	}
	return m.text(`,"base64":`, base64.StdEncoding.EncodeToString(data)).end()
}
