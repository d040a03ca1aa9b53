package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sys/unix"

	"sandglass/internal/refusal"
)

// The bounds of clients by HTTP.
const (
	maxConnections = 64
	maxSessions    = 64
	headerTime     = 5 * time.Second
	bodyTime       = 60 * time.Second
	keptTime       = 60 * time.Second // of a connection without a request
	idleTime       = 10 * time.Minute // of a session
	headerBytes    = 16 << 10
	endTime        = time.Second
)

const (
	tokenVariable = "SANDGLASS_MCP_TOKEN"
	minToken      = 16
	endpoint      = "/mcp"

	makeToken = "umask 077; head -c 32 /dev/urandom | base64 >"
	newToken  = makeToken + "token"
)

// refusedTime is how long the body of a request that was refused is waited for.
var refusedTime = 5 * time.Second

// serveHTTP serves clients until ctx ends.
func serveHTTP(ctx context.Context, o *options, t *tools) error {
	token, err := readToken(o.tokenFile)
	if err != nil {
		return err
	}
	address := o.http
	if host, port, err := net.SplitHostPort(address); err != nil {
		address = net.JoinHostPort("127.0.0.1", address) // a port alone
	} else if host == "" {
		address = net.JoinHostPort("127.0.0.1", port) // all addresses have to be said: 0.0.0.0
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return refusal.Newf("mcp: --http %s: %v", refusal.Word(o.http), err).Hint("sandglass mcp --http 127.0.0.1:8080")
	}
	s := &http.Server{
		Handler:           &guard{o: o, token: sha256.Sum256(token), next: t.streamable(), tools: t},
		ConnContext:       withPlace,
		ReadHeaderTimeout: headerTime, IdleTimeout: keptTime, MaxHeaderBytes: headerBytes,
	}
	fmt.Fprintf(os.Stderr, "sandglass: mcp at http://%s%s\n", l.Addr(), endpoint)
	end := make(chan error, 1)
	go func() { end <- s.Serve(newPlaces(l, maxConnections)) }()
	select {
	case err := <-end:
		return err
	case <-ctx.Done():
	}
	t.box.close() // every call has its answer then
	last, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	if s.Shutdown(last) != nil {
		s.Close()
	}
	return nil
}

// sessionless is the first version of the protocol in which no request belongs to a
// session. The SDK serves it by a handler that has none.
const sessionless = "2026-07-28"

// streamable is the protocol itself. A session that is idle ends, and there are
// never more than maxSessions, those included that are being begun.
func (t *tools) streamable() http.Handler {
	options := mcp.StreamableHTTPOptions{JSONResponse: true, SessionTimeout: idleTime, MaxRequestBodyBytes: messageBytes,
		PropagateRequestCancellation: true, // nobody would get the answer; calls does it for older protocols
		DisableLocalhostProtection:   true, // guard.meant, which knows --http-host
	}
	old := mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		// It is asked for the server of every request, and some begin no session.
		if r.Method == http.MethodPost && r.Header.Get(sessionHeader) == "" && !t.sessions.room(r, t.server) {
			return nil // answered with 400
		}
		return t.server
	}, &options)
	options.Stateless, options.SessionTimeout = true, 0
	single := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return t.single }, &options)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") >= sessionless {
			single.ServeHTTP(w, r)
		} else {
			old.ServeHTTP(w, r)
		}
	})
}

// readToken reads the bearer token, which is never on a command line, where every
// user of the machine could read it.
func readToken(path string) ([]byte, error) {
	token := []byte(os.Getenv(tokenVariable))
	os.Unsetenv(tokenVariable)
	if path != "" {
		var err error
		if token, err = readTokenFile(path); err != nil {
			return nil, err
		}
	}
	token = bytes.TrimSpace(token)
	if len(token) == 0 {
		return nil, refusal.Newf("mcp: --http needs a bearer token").
			Hint(newToken + "; sandglass mcp --http 127.0.0.1:8080 --token-file token")
	}
	if len(token) < minToken || bytes.ContainsAny(token, " \t\r\n") {
		return nil, refusal.Newf("mcp: the bearer token is shorter than %d characters, or has spaces in it", minToken).
			Hint(newToken)
	}
	return token, nil
}

func readTokenFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // a FIFO without a writer would keep us here
	if err != nil {
		r := refusal.Newf("mcp: --token-file: %v", err)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, r.Hint(makeToken+"%s", refusal.Shell(path))
		}
		return nil, r.Hint("ls -ld -- %s", refusal.Shell(path))
	}
	defer f.Close()
	st, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !st.Mode().IsRegular():
		return nil, refusal.Newf("mcp: --token-file: %s is no regular file", refusal.Word(path)).Hint(newToken)
	case st.Mode()&0o077 != 0:
		return nil, refusal.Newf("mcp: --token-file: %s may be read by others than its owner", refusal.Word(path)).Hint("chmod 600 -- %s", refusal.Shell(path))
	}
	return io.ReadAll(io.LimitReader(f, 4<<10))
}

// guard lets a request through that is meant for this server and knows the token.
type guard struct {
	o     *options
	token [sha256.Size]byte
	next  http.Handler
	tools *tools
}

func (g *guard) ServeHTTP(to http.ResponseWriter, r *http.Request) {
	w := timely{to}
	refuse := func(code int, why string) {
		// Who is not let in keeps no place either, nor has the server wait for a body:
		// net/http reads what it can of one before it closes.
		http.NewResponseController(w).SetReadDeadline(time.Now().Add(refusedTime))
		w.Header().Set("Connection", "close")
		http.Error(w, why, code)
	}
	switch {
	case r.URL.Path != endpoint:
		refuse(http.StatusNotFound, "not found")
	case !g.meant(r):
		// A page of another site whose name leads to this address now: DNS rebinding.
		refuse(http.StatusForbidden, "the Host is not this server's: --http-host names others")
	case !g.from(r):
		refuse(http.StatusForbidden, "the Origin may not call: --origin names those that may")
	case !g.knows(r):
		w.Header().Set("WWW-Authenticate", "Bearer")
		refuse(http.StatusUnauthorized, "the bearer token is missing or wrong")
	default:
		g.pass(w, r)
	}
}

// pass reads the body first, in bounded time and memory. A deadline of the whole
// request would end calls that run longer. Its connection gives way to no stranger's
// meanwhile, but is not busy yet: who is slow would hold a place.
func (g *guard) pass(w timely, r *http.Request) {
	admit(r)
	c := http.NewResponseController(w)
	c.SetReadDeadline(time.Now().Add(bodyTime))
	body, err := io.ReadAll(http.MaxBytesReader(w.ResponseWriter, r.Body, messageBytes))
	if err != nil {
		code := http.StatusBadRequest
		if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
			code = http.StatusRequestEntityTooLarge
		}
		http.Error(w, "the body: "+err.Error(), code)
		return
	}
	c.SetReadDeadline(time.Time{})
	if text := bytes.TrimSpace(body); len(text) > 0 {
		if _, _, err := decode(text); err == errID { // whatever else is wrong the SDK says
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			w.Write(problem(nil, jsonrpc.CodeInvalidRequest, err.Error()))
			return
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	defer occupy(r)()
	defer g.tools.calls.enter(r)()
	leave, there := g.tools.sessions.enter(r, g.tools.server)
	if !there {
		http.Error(w, "session not found", http.StatusNotFound)
		return
	}
	defer leave()
	g.next.ServeHTTP(w, r)
}

// meant says whether Host is a name of this server: loopback's, the very address
// that the connection came to, or one that the operator gave.
func (g *guard) meant(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = strings.Trim(r.Host, "[]")
	}
	if host == "localhost" || slices.Contains(g.o.hostNames, host) {
		return true
	}
	ip := net.ParseIP(host)
	local, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ip != nil && local != nil && (ip.IsLoopback() && local.IP.IsLoopback() || ip.Equal(local.IP))
}

// from says whether a browser's page may call; no other client sends an Origin.
func (g *guard) from(r *http.Request) bool {
	for _, origin := range r.Header.Values("Origin") {
		if !slices.Contains(g.o.origins, origin) {
			return false
		}
	}
	return true
}

// knows compares digests, in constant time: neither the time of an answer nor the
// length tells how much of a guess was right.
func (g *guard) knows(r *http.Request) bool {
	given := r.Header.Values("Authorization")
	if len(given) != 1 {
		return false
	}
	scheme, token, _ := strings.Cut(given[0], " ")
	sum := sha256.Sum256([]byte(token))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(sum[:], g.token[:]) == 1
}
