package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sandglass/pkg/result"

	"golang.org/x/sys/unix"
)

// The names that sandboxes with a list of hosts may reach. The soak's own
// /etc/hosts has them, and nothing else.
const (
	plainHost = "good.soak.example"
	tlsHost   = "tls.soak.example"
	hostsFile = "127.0.0.1 localhost " + plainHost + " " + tlsHost + "\n"
)

// service is who answers for them: two ports of the soak's, and the certificate.
type service struct {
	plain, tls int
	ca         string // a file that sandboxes are shown
}

// nameHosts puts the names into the host that the soak has of its own.
func nameHosts() error {
	path := filepath.Join(place, "hosts")
	if err := os.WriteFile(path, []byte(hostsFile), 0o644); err != nil {
		return err
	}
	if err := unix.Mount(path, "/etc/hosts", "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("/etc/hosts: %w", err)
	}
	return nil
}

// startService begins to answer. Every connection is a goroutine and a descriptor
// of this process: one that does not end is found with what sandboxes leave.
func startService(dir string) (*service, error) {
	cert, text, err := certificate(tlsHost)
	if err != nil {
		return nil, err
	}
	s := &service{ca: filepath.Join(dir, "ca.pem")}
	if err := os.WriteFile(s.ca, text, 0o644); err != nil {
		return nil, err
	}
	if s.plain, err = answer(nil); err == nil {
		s.tls, err = answer(&tls.Config{Certificates: []tls.Certificate{cert}})
	}
	return s, err
}

func answer(secure *tls.Config) (port int, err error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port = l.Addr().(*net.TCPAddr).Port
	if secure != nil {
		l = tls.NewListener(l, secure)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go converse(c)
		}
	}()
	return port, nil
}

// converse does what the first byte of a connection says: e sends back all that
// comes, h holds the connection until the other end has closed it, w closes its own
// direction first, and s sends without end to who sends no more.
func converse(c net.Conn) {
	defer c.Close()
	op := make([]byte, 1)
	if _, err := io.ReadFull(c, op); err != nil {
		return
	}
	if _, err := c.Write(op); err != nil {
		return
	}
	switch op[0] {
	case 'e':
		io.Copy(c, c)
		return
	case 'w':
		c.(*net.TCPConn).CloseWrite()
	}
	if _, err := io.Copy(io.Discard, c); err != nil || op[0] != 's' {
		return
	}
	for piece := make([]byte, 1<<16); ; {
		if _, err := c.Write(piece); err != nil {
			return
		}
	}
}

