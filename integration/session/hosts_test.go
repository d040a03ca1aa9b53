package session

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"sandglass/internal/sys"
	"sandglass/internal/testkit"
	"sandglass/pkg/result"

	"golang.org/x/sys/unix"
)

// TestHostsThatAreRefused: no request widens a session without a network, and
// nothing that is no host is taken for one, whatever its JSON looks like.
func TestHostsThatAreRefused(t *testing.T) {
	who := testkit.AsUser(t)
	ask := func(c *client, options, code, want string) {
		t.Helper()
		c.sh("x", "true", `,"options":{`+options+`}`)
		if r := c.want("error", "x"); r.Code != code || !strings.Contains(r.Error, want) || len(r.Error) > 1000 {
			t.Errorf("%.100s: %.1000s, want %s, %q", options, fmt.Sprintf("%+v", r), code, want)
		}
	}
	for _, flag := range []string{"--network", "--net"} {
		c := open(t, who, flag, "none")
		for _, o := range []string{
			`"allow-host":"a.example"`, `"allow-host":["a.example","b.example"]`, `"allow\u002dhost":"a.example"`, `"allow-host":"127.0.0.1:9"`,
			`"network":"none","allow-host":"a.example"`, `"allow-host":"a.example","net":"none"`,
		} {
			ask(c, o, "refused", " none and --allow-host contradict each other")
		}
		ask(c, `"Allow-Host":"a.example"`, "refused", "unknown flag")
		ask(c, `"network":"host"`, "refused", "--network: ")
		c.sh("y", "true", `,"options":{"allow-host":[]}`)
		if r := c.ended("y"); r.Network != nil {
			t.Errorf("an empty list: %+v", r.Network)
		}
		c.close()
	}
	c := open(t, who, "--allow-host", "a.example:7000")
	many := func(value func(i int) string) string {
		list := make([]string, 10_000)
		for i := range list {
			list[i] = strconv.Quote(value(i))
		}
		return `"allow-host":[` + strings.Join(list, ",") + `]`
	}
	for _, x := range [][3]string{
		{`""`, "refused", "--allow-host: the host is empty"},
		{`["b.example",""]`, "refused", "--allow-host: the host is empty"},
		{`" "`, "refused", "is not one host"},
		{`"*"`, "refused", "the list cannot mean every host"},
		{`"*.com"`, "refused", "is too wide"},
		{`"b.example\u0000.a.example"`, "refused", "has a character that no host name has"},
		{`"b.example\nc.example"`, "refused", "is not one host"},
		{`"b.example,c.example"`, "refused", "is not one host"},
		{`"https://b.example"`, "refused", "is a URL"},
		{`"b.example:0"`, "refused", "the port is a number from 1 to 65535"},
		{`"b.example:1-65535"`, "refused", "the port is a number from 1 to 65535"},
		{`"LOCALHOST"`, "refused", "means the host itself"},
		{`"0x7f.1"`, "refused", "a number stands at its end"},
		{`443`, "refused", "a number stands at its end"},
		{`"10.0.0.0/4"`, "refused", "--allow-host: "},
		{`"\u212aelvin.example"`, "refused", "is not in ASCII"},
		{`"` + strings.Repeat("a.", 200) + `example"`, "refused", "is longer than the 253 bytes of a name"},
		{`null`, "malformed", ""},
		{`{"a.example":1}`, "malformed", ""},
		{`[["b.example"]]`, "malformed", ""},
		{`"b.example","allow-host":"c.example"`, "malformed", "is there twice"},
	} {
		ask(c, `"allow-host":`+x[0], x[1], x[2])
	}
	ask(c, many(func(i int) string { return fmt.Sprintf("n%d.example", i) }), "refused", "10001 hosts are too many")
	ask(c, many(func(int) string { return "a.example:7000" }), "refused", "10001 hosts are too many")
	ask(c, `"network":"none"`, "refused", "contradict each other")
	c.close()
}

// site is a host of the test's own: two names of a server on its loopback, which
// sends back what comes and counts.
type site struct {
	port           int
	accepted, open atomic.Int64
}

