package hello

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// clientHello is what a real client sends first.
func clientHello(t testing.TB, cfg *tls.Config) []byte {
	t.Helper()
	conn := &script{}
	if err := tls.Client(conn, cfg).Handshake(); err == nil {
		t.Fatal("a handshake with nobody succeeded")
	}
	if conn.sent.Len() == 0 {
		t.Fatal("the client sent nothing")
	}
	return conn.sent.Bytes()
}

// script is a connection that has said all it will.
type script struct {
	in   bytes.Reader
	sent bytes.Buffer
}

func (s *script) Read(b []byte) (int, error)       { return s.in.Read(b) }
func (s *script) Write(b []byte) (int, error)      { return s.sent.Write(b) }
func (s *script) Close() error                     { return nil }
func (s *script) LocalAddr() net.Addr              { return nil }
func (s *script) RemoteAddr() net.Addr             { return nil }
func (s *script) SetDeadline(time.Time) error      { return nil }
func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }

// goSees is the name that crypto/tls takes from the same bytes.
func goSees(b []byte) (name string, seen bool) {
	conn := &script{}
	conn.in.Reset(b)
	_ = tls.Server(conn, &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		name, seen = h.ServerName, true
		return nil, io.ErrUnexpectedEOF
	}}).Handshake()
	return name, seen
}

// The builder of hellos that no client sends.