// certificate signs itself, for one name.
func certificate(name string) (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	t := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(48 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, text, err
}

// overTLS prints the answer to e and a hundred thousand bytes, and ends as TLS asks.
const overTLS = `import socket, ssl
c = ssl.create_default_context(cafile="/ca.pem").wrap_socket(socket.create_connection(("%[1]s", %[2]d)), server_hostname="%[1]s")
c.sendall(b"e" * 100000)
got = b""
while len(got) < 100000: got += c.recv(65536)
c = c.unwrap()
print(got == b"e" * 100000, c.recv(1))
c.close()`

// listed are programs with a list of hosts: good ones, hostile ones, and some whose
// caller ends the run while they are connected.
func (s *soak) listed() []*program {
	flags := func(name string, port int) string {
		return fmt.Sprintf("--allow-host %s:%d --allow-host 127.0.0.1:%[2]d", name, port)
	}
	plain, v := flags(plainHost, s.service.plain), s.service
	to := fmt.Sprintf(" %s %d ", plainHost, v.plain)
	const size = 300_000
	stay := func(name string, e end, only string, w want) *program {
		p := c(name, plain, "stay"+to, w)
		p.end, p.only = e, only
		return p
	}
	return []*program{
		c("host, both ways", plain, fmt.Sprintf("echo%s%d", to, size), v.used("echoed 300000\n", v.plain, 1, size, size, result.Closed)),
		{name: "host, TLS", flags: "-m 128m --tls-sni-check all -v " + v.ca + ":/ca.pem " + flags(tlsHost, v.tls),
			code: fmt.Sprintf(overTLS, tlsHost, v.tls), want: v.used("True b''\n", v.tls, 1, 100_000, 100_000, result.Closed)},
		c("host, flood of connections", plain+" --net-connections-total 200", "flood"+to,
			v.used("answered 200\n", v.plain, 200, 1, 1, result.Closed, result.RunEnded)),
		c("host, left open", plain, "leave"+to, v.used("daemons 1\n", v.plain, 8, 1, 1, result.Closed, result.Reset, result.RunEnded)),
		c("host, names that are not listed", plain, "unlisted 300",
			want{outcome: result.Exited, check: func(e *ended) string { return unlistedNames(e, 300) }}),
		c("host, its other ports", plain, fmt.Sprintf("network %d", s.port),
			exits(0, "loopback ECONNREFUSED\nworld ENETUNREACH\nabstract ECONNREFUSED\n")),
		stay("host, canceled", cancels, "", v.cut("ready\n", result.Canceled)),
		stay("host, supervisor killed", kills, "cli", want{exit: 137, stdout: "ready\n"}),
	}
}

// used wants n connections to a port of the service, each with at least so many
// bytes of the program's and of the host's, and one of the verdicts.
func (v *service) used(stdout string, port, n int, up, down int64, verdicts ...result.Verdict) want {
	return want{outcome: result.Exited, check: func(e *ended) string {
		if why := differs("stdout", string(e.stdout), stdout); why != "" {
			return why
		}
		return v.connections(e, port, n, up, down, verdicts...)
	}}
}

func (v *service) connections(e *ended, port, n int, up, down int64, verdicts ...result.Verdict) string {
	r := e.res.Network
	if r == nil || len(r.Connections) != n || r.MoreConnections != 0 || len(r.Refused) != 0 {
		return fmt.Sprintf("the network is %.1000s, want %d connections", fmt.Sprintf("%+v", r), n)
	}
	for _, c := range r.Connections {
		host := map[int]string{v.plain: plainHost, v.tls: tlsHost}[port]
		if c.Host != host || int(c.Port) != port || c.Address != "127.0.0.1" || c.Error != "" ||
			c.BytesUp < up || c.BytesDown < down || port == v.plain && c.BytesUp > up || !slices.Contains(verdicts, c.Verdict) {
			return fmt.Sprintf("the connection %+v, want %s:%d with %d bytes up, %d down and one of %v", c, host, port, up, down, verdicts)
		}
	}
	return ""
}

// cut is a run that ends with one connection open. The program's end may close it
// before the run's does.
func (v *service) cut(stdout string, outcome result.Outcome) want {
	w := v.used(stdout, v.plain, 1, 1, 1, result.RunEnded, result.Closed)
	w.outcome = outcome
	return w
}

// unlistedNames wants every question counted, within the bound of the list.
func unlistedNames(e *ended, n int64) string {
	if why := differs("stdout", string(e.stdout), fmt.Sprintf("no such name %d\n", n)); why != "" {
		return why
	}
	r := e.res.Network
	if r == nil || len(r.Connections) != 0 || len(r.Refused) != 256 {
		return fmt.Sprintf("the network is %.500s, want 256 names", fmt.Sprintf("%+v", r))
	}
	count := r.MoreRefused
	for _, h := range r.Refused {
		if h.Reason != "not in the list" || h.Port != 0 || !strings.HasSuffix(h.Host, ".example") {
			return fmt.Sprintf("refused: %+v", h)
		}
		count += h.Count
	}
	if count != n {
		return fmt.Sprintf("%d questions are counted, want %d", count, n)
	}
	return ""
}

// sockets are those of the host, which all runs share. What waits in TIME_WAIT is
// the kernel's, a minute long, for whoever has closed first.
func sockets() []string {
	const timeWait = "06"
	var list []string
	for _, name := range []string{"tcp", "tcp6", "udp", "udp6"} {
		text, _ := os.ReadFile("/proc/self/net/" + name)
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) > 3 && f[0] != "sl" && f[3] != timeWait {
				list = append(list, strings.Join(append([]string{name}, f[1:4]...), " "))
			}
		}
	}
	return list
}
