package egress

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"sandglass/internal/testkit"
)

// authority is a CA of one test and a certificate for all its names.
type authority struct {
	file string // PEM, which every user may read
	pool *x509.CertPool
	leaf tls.Certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, SubjectKeyId: []byte{1},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(48 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, root, root, key.Public(), key)
	must(err)
	ca, err := x509.ParseCertificate(der)
	must(err)
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "good.example"},
		DNSNames: []string{"good.example", "*.good.example", "shared.example", "other.example", "filed.example",
			"a.wild.example", "b.a.wild.example", "xn--bcher-kva.example", "localhost"},
		IPAddresses: []net.IP{net.ParseIP("127.0.0.1"), net.ParseIP(good4)},
		KeyUsage:    x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, AuthorityKeyId: []byte{1},
		NotBefore: root.NotBefore, NotAfter: root.NotAfter,
	}
	cert, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), key)
	must(err)
	a := &authority{file: filepath.Join(testkit.Dir(t), "ca.pem"), pool: x509.NewCertPool(), leaf: tls.Certificate{Certificate: [][]byte{cert}, PrivateKey: key}}
	must(os.WriteFile(a.file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644))
	a.pool.AddCert(ca)
	return a
}

func (a *authority) server() *tls.Config { return &tls.Config{Certificates: []tls.Certificate{a.leaf}} }

// flags show the program the authority, by the variables that its clients read.
func (a *authority) flags() []string {
	list := []string{"-v", a.file + ":/ca.pem"}
	for _, name := range []string{"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO", "PIP_CERT", "npm_config_cafile"} {
		list = append(list, "-e", name+"=/ca.pem")
	}
	return list
}

// web are the internet's HTTP servers, one handler at many addresses.
type web struct {
	mux  *http.ServeMux
	mu   sync.Mutex
	seen []string // "METHOD HOST PATH"
}

func (w *world) serveWeb() *web {
	w.t.Helper()
	s := &web{mux: http.NewServeMux()}
	s.mux.HandleFunc("/{$}", func(out http.ResponseWriter, r *http.Request) { fmt.Fprintf(out, "hello from %s\n", r.Host) })
	s.mux.HandleFunc("/echo", func(out http.ResponseWriter, r *http.Request) { io.Copy(out, r.Body) })
	s.mux.HandleFunc("/to", func(out http.ResponseWriter, r *http.Request) {
		http.Redirect(out, r, r.URL.Query().Get("u"), http.StatusFound)
	})
	s.mux.HandleFunc("/bytes", func(out http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		out.Header().Set("Content-Length", strconv.Itoa(n))
		io.CopyN(out, zeros{}, int64(n))
	})
	handler := http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.seen = append(s.seen, r.Method+" "+r.Host+" "+r.URL.Path)
		s.mu.Unlock()
		s.mux.ServeHTTP(out, r)
	})
	quiet := http.Server{Handler: handler, ErrorLog: noLog}
	w.t.Cleanup(func() { quiet.Close() })
	for _, ip := range []string{good4, good6, other4, other6, private4, metadata, ula6, nat64} {
		go quiet.Serve(tls.NewListener(w.listen(net.JoinHostPort(ip, "443")), w.ca.server()))
		go quiet.Serve(w.listen(net.JoinHostPort(ip, "80")))
	}
	return s
}

// requests are what came, sorted, and forgets them.
func (s *web) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.seen
	s.seen = nil
	slices.Sort(list)
	return list
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// peer is a server that is no HTTP's: each connection is given to a function,
// and what became of each is told.
type peer struct {
	accepted chan net.Conn
	ended    chan error // of the function
}

// serve accepts at an address of a place.
func (w *world) serve(t *testing.T, p *place, address string, handle func(net.Conn) error) *peer {
	t.Helper()
	return serveOn(listenAt(t, p, address), handle)
}

func serveOn(l net.Listener, handle func(net.Conn) error) *peer {
	s := &peer{accepted: make(chan net.Conn, 1<<14), ended: make(chan error, 1<<14)}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.accepted <- c
			go func() {
				defer c.Close()
				s.ended <- handle(c)
			}()
		}
	}()
	return s
}

// next is how the next connection ended.
func (s *peer) next(t *testing.T) error {
	t.Helper()
	select {
	case err := <-s.ended:
		return err
	case <-time.After(time.Minute):
		t.Fatal("the server never saw the end of the connection")
		return nil
	}
}

// echo sends back what comes, until the end of file.
func echo(c net.Conn) error {
	_, err := io.Copy(c, c)
	return err
}

// drain reads to the end.
func drain(c net.Conn) error {
	_, err := io.Copy(io.Discard, c)
	return err
}

// serveHello answers every request.
func serveHello(l net.Listener) {
	s := http.Server{ErrorLog: noLog, Handler: http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) { fmt.Fprintf(out, "hello from %s\n", r.Host) })}
	s.Serve(l)
}