func block(size int, b ...byte) []byte {
	n := len(b)
	var out []byte
	for i := size - 1; i >= 0; i-- {
		out = append(out, byte(n>>(8*i)))
	}
	return append(out, b...)
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func extension(kind byte, body []byte) []byte { return join([]byte{0, kind}, block(2, body...)) }

func serverName(names ...string) []byte {
	var list []byte
	for _, n := range names {
		list = join(list, []byte{0}, block(2, []byte(n)...))
	}
	return extension(0, block(2, list...))
}

// start is a hello up to its extensions.
var start = join([]byte{3, 3}, make([]byte, 32), block(1, make([]byte, 32)...), block(2, 0x13, 1), block(1, 0))

func message(body []byte) []byte { return join([]byte{1}, block(3, body...)) }

func record(b []byte) []byte { return join([]byte{22, 3, 1}, block(2, b...)) }

// records cuts a message into records of n bytes.
func records(m []byte, n int) []byte {
	var out []byte
	for len(m) > 0 {
		k := min(n, len(m))
		out = append(out, record(m[:k])...)
		m = m[k:]
	}
	return out
}

func withExtensions(ext ...[]byte) []byte {
	return message(join(start, block(2, join(ext...)...)))
}

func TestRealClients(t *testing.T) {
	for _, c := range []struct {
		cfg  *tls.Config
		name string
		err  error
	}{
		{&tls.Config{ServerName: "api.example.org"}, "api.example.org", nil},
		{&tls.Config{ServerName: "api.example.org", MaxVersion: tls.VersionTLS12}, "api.example.org", nil},
		{&tls.Config{ServerName: "xn--bcher-kva.example", NextProtos: []string{"h2", "http/1.1"}}, "xn--bcher-kva.example", nil},
		{&tls.Config{ServerName: "192.0.2.7"}, "", ErrNoName}, // no client names an address
		{&tls.Config{InsecureSkipVerify: true}, "", ErrNoName},
	} {
		name, done, err := ServerName(clientHello(t, c.cfg))
		if name != c.name || done != (c.err == nil) || err != c.err {
			t.Errorf("%q: %q, %v, %v, want %q and %v", c.cfg.ServerName, name, done, err, c.name, c.err)
		}
	}
}

func TestFragments(t *testing.T) {
	whole := clientHello(t, &tls.Config{ServerName: "api.example.org"})
	m := whole[recordHeader:]
	for _, size := range []int{1, 2, 3, 5, 64, 100, 255, len(m) - 1, len(m)} {
		wire := records(m, size)
		name, done, err := ServerName(wire)
		if name != "api.example.org" || !done || err != nil {
			t.Errorf("records of %d: %q, %v, %v", size, name, done, err)
		}
		// Each byte but the last asks for more.
		var p Parser
		for i := range wire {
			name, done, err = p.Feed(wire[i : i+1])
			if last := i == len(wire)-1; err != nil || done != last {
				t.Fatalf("records of %d, byte %d of %d: %q, %v, %v", size, i, len(wire), name, done, err)
			}
		}
		if name != "api.example.org" {
			t.Errorf("records of %d, byte by byte: %q", size, name)
		}
	}
	// What follows in a record of its own is no matter of the hello's (early data).
	if name, done, err := ServerName(join(whole, []byte{23, 3, 3, 0, 1, 'x'})); name != "api.example.org" || !done || err != nil {
		t.Errorf("with early data: %q, %v, %v", name, done, err)
	}
}

func TestWrongHellos(t *testing.T) {
	name := serverName("a.example")
	good := withExtensions(name)
	for what, c := range map[string]struct {
		wire []byte
		err  error
	}{
		"good":                        {record(good), nil},
		"HTTP":                        {[]byte("GET / HTTP/1.1\r\n"), ErrNotTLS},
		"SSH":                         {[]byte("SSH-2.0-x\r\n"), ErrNotTLS},
		"SSLv2":                       {[]byte{0x80, 0x2e, 1, 3, 1}, ErrNotTLS},
		"first byte alone":            {[]byte{21}, ErrNotTLS},
		"version 2":                   {[]byte{22, 2, 0}, ErrNotTLS},
		"alert in the middle":         {join(record(good[:9]), []byte{21, 3, 3, 0, 2, 1, 0}), ErrMalformed},
		"version in the middle":       {join(record(good[:9]), []byte{22, 2}), ErrMalformed},
		"empty record":                {join(record(good[:9]), record(nil)), ErrMalformed},
		"record too long":             {[]byte{22, 3, 1, 0x40, 1}, ErrMalformed},
		"server hello":                {record(join([]byte{2}, good[1:])), ErrMalformed},
		"message of 16 MiB":           {record([]byte{1, 0xff, 0xff, 0xff, 3}), ErrTooLong},
		"message of 64 KiB":           {record([]byte{1, 1, 0, 0, 3}), ErrTooLong},
		"bytes after the message":     {record(join(good, []byte{0})), ErrMalformed},
		"more of the record to come":  {record(join(good, []byte{0}))[:recordHeader+len(good)], ErrMalformed},
		"two messages in a record":    {record(join(good, good)), ErrMalformed},
		"no extensions":               {record(message(start)), ErrNoName},
		"empty extensions":            {record(withExtensions()), ErrNoName},
		"other extensions":            {record(withExtensions(extension(23, nil))), ErrNoName},
		"bytes after extensions":      {record(message(join(start, block(2, name...), []byte{0}))), ErrMalformed},
		"extension cut short":         {record(message(join(start, block(2, name[:len(name)-1]...)))), ErrMalformed},
		"two extensions":              {record(withExtensions(name, serverName("b.example"))), ErrMalformed},
		"the same twice":              {record(withExtensions(name, name)), ErrMalformed},
		"two names":                   {record(withExtensions(serverName("a.example", "b.example"))), ErrMalformed},
		"empty name":                  {record(withExtensions(serverName(""))), ErrMalformed},
		"empty list":                  {record(withExtensions(extension(0, block(2)))), ErrMalformed},
		"empty extension":             {record(withExtensions(extension(0, nil))), ErrMalformed},
		"bytes after the list":        {record(withExtensions(extension(0, join(block(2, join([]byte{0}, block(2, 'a'))...), []byte{0})))), ErrMalformed},
		"another kind of name":        {record(withExtensions(extension(0, block(2, join([]byte{1}, block(2, 'a'))...)))), ErrMalformed},
		"NUL":                         {record(withExtensions(serverName("a.example\x00.b.example"))), ErrMalformed},
		"space":                       {record(withExtensions(serverName("a example"))), ErrMalformed},
		"not ASCII":                   {record(withExtensions(serverName("\u212a.example"))), ErrMalformed},
		"name of 256":                 {record(withExtensions(serverName(strings.Repeat("a", 256)))), ErrMalformed},
		"session of 33":               {record(message(join([]byte{3, 3}, make([]byte, 32), block(1, make([]byte, 33)...), block(2, 0x13, 1), block(1, 0), block(2, name...)))), ErrMalformed},
		"no suites":                   {record(message(join([]byte{3, 3}, make([]byte, 32), block(1), block(2), block(1, 0), block(2, name...)))), ErrMalformed},
		"odd suites":                  {record(message(join([]byte{3, 3}, make([]byte, 32), block(1), block(2, 1, 2, 3), block(1, 0), block(2, name...)))), ErrMalformed},
		"no compression":              {record(message(join([]byte{3, 3}, make([]byte, 32), block(1), block(2, 0x13, 1), block(1), block(2, name...)))), ErrMalformed},
		"cut off in the random":       {record(message(start[:20])), ErrMalformed},
		"name after another, wrapped": {record(withExtensions(extension(23, name), name)), nil},
	} {
		got, done, err := ServerName(c.wire)
		want := ""
		if c.err == nil {
			want = "a.example"
		}
		if got != want || done != (c.err == nil) || !errors.Is(err, c.err) {
			t.Errorf("%s: %q, %v, %v, want %q, %v", what, got, done, err, want, c.err)
		}
	}
}

// A client can make its hello long, and must not make us read for ever.
func TestBound(t *testing.T) {
	padding := extension(21, make([]byte, 60000))
	m := withExtensions(padding, serverName("a.example"))
	if name, done, err := ServerName(records(m, maxRecord)); name != "a.example" || !done || err != nil {
		t.Errorf("a hello of %d bytes: %q, %v, %v", len(m), name, done, err)
	}
	// In records of one byte each it is six times as much.
	if _, done, err := ServerName(records(m, 1)); done || err != ErrTooLong {
		t.Errorf("in records of one byte: %v, %v, want %v", done, err, ErrTooLong)
	}
	var p Parser
	wire := records(m, 1)
	if _, _, err := p.Feed(wire[:Max]); err != nil {
		t.Errorf("the first %d bytes: %v", Max, err)
	}
	if _, _, err := p.Feed(wire[Max : Max+1]); err != ErrTooLong {
		t.Errorf("one more: %v, want %v", err, ErrTooLong)
	}
}

// FuzzServerName looks for a panic, for an outcome that depends on how the bytes
// were cut, and for bytes in which a server sees another name than we do.
func FuzzServerName(f *testing.F) {
	whole := clientHello(f, &tls.Config{ServerName: "api.example.org"})
	f.Add(whole)
	f.Add(records(whole[recordHeader:], 7))
	f.Add(clientHello(f, &tls.Config{ServerName: "a.example", MaxVersion: tls.VersionTLS12}))
	f.Add(record(withExtensions(serverName("a.example"))))
	f.Add(record(withExtensions(serverName("a.example"), serverName("b.example"))))
	f.Add(record(withExtensions(serverName("a.example", "b.example"))))
	f.Add(record(message(start)))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		name, done, err := ServerName(b)
		if done != (name != "") || done && err != nil {
			t.Fatalf("%q, %v, %v", name, done, err)
		}
		var p Parser
		var name1 string
		var done1 bool
		var err1 error
		for i := 0; i < len(b) && !done1 && err1 == nil; i++ {
			name1, done1, err1 = p.Feed(b[i : i+1])
		}
		if name1 != name || done1 != done || (err1 == nil) != (err == nil) {
			t.Fatalf("byte by byte %q, %v, %v; at once %q, %v, %v", name1, done1, err1, name, done, err)
		}
		if seen, ok := goSees(b); ok && err == nil && (!done || seen != name) {
			t.Fatalf("crypto/tls sees %q, we %q, %v", seen, name, done)
		}
	})
}