// newSite is for a test that has a host of its own, see testkit.Quiet.
func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{}
	path := filepath.Join(testkit.Dir(t), "hosts")
	l, err := net.Listener(nil), sys.LoopbackUp()
	if err == nil {
		err = os.WriteFile(path, []byte("127.0.0.1 localhost a.example b.example\n"), 0o644)
	}
	if err == nil {
		err = unix.Mount(path, "/etc/hosts", "", unix.MS_BIND, "")
	}
	if err == nil {
		l, err = net.Listen("tcp4", "127.0.0.1:0")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	s.port = l.Addr().(*net.TCPAddr).Port
	go testkit.Serve(l, func(c *net.TCPConn) {
		s.accepted.Add(1)
		s.open.Add(1)
		defer s.open.Add(-1)
		io.Copy(c, c)
	})
	return s
}

// hosts are the values of allow-host for names; where they lead to must be listed
// as an address, since it is not public.
func (s *site) hosts(names ...string) []string {
	list := []string{fmt.Sprintf("127.0.0.1:%d", s.port)}
	for _, n := range names {
		list = append(list, fmt.Sprintf("%s:%d", n, s.port))
	}
	return list
}

// bash asks for a script, with functions before it: talk HOST says whether the host
// answers, and hold HOST keeps a connection.
func (s *site) bash(c *client, id, script string, options map[string]any) {
	c.t.Helper()
	functions := fmt.Sprintf(`talk() { (exec 3<>/dev/tcp/$1/%[1]d && echo hi >&3 && read -r l <&3 && echo $1 $l) 2>/dev/null || echo $1 none; }
hold() { exec 3<>/dev/tcp/$1/%[1]d && echo hi >&3 && read -r l <&3 && echo up; cat <&3; }
`, s.port)
	request := map[string]any{"type": "run", "id": id, "command": []string{"bash", "-c", functions + script}}
	if options != nil {
		request["options"] = options
	}
	if strings.Contains(script, "hold ") {
		request["output"] = "stream"
	}
	text, err := json.Marshal(request)
	if err != nil {
		c.t.Fatal(err)
	}
	c.send("%s", text)
}

// said is a run's output, and the hosts that it was refused.
func (c *client) said(id, stdout string, refused ...string) result.Result {
	c.t.Helper()
	r := c.ended(id)
	var got []string
	if r.Network != nil {
		for _, h := range r.Network.Refused {
			got = append(got, h.Host+" "+h.Reason)
		}
	}
	if r.Stdout.Text != stdout || fmt.Sprint(got) != fmt.Sprint(refused) {
		c.t.Errorf("%s: %q and refused %q, want %q and %q", id, r.Stdout.Text, got, stdout, refused)
	}
	return r
}

// TestHostsOfRuns: a request adds to the session's list for its own run and for no
// other; of two runs at once neither has the other's names, limits or refusals; and
// one that is cancelled leaves no socket.
func TestHostsOfRuns(t *testing.T) {
	if !testkit.Quiet(t) {
		return
	}
	testkit.Requires(t, "bash")
	s := newSite(t)
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		t.Run("added", func(t *testing.T) { s.added(t, who) })
		t.Run("apart", func(t *testing.T) { s.apart(t, who) })
	})
}

func (s *site) added(t *testing.T, who testkit.Who) {
	var flags []string
	for _, h := range s.hosts("a.example") {
		flags = append(flags, "--allow-host", h)
	}
	c := open(t, who, flags...)
	const script, none = "talk a.example; talk b.example", "a.example hi\nb.example none\n"
	for i, hosts := range []any{s.hosts("B.Example"), s.hosts("b.example", "b.example", "b.example."), s.hosts("b.example")[1]} {
		id := strconv.Itoa(i)
		s.bash(c, id, script, map[string]any{"allow-host": hosts})
		c.said(id, "a.example hi\nb.example hi\n")
		s.bash(c, id, script, nil)
		c.said(id, none, "b.example not in the list")
	}
	s.bash(c, "empty", script, map[string]any{"allow-host": []string{}})
	c.said("empty", none, "b.example not in the list")
	c.close()
}

