package relay

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"io"
	"math/big"
	"net"
	"net/netip"
	"testing"
	"time"

	"sandglass/pkg/result"
)

// tlsServer answers "x" with "y", with a certificate of its own.
func tlsServer(t testing.TB) (*server, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{host, "other.example"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	cfg := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	s := listen(t).serve(func(c *net.TCPConn) {
		tc := tls.Server(c, cfg)
		if _, err := io.ReadFull(tc, make([]byte, 1)); err == nil {
			tc.Write([]byte("y"))
		}
		tc.Close()
	})
	return s, pool
}

// fragments sends what its first write has in records of size bytes, each byte
// of the wire by itself: a hello that comes as slowly as it can.
type fragments struct {
	net.Conn
	size int
	done bool
}

func (f *fragments) Write(b []byte) (int, error) {
	if f.done {
		return f.Conn.Write(b)
	}
	f.done = true
	for m := b[5:]; len(m) > 0; {
		n := min(f.size, len(m))
		r := append(binary.BigEndian.AppendUint16([]byte{22, 3, 1}, uint16(n)), m[:n]...)
		for i := range r {
			if _, err := f.Conn.Write(r[i : i+1]); err != nil {
				return 0, err
			}
		}
		m = m[n:]
	}
	return len(b), nil
}

func TestServerName(t *testing.T) {
	s, pool := tlsServer(t)
	for _, c := range []struct {
		what string
		size int // of records, 0: one
		cfg  *tls.Config
		why  string // "": let through
	}{
		{"the name of the list", 0, &tls.Config{ServerName: host}, ""},
		{"in upper case", 0, &tls.Config{ServerName: "API.Example.ORG"}, ""},
		{"TLS 1.2", 0, &tls.Config{ServerName: host, MaxVersion: tls.VersionTLS12}, ""},
		{"in fragments", 5, &tls.Config{ServerName: host}, ""},
		{"another name", 0, &tls.Config{ServerName: "other.example"}, "TLS hello for another server name"},
		{"another name in fragments", 7, &tls.Config{ServerName: "other.example"}, "TLS hello for another server name"},
		{"a name below", 0, &tls.Config{ServerName: "a." + host}, "TLS hello for another server name"},
		{"no name", 0, &tls.Config{InsecureSkipVerify: true}, "no server name"},
	} {
		t.Run(c.what, func(t *testing.T) {
			w := build(t, setup{server: s, cfg: Config{SNI: SNIAll}})
			raw := net.Conn(w.dial())
			if c.size > 0 {
				raw = &fragments{Conn: raw, size: c.size}
			}
			c.cfg.RootCAs = pool
			client := tls.Client(raw, c.cfg)
			client.Write([]byte("x"))
			b, err := io.ReadAll(client)
			if c.why == "" && (string(b) != "y" || err != nil) || c.why != "" && err == nil {
				t.Errorf("%q, %v", b, err)
			}
			raw.Close()
			got := w.over(1)[0]
			if c.why != "" {
				same(t, got, result.Connection{Host: host, Port: s.port, Verdict: result.ServerName, Error: c.why})
			} else if got.Verdict != result.Closed && got.Verdict != result.Reset || got.Address != "127.0.0.1" || got.BytesUp < 100 || got.BytesDown < 100 {
				t.Errorf("%+v", got)
			}
		})
	}
}

// What is no hello is cut before anything is dialled, whatever comes after it.
func TestNoHello(t *testing.T) {
	for _, c := range []struct {
		what, sent string
		close      bool
		verdict    result.Verdict
		why        string
	}{
		{"HTTP", "GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n", false, result.ServerName, "not TLS"},
		{"another record", "\x17\x03\x03", false, result.ServerName, "not TLS"},
		{"malformed", "\x16\x03\x01\x00\x00", false, result.ServerName, "malformed TLS hello"},
		{"too long", "\x16\x03\x01\x00\x10\x01\xff\xff\xff", false, result.ServerName, "TLS hello too long"},
		{"cut short", "\x16\x03\x01\x00\x10\x01\x00", true, result.ServerName, "TLS hello cut short"},
		{"a probe", "", true, result.Closed, ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := listen(t)
			w := build(t, setup{server: s, cfg: Config{SNI: SNIAll}})
			client := w.dial()
			client.Write([]byte(c.sent))
			if c.close {
				client.CloseWrite()
			}
			io.Copy(io.Discard, client)
			same(t, w.over(1)[0], result.Connection{Host: host, Port: s.port, Verdict: c.verdict, Error: c.why})
			w.relay.Close()
			s.untouched(t)
		})
	}
}

// The program resets, or is silent for too long.
func TestHelloThatDoesNotCome(t *testing.T) {
	s := listen(t)
	w := build(t, setup{server: s, cfg: Config{SNI: SNIAll}})
	c := w.dial()
	c.Write([]byte{22})
	reset(c)
	same(t, w.over(1)[0], result.Connection{Host: host, Port: s.port, Verdict: result.Reset})

	in, out := net.Pipe()
	defer out.Close()
	in.SetReadDeadline(past)
	_, late := in.Read(make([]byte, 1))
	accepted, client := pair(t)
	k := &conn{s: w.relay, inside: accepted, name: host, cancel: func() {}}
	k.noHello(3, late)
	if k.verdict != result.ServerName || k.reason != "no TLS hello within 10s" {
		t.Errorf("%q, %q", k.verdict, k.reason)
	}
	isReset(t, client)
	s.untouched(t)
}

// pair are the two ends of a connection.
func pair(t *testing.T) (accepted, dialled *net.TCPConn) {
	t.Helper()
	l := listen(t)
	d, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	a, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a.(*net.TCPConn), d.(*net.TCPConn)
}

func TestWhereTheNameIsChecked(t *testing.T) {
	for _, c := range []struct {
		sni             SNI
		at443, at8443   bool
		address, at8080 bool
	}{
		{SNI443, true, false, false, false}, {SNIOff, false, false, false, false}, {SNIAll, true, true, false, true},
	} {
		for port, want := range map[uint16]bool{443: c.at443, 8443: c.at8443, 8080: c.at8080} {
			k := &conn{s: &Server{cfg: Config{SNI: c.sni}}, name: host, dest: netip.AddrPortFrom(loopback, port)}
			if got := k.checked(); got != want {
				t.Errorf("%d, port %d of a name: %v, want %v", c.sni, port, got, want)
			}
			if k.name = ""; k.checked() != c.address {
				t.Errorf("%d, port %d of an address: checked", c.sni, port)
			}
		}
	}
}

// Of what the run may send the hello is a part.
func TestHelloCounts(t *testing.T) {
	s, pool := tlsServer(t)
	cfg := limited(func(l *Limits) { l.Up = 50 })
	cfg.SNI = SNIAll
	w := build(t, setup{server: s, cfg: cfg})
	client := tls.Client(w.dial(), &tls.Config{ServerName: host, RootCAs: pool})
	if err := client.HandshakeContext(context.Background()); err == nil {
		t.Error("a handshake in 50 bytes")
	}
	same(t, w.over(1)[0], result.Connection{Host: host, Port: s.port, Address: "127.0.0.1", BytesUp: 50, Verdict: result.ByteLimit})
}
