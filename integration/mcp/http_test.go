package mcp

import (
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

func tokenFile(t *testing.T, who testkit.Who, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(testkit.Dir(t), "token")
	if err := os.WriteFile(path, []byte(text+"\n"), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(path, who.UID, who.GID); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// request is one of a hostile page's, or of a program's without the token.
type request struct {
	method, path, host, body string
	header                   http.Header
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`

// send returns the status and the body.
func (r request) send(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, text := r.answer(t, url)
	return resp.StatusCode, text
}

func (r request) answer(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	base := strings.TrimSuffix(url, "/mcp")
	req, err := http.NewRequestWithContext(t.Context(), r.method, base+r.path, strings.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = r.host
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for k, v := range r.header {
		req.Header[k] = v
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

func with(more ...string) http.Header {
	h := http.Header{"Authorization": {"Bearer " + token}}
	for i := 0; i < len(more); i += 2 {
		h[more[i]] = append(h[more[i]], more[i+1])
	}
	return h
}

// TestWhoMayCall: the token, the name of the server and the page that calls.
func TestWhoMayCall(t *testing.T) {
	url, _ := server(t, testkit.AsUser(t), "--origin", "https://good.example.org", "--http-host", "mcp.example.org")
	post := func(host string, h http.Header) request { return request{"POST", "/mcp", host, initialize, h} }
	for _, x := range []struct {
		request
		want int
	}{
		{post("", nil), 401},
		{post("", http.Header{"Authorization": {"Bearer " + token[:len(token)-1]}}), 401},
		{post("", http.Header{"Authorization": {"Bearer " + token + "x"}}), 401},
		{post("", http.Header{"Authorization": {"Bearer "}}), 401},
		{post("", http.Header{"Authorization": {"Basic " + token}}), 401},
		{post("", http.Header{"Authorization": {token}}), 401},
		{post("", with("Authorization", "Bearer x")), 401},
		{request{"POST", "/mcp?token=" + token, "", initialize, nil}, 401},
		{request{"GET", "/mcp", "", "", nil}, 401},
		{request{"DELETE", "/mcp", "", "", nil}, 401},
		{request{"OPTIONS", "/mcp", "", "", nil}, 401},
		{request{"POST", "/", "", initialize, with()}, 404},
		{request{"POST", "/mcp/", "", initialize, with()}, 404},
		{post("evil.example.org", with()), 403},
		{post("evil.example.org:80", with()), 403},
		{post("127.0.0.1.evil.example.org", with()), 403},
		{post("192.0.2.1", with()), 403},
		{post("", with("Origin", "https://evil.example.org")), 403},
		{post("", with("Origin", "null")), 403},
		{post("", with("Origin", "https://good.example.org.evil.example.org")), 403},
		{post("", with("Origin", "https://good.example.org", "Origin", "https://evil.example.org")), 403},
		{request{"POST", "/mcp", "", strings.Repeat(" ", 9<<20), with()}, 413},
		{request{"POST", "/mcp", "", strings.Replace(initialize, `"id":1`, `"id":1.5`, 1), with()}, 400},
		{request{"POST", "/mcp", "", "[" + initialize + "]", with("Mcp-Protocol-Version", "2025-06-18")}, 400},
		{post("", with()), 200},
		{post("localhost:1", with()), 200},
		{post("[::1]", with()), 200},
		{post("mcp.example.org", with()), 200},
		{post("", with("Origin", "https://good.example.org")), 200},
	} {
		if code, text := x.send(t, url); code != x.want {
			t.Errorf("%+.200v: %d, want %d: %s", x.request, code, x.want, text)
		}
	}
}

// single is a call of the newest protocol, which belongs to no session and says all of
// itself.
func single(method, name, body string) (http.Header, string) {
	h := with("Mcp-Protocol-Version", newest, "Mcp-Method", method)
	if name != "" {
		h.Set("Mcp-Name", name)
	}
	const meta = `"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"` + newest + `","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{}},`
	return h, strings.Replace(body, `"params":{`, meta, 1)
}

// TestWithoutSession: the newest protocol makes no session, needs the same token, and
// has nothing that would keep a connection for good.
func TestWithoutSession(t *testing.T) {
	url, _ := server(t, testkit.AsUser(t), "--max-running", "1")
	ask := func(method, name, body string) (*http.Response, string) {
		h, body := single(method, name, body)
		return request{"POST", "/mcp", "", body, h}.answer(t, url)
	}
	for _, x := range []struct{ method, name, params, want string }{
		{"server/discover", "", `"x":0`, `"` + newest + `","` + withSessions + `"`},
		{"tools/call", "run_command", `"name":"run_command","arguments":{"command":["echo","one"]}`, `"outcome":"exited"`},
		{"tools/call", "run_command", `"name":"run_command","arguments":{"command":null}`, "command is null"},
		{"subscriptions/listen", "", `"notifications":{"toolsListChanged":true}`, `"result":`},
	} {
		resp, text := ask(x.method, x.name, `{"jsonrpc":"2.0","id":1,"method":"`+x.method+`","params":{`+x.params+`}}`)
		if id := resp.Header.Get("Mcp-Session-Id"); resp.StatusCode != 200 || id != "" || !strings.Contains(text, x.want) {
			t.Errorf("%s: %d, session %q, %s; want %s", x.method, resp.StatusCode, id, text, x.want)
		}
	}
	h, _ := single("x", "", "")
	for _, method := range []string{"GET", "DELETE"} {
		if code, text := (request{method, "/mcp", "", "", h}).send(t, url); code != 405 {
			t.Errorf("%s: %d %s", method, code, text)
		}
	}
	h.Del("Authorization")
	if code, text := (request{"POST", "/mcp", "", initialize, h}).send(t, url); code != 401 {
		t.Errorf("without the token: %d %s", code, text)
	}
	h = with("Mcp-Protocol-Version", "2999-01-01")
	if code, text := (request{"POST", "/mcp", "", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, h}).send(t, url); code != 400 {
		t.Errorf("a version that there is not: %d %s", code, text)
	}
}

// TestBoundsOfClients: sessions and connections have a bound, and who holds all of
// them keeps nobody out: the idlest gives way, and one that is used stays.
func TestBoundsOfClients(t *testing.T) {
	url, _ := server(t, testkit.AsUser(t))
	used := overHTTPAs(t, url, withSessions)
	for range 2 {
		if err := used.Ping(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	open := request{"POST", "/mcp", "", initialize, with()}
	var ids []string
	for i := range 2 * 64 {
		resp, text := open.answer(t, url)
		if resp.StatusCode != 200 {
			t.Fatalf("session %d: %d %s", i, resp.StatusCode, text)
		}
		ids = append(ids, resp.Header.Get("Mcp-Session-Id"))
	}
	for i, want := range map[int]int{0: 404, 2*64 - 64: 404, 2*64 - 63: 200, 2*64 - 1: 200} { // 63 and the one that is used
		ping := request{"POST", "/mcp", "", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, with("Mcp-Session-Id", ids[i])}
		if code, text := ping.send(t, url); code != want {
			t.Errorf("session %d: %d, want %d: %s", i, code, want, text)
		}
	}
	if err := used.Ping(t.Context(), nil); err != nil {
		t.Errorf("a session that is used gave way to those that are not: %v", err)
	}
	http.DefaultClient.CloseIdleConnections()
	address := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/mcp")
	var held []net.Conn
	for range 64 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write([]byte("POST /mcp HTTP/1.1\r\nHost: localhost\r\n")); err != nil {
			t.Fatal(err)
		}
		held = append(held, c)
	}
	if code, _ := (request{"GET", "/mcp", "", "", nil}).send(t, url); code != 401 {
		t.Errorf("%d", code)
	}
	if _, err := held[0].Read(make([]byte, 1)); err == nil {
		t.Error("a connection without a request is still served")
	}
}
