package result

import (
	"bufio"
	"bytes"
	"io"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"
)

// JSON is what WriteTo writes.
func (r *Result) JSON() ([]byte, error) {
	var b bytes.Buffer
	_, err := r.WriteTo(&b)
	return b.Bytes(), err
}

// WriteTo writes the result as one line of JSON with a newline at its end, as
// docs/result.schema.json describes it. Lists and maps that are nil become
// empty ones, and a zero Schema the present one.
//
// It is written as it is made: a program that prints control characters, each
// of which takes six bytes here, must not have that much memory of ours.
func (r *Result) WriteTo(w io.Writer) (int64, error) {
	c := &counter{to: w}
	most := int64(64 << 10) // a short result is done before so much memory is cleared
	e := &encoder{w: bufio.NewWriterSize(c, int(min(most, 4<<10+r.Stdout.Kept+r.Stderr.Kept)))}
	e.result(r)
	err := e.w.Flush()
	return c.n, err
}

type counter struct {
	to io.Writer
	n  int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	c.n += int64(n)
	return n, err
}

// encoder writes exactly what encoding/json would without HTML's escapes, but
// for those of steers. The writer keeps the first error.
type encoder struct {
	w   *bufio.Writer
	buf []byte
}

func (e *encoder) raw(s string) { e.w.WriteString(s) }

func (e *encoder) number(before string, n int64) {
	e.raw(before)
	e.w.Write(strconv.AppendInt(e.w.AvailableBuffer(), n, 10))
}

func (e *encoder) flag(before string, b bool) {
	e.raw(before)
	e.raw(strconv.FormatBool(b))
}

func (e *encoder) text(before, s string) {
	e.raw(before)
	e.raw(`"`)
	for len(s) > 0 {
		n := min(len(s), minChunk)
		for back := 0; n < len(s) && back < utf8.UTFMax-1 && !utf8.RuneStart(s[n]); back++ {
			n--
		}
		e.buf = append(e.buf[:0], s[:n]...)
		e.escape(e.buf)
		s = s[n:]
	}
	e.raw(`"`)
}

// maybe leaves out what is empty.
func (e *encoder) maybe(before, s string) {
	if s != "" {
		e.text(before, s)
	}
}

func list[T any](e *encoder, before string, all []T, each func(*T)) {
	e.raw(before)
	e.raw("[")
	for i := range all {
		if i > 0 {
			e.raw(",")
		}
		each(&all[i])
	}
	e.raw("]")
}

func table[T any](e *encoder, before string, all map[string]T, each func(T)) {
	e.raw(before)
	e.raw("{")
	for i, key := range slices.Sorted(maps.Keys(all)) {
		if i > 0 {
			e.raw(",")
		}
		e.text("", key)
		e.raw(":")
		each(all[key])
	}
	e.raw("}")
}

func (e *encoder) result(r *Result) {
	schema := r.Schema
	if schema == 0 {
		schema = Schema
	}
	value := func(s string) { e.text("", s) }
	e.number(`{"schema":`, int64(schema))
	e.text(`,"outcome":`, string(r.Outcome))
	e.number(`,"exit_code":`, int64(r.ExitCode))
	e.some(`,"signal":`, int64(r.Signal))
	e.maybe(`,"error":`, r.Error)
	if len(r.Hints) > 0 {
		list(e, `,"hints":`, r.Hints, func(s *string) { value(*s) })
	}
	e.flag(`,"warm":`, r.Warm)
	e.number(`,"wall_ms":`, r.WallMS)
	e.number(`,"setup_ms":`, r.SetupMS)
	e.number(`,"cpu_ms":`, r.CPUMS)
	e.number(`,"memory_peak_bytes":`, r.MemoryPeakBytes)
	e.number(`,"pids_peak":`, r.PidsPeak)
	e.number(`,"oom_kills":`, r.OOMKills)
	e.stream(`,"stdout":`, &r.Stdout)
	e.stream(`,"stderr":`, &r.Stderr)
	if h := r.HostID; h != nil {
		e.number(`,"host_id":{"uid":`, int64(h.UID))
		e.number(`,"gid":`, int64(h.GID))
		e.flag(`,"own":`, h.Own)
		e.maybe(`,"why":`, h.Why)
		e.raw("}")
	}
	table(e, `,"limits":`, r.Limits, e.limit)
	list(e, `,"layers":`, r.Layers, func(l *Layer) {
		e.text(`{"name":`, l.Name)
		e.flag(`,"requested":`, l.Requested)
		e.text(`,"state":`, string(l.State))
		if len(l.ReadBack) > 0 {
			table(e, `,"read_back":`, l.ReadBack, value)
		}
		e.raw("}")
	})
	e.text(`,"policy_sha256":`, r.PolicySHA256)
	list(e, `,"denied":`, r.Denied, func(d *Denial) {
		e.text(`{"kind":`, d.Kind)
		e.text(`,"what":`, d.What)
		e.maybe(`,"args":`, d.Args)
		e.maybe(`,"errno":`, d.Errno)
		e.maybe(`,"program":`, d.Program)
		e.number(`,"count":`, d.Count)
		e.raw("}")
	})
	e.some(`,"denied_more":`, r.DeniedMore)
	list(e, `,"artifacts":`, r.Artifacts, e.artifact)
	if r.Network != nil {
		e.network(`,"network":`, r.Network)
	}
	if len(r.Unmapped) > 0 {
		list(e, `,"unmapped":`, r.Unmapped, func(s *string) { e.text("", *s) })
	}
	e.raw("}\n")
}