func (s *site) apart(t *testing.T, who testkit.Who) {
	c := open(t, who, "--max-running", "2", "--explain-denials")
	// What the session needs once for its first run stays.
	s.bash(c, "first", "talk a.example", map[string]any{"allow-host": s.hosts("a.example")})
	c.said("first", "a.example hi\n")
	before := descriptors(t, c.p.PID())
	// All names that it may ask for below the wildcard are used up, then it holds a connection.
	s.bash(c, "held", "for i in {1..101}; do talk n$i.wild.example; done; hold a.example",
		map[string]any{"allow-host": s.hosts("a.example", "*.wild.example"), "timeout": "1h"})
	c.wantUp("held")
	s.bash(c, "other", "talk b.example; talk b.example; talk a.example; talk n1.wild.example; : 2>/dev/null >/dev/tcp/192.0.2.1/9 || echo end",
		map[string]any{"allow-host": s.hosts("b.example", "*.wild.example"), "net-connections-total": 1})
	other := c.said("other", "b.example hi\nb.example none\na.example none\nn1.wild.example none\nend\n", "a.example not in the list")
	if n := other.Network; len(n.Connections) != 1 || n.Connections[0].Host != "b.example" {
		t.Errorf("%+v", n)
	}
	if !denies(other, "192.0.2.1:9") {
		t.Errorf("denied: %+v", other.Denied)
	}
	c.send(`{"type":"cancel","id":"held"}`)
	held := c.result("held")
	n := held.Network
	if held.Outcome != result.Canceled || n == nil || len(n.Connections) != 1 || n.Connections[0].Host != "a.example" || n.BytesUp != 3 || n.BytesDown != 3 ||
		len(n.Refused) != 1 || n.Refused[0].Host != "n101.wild.example" || denies(held, "192.0.2.1:9") {
		t.Errorf("%s, %+v, denied %+v", held.Outcome, n, held.Denied)
	}
	testkit.Eventually(t, "the server sees the end", func() bool { return s.open.Load() == 0 })
	testkit.Eventually(t, "the session has closed the relay's descriptors", func() bool { return descriptors(t, c.p.PID()) <= before })
	c.close()
}

// denies says whether a connection to somewhere is among what was denied.
func denies(r result.Result, where string) bool {
	for _, d := range r.Denied {
		if d.Kind == "host" && d.What == where {
			return true
		}
	}
	return false
}

// wantUp reads until a run has said that it is connected.
func (c *client) wantUp(id string) {
	c.t.Helper()
	text := ""
	for !strings.HasSuffix(text, "up\n") {
		r := c.read()
		if r.ID != id || r.Type != "started" && r.Type != "output" {
			c.t.Fatalf("%+v", r)
		}
		text += r.Text
	}
}

// result reads to the result of a run that streams.
func (c *client) result(id string) result.Result {
	c.t.Helper()
	for {
		if r := c.read(); r.ID == id && r.Type == "result" {
			return r.Result
		} else if r.Type != "output" {
			c.t.Fatalf("%+v", r)
		}
	}
}

func descriptors(t *testing.T, pid int) int {
	t.Helper()
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// TestHostsAmongMany: while one run has hosts, 64 others have none.
func TestHostsAmongMany(t *testing.T) {
	if !testkit.Quiet(t) {
		return
	}
	testkit.Requires(t, "bash")
	s := newSite(t)
	c := open(t, testkit.AsRoot(t), "--max-running", "65")
	s.bash(c, "held", "hold a.example", map[string]any{"allow-host": s.hosts("a.example"), "timeout": "1h"})
	c.wantUp("held")
	const n = 64
	for i := range n {
		s.bash(c, strconv.Itoa(i), "talk a.example; talk 127.0.0.1; talk 198.18.1.0", map[string]any{"timeout": "100s"})
	}
	for range n {
		r := c.read()
		if r.Type != "result" || r.Result.Network != nil || r.Result.Stdout.Text != "a.example none\n127.0.0.1 none\n198.18.1.0 none\n" {
			t.Fatalf("%.1500s", fmt.Sprintf("%+v", r))
		}
	}
	if got := s.accepted.Load(); got != 1 {
		t.Errorf("%d connections arrived, want 1", got)
	}
	c.send(`{"type":"cancel","id":"held"}`)
	if r := c.result("held"); r.Outcome != result.Canceled || len(r.Network.Connections) != 1 {
		t.Errorf("%s, %+v", r.Outcome, r.Network)
	}
	c.close()
}
