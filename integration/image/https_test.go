package image

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
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sandglass/internal/testkit"
	"sandglass/pkg/image/jks"
)

// An authority is a file of one certificate, and a server that has another by it.
type authority struct {
	pem    []byte
	server *httptest.Server
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	made := func(what *x509.Certificate, by *x509.Certificate, key, signer *ecdsa.PrivateKey) []byte {
		what.SerialNumber, what.NotBefore, what.NotAfter = big.NewInt(1), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, what, by, &key.PublicKey, signer)
		must(t, err)
		return der
	}
	var keys [2]*ecdsa.PrivateKey
	for i := range keys {
		var err error
		keys[i], err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		must(t, err)
	}
	ca := &x509.Certificate{Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	top := made(ca, ca, keys[0], keys[0])
	leaf := made(&x509.Certificate{Subject: pkix.Name{CommonName: "127.0.0.1"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}},
		ca, keys[1], keys[0])
	a := &authority{pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: top})}
	a.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "secure") }))
	a.server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{leaf}, PrivateKey: keys[1]}}}
	a.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	a.server.StartTLS()
	t.Cleanup(a.server.Close)
	return a
}

// https expects that a program of an image reaches a listed server whose authority is in
// the image's list of certificates, and none whose is not. A list of the caller's own is
// mounted over the image's; store is Java's.
func (h *home) https(name, flags string, argv []string, store bool) {
	h.t.Helper()
	a := newAuthority(h.t)
	list, at := a.pem, "/etc/ssl/certs/ca-certificates.crt"
	if store {
		var s jks.Store
		must(h.t, s.Add("test", a.pem, 1e9))
		list, at = s.Bytes(), "/etc/ssl/certs/java/cacerts"
	}
	host := strings.TrimPrefix(a.server.URL, "https://")
	run := func(more ...string) testkit.Output {
		args := append(strings.Fields(flags), "--allow-host", host, "-e", "URL="+a.server.URL)
		return h.run(append(append(append(args, more...), name), argv...)...)
	}
	if o := run("-v", h.file(list)+":"+at+":ro"); o.Exit != 0 || o.Stdout != "secure\n" {
		h.t.Errorf("https: exit %d, %q (%s)", o.Exit, o.Stdout, o.Stderr)
	}
	if o := run(); o.Exit == 0 || !strings.Contains(strings.ToLower(o.Stdout+o.Stderr), "certificat") {
		h.t.Errorf("https by nobody's certificate: exit %d, %q (%s)", o.Exit, o.Stdout, o.Stderr)
	}
}

const pythonHTTPS = `
import os, urllib.request
print(urllib.request.urlopen(os.environ["URL"]).read().decode())
`

const nodeHTTPS = `fetch(process.env.URL).then(r => r.text()).then(console.log, e => { console.error(e.cause); process.exit(1) })`

var goHTTPS = fmt.Sprintf("printf %%s '%s' > main.go && go run main.go 2>&1", strings.ReplaceAll(`package main
import ("fmt"; "io"; "net/http"; "os")
func main() {
	r, err := http.Get(os.Getenv("URL"))
	if err != nil { fmt.Println(err); os.Exit(1) }
	text, _ := io.ReadAll(r.Body)
	fmt.Println(string(text))
}
`, "'", `'\''`))

// javaHTTPS does the same, and says that its own list is of many authorities.
const javaHTTPS = `cat > Main.java <<'X'
import java.net.*; import java.security.*; import javax.net.ssl.*;
class Main { public static void main(String[] a) throws Exception {
	var f = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm()); f.init((KeyStore) null);
	int n = ((X509TrustManager) f.getTrustManagers()[0]).getAcceptedIssuers().length;
	if (n != 1 && n < 100) throw new Exception(n + " authorities");
	System.out.println(new String(new URL(System.getenv("URL")).openStream().readAllBytes()));
} }
X
java Main.java`