func (e *encoder) limit(l Limit) {
	e.number(`{"value":`, l.Value)
	e.text(`,"unit":`, string(l.Unit))
	e.text(`,"enforced_by":`, string(l.EnforcedBy))
	e.maybe(`,"weaker":`, l.Weaker)
	e.raw("}")
}

func (e *encoder) stream(before string, s *Stream) {
	e.raw(before)
	e.number(`{"bytes":`, s.Bytes)
	e.number(`,"kept":`, s.Kept)
	e.flag(`,"truncated":`, s.Truncated)
	e.maybe(`,"text":`, s.Text)
	e.maybe(`,"base64":`, s.Base64)
	switch c := s.capture; {
	case c == nil || c.size == 0:
	case c.text():
		e.raw(`,"text":"`)
		for p := range c.pieces() {
			e.escape(p)
		}
		e.raw(`"`)
	default:
		e.raw(`,"base64":"`)
		c.base64(e.w)
		e.raw(`"`)
	}
	e.raw("}")
}

func (e *encoder) artifact(a *Artifact) {
	e.text(`{"path":`, a.Path)
	e.maybe(`,"path_base64":`, a.PathBase64)
	e.text(`,"type":`, a.Type)
	e.number(`,"size":`, a.Size)
	e.text(`,"mode":`, a.Mode)
	e.maybe(`,"sha256":`, a.SHA256)
	e.maybe(`,"target":`, a.Target)
	e.maybe(`,"skipped":`, a.Skipped)
	e.maybe(`,"text":`, a.Text)
	e.maybe(`,"base64":`, a.Base64)
	e.raw("}")
}

func (e *encoder) network(before string, n *Network) {
	e.raw(before)
	list(e, `{"connections":`, n.Connections, e.connection)
	e.some(`,"more_connections":`, n.MoreConnections)
	list(e, `,"refused":`, n.Refused, func(r *RefusedHost) {
		e.text(`{"host":`, r.Host)
		e.some(`,"port":`, int64(r.Port))
		e.text(`,"reason":`, r.Reason)
		e.number(`,"count":`, r.Count)
		e.raw("}")
	})
	e.some(`,"more_refused":`, n.MoreRefused)
	e.number(`,"bytes_up":`, n.BytesUp)
	e.number(`,"bytes_down":`, n.BytesDown)
	e.raw("}")
}

func (e *encoder) connection(c *Connection) {
	e.text(`{"host":`, c.Host)
	e.number(`,"port":`, int64(c.Port))
	e.maybe(`,"address":`, c.Address)
	e.number(`,"bytes_up":`, c.BytesUp)
	e.number(`,"bytes_down":`, c.BytesDown)
	e.number(`,"duration_ms":`, c.DurationMS)
	e.text(`,"verdict":`, string(c.Verdict))
	e.maybe(`,"error":`, c.Error)
	e.raw("}")
}

// some leaves out what is zero.
func (e *encoder) some(before string, n int64) {
	if n != 0 {
		e.number(before, n)
	}
}

// escape writes the inside of a JSON string.
func (e *encoder) escape(b []byte) {
	start := 0
	for i := 0; i < len(b); {
		r, n := rune(b[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRune(b[i:])
		}
		if plain(r, n) {
			i += n
			continue
		}
		e.w.Write(b[start:i])
		e.special(r)
		i += n
		start = i
	}
	e.w.Write(b[start:])
}

// plain is what stands for itself in a string. A byte that is not UTF-8 does not.
func plain(r rune, n int) bool {
	return r >= ' ' && r != '"' && r != '\\' && !steers(r) && r != 0x2028 && r != 0x2029 && (r != utf8.RuneError || n > 1)
}

func (e *encoder) special(r rune) {
	const short, hex = "\b\f\n\r\t\"\\", "0123456789abcdef"
	for i := range len(short) {
		if r == rune(short[i]) {
			e.w.Write(append(e.w.AvailableBuffer(), '\\', `bfnrt"\`[i]))
			return
		}
	}
	e.w.Write(append(e.w.AvailableBuffer(), '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15]))
}

// steers is what JSON allows raw but a terminal obeys: DEL, the C1 controls
// (U+009B starts an escape sequence) and the marks that turn the direction of
// text. The program chooses these bytes, and --json is often read on a terminal.
func steers(r rune) bool {
	return r >= 0x7f && r <= 0x9f ||
		r == 0x061c || r == 0x200e || r == 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// AppendText appends s as a JSON string, with a result's escapes.
func AppendText(b []byte, s string) []byte {
	buf := bytes.NewBuffer(b)
	e := &encoder{w: bufio.NewWriter(buf)}
	e.text("", s)
	e.w.Flush()
	return buf.Bytes()
}
