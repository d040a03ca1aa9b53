package session

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

// sleeper starts a run that would go on for a long time, and returns what is in
// the command lines of its processes alone.
func (c *client) sleeper(id string, more string) (marker string) {
	c.t.Helper()
	marker = fmt.Sprintf("%d.%d", 100000+os.Getpid(), len(id)*1000+int(id[0]))
	c.sh(id, "echo up; sleep "+marker, `,"output":"stream","options":{"timeout":"1h"}`+more)
	return "sleep " + marker
}

// up reads until every one of ids has printed its line.
func (c *client) up(ids ...string) {
	c.t.Helper()
	left := map[string]bool{}
	for _, id := range ids {
		left[id] = true
	}
	for len(left) > 0 {
		r := c.read()
		if r.Type == "output" && r.Text == "up\n" {
			delete(left, r.ID)
		} else if r.Type != "started" {
			c.t.Fatalf("%+v", r)
		}
	}
}

// gone waits until nothing of a run is there any more.
func gone(t *testing.T, markers ...string) {
	t.Helper()
	for _, m := range markers {
		testkit.Eventually(t, m+" is gone", func() bool { return len(testkit.Processes(m)) == 0 })
	}
}

// TestQueueAndCancel: the order of requests is the order of starts; what is too
// much is refused, what is cancelled ends at once.
func TestQueueAndCancel(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		c := open(t, who, "--max-running", "2", "--max-queued", "2")
		m := []string{c.sleeper("a", ""), c.sleeper("b", "")}
		c.up("a", "b")
		m = append(m, c.sleeper("c", ""), c.sleeper("d", ""))
		c.sleeper("e", "")
		c.wrong("e", "busy")
		c.sleeper("a", "")
		c.wrong("a", "duplicate_id")
		c.send(`{"type":"cancel","id":"c"}`)
		c.wrong("c", "canceled")
		c.send(`{"type":"cancel","id":"a"}`)
		for range 3 { // the result of a, and d's start
			switch r := c.read(); {
			case r.Type == "result" && r.ID == "a" && r.Result.Outcome == result.Canceled && r.Result.Stdout.Kept == 3:
			case r.ID == "d" && (r.Type == "started" || r.Type == "output"):
			default:
				t.Fatalf("%+v", r)
			}
		}
		gone(t, m[0])
		c.send(`{"type":"cancel","id":"a"}`)
		c.wrong("a", "unknown_id")
		c.send(`{"type":"cancel","id":"b"}`)
		c.send(`{"type":"cancel","id":"d"}`)
		for range 2 {
			if r := c.read(); r.Type != "result" || r.Result.Outcome != result.Canceled {
				t.Fatalf("%+v", r)
			}
		}
		gone(t, m...)
		c.close()
	})
}

// TestEnds: however the session ends, its runs end with it.
func TestEnds(t *testing.T) {
	for _, end := range []struct {
		name string
		do   func(*client)
		exit int
	}{
		{"SIGTERM", func(c *client) { c.p.Signal(syscall.SIGTERM) }, 143},
		{"SIGINT", func(c *client) { c.p.Signal(os.Interrupt) }, 130},
		{"SIGHUP", func(c *client) { c.p.Signal(syscall.SIGHUP) }, 129},
		{"SIGKILL", func(c *client) { c.p.Kill() }, 137},
		{"reader gone", func(c *client) { c.out.Close() }, 141},
	} {
		t.Run(end.name, func(t *testing.T) {
			testkit.Each(t, func(t *testing.T, who testkit.Who) {
				c := open(t, who, "--max-running", "3")
				m := []string{c.sleeper("a", ""), c.sleeper("b", ""), c.sleeper("c", ""), c.sleeper("d", "")}
				c.up("a", "b", "c")
				end.do(c)
				// stdin is still open: nothing but the end itself ends it.
				out := c.p.Wait()
				if out.Exit != end.exit || out.Stderr != "" {
					t.Errorf("exit %d, stderr %q", out.Exit, out.Stderr)
				}
				gone(t, m...)
				if end.exit == 143 || end.exit == 130 {
					c.farewell()
				}
				if end.exit != 137 {
					if left := testkit.CgroupsLeft(t, out.PID); len(left) > 0 {
						t.Errorf("cgroups are left: %q", left)
					}
				}
			})
		})
	}
}

// farewell: each run has its last reply.
func (c *client) farewell() {
	c.t.Helper()
	got := map[string]string{}
	for range 4 {
		r := c.read()
		got[r.ID] = r.Code + string(r.Result.Outcome)
	}
	if want := "map[a:canceled b:canceled c:canceled d:closing]"; fmt.Sprint(got) != want {
		c.t.Errorf("got %v, want %s", got, want)
	}
}

// TestEndOfRequests: what was accepted is finished, in its turn.
func TestEndOfRequests(t *testing.T) {
	who := testkit.AsUser(t)
	c := open(t, who, "--max-running", "1")
	for _, id := range []string{"1", "2", "3"} {
		c.sh(id, "echo "+id, "")
	}
	c.in.Close()
	for _, id := range []string{"1", "2", "3"} {
		if r := c.ended(id); r.Stdout.Text != id+"\n" {
			t.Errorf("%+v", r)
		}
	}
	c.close()
}

// TestStuckReader: a client that reads nothing stops the output that it does not
// take, and no clock and no verdict; when it reads again, everything is there.
func TestStuckReader(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		c := open(t, who, "--max-running", "4", "--output-limit", "8m")
		marker := fmt.Sprintf("7%d", os.Getpid())
		// The pipe takes 64 KiB: these stand still, and their time goes on.
		c.sh("flood", "while :; do echo flood; done; sleep "+marker, `,"output":"stream","options":{"timeout":"2s"}`)
		c.want("started", "flood") // before that it is not there, as when it is gone
		c.sh("short", "echo short", "")
		c.sh("hog", "head -c 600m /dev/zero | tail -c 500m | wc -c", `,"options":{"timeout":"60s","memory":"32m"}`)
		c.sh("spin", "while :; do :; done; : "+marker, `,"options":{"timeout":"1s"}`)
		gone(t, marker)
		outcomes, text := map[string]result.Result{}, 0
		for len(outcomes) < 4 {
			switch r := c.read(); {
			case r.Type == "result":
				outcomes[r.ID] = r.Result
			case r.Type == "output" && r.ID == "flood":
				text += len(r.Text)
			}
		}
		for id, want := range map[string]result.Outcome{"flood": result.Timeout, "short": result.Exited, "spin": result.Timeout} {
			if got := outcomes[id]; got.Outcome != want {
				t.Errorf("%s: %s, want %s: %q", id, got.Outcome, want, got.Error)
			}
		}
		if r := outcomes["hog"]; r.Outcome != result.Memory && who.Limited() {
			t.Errorf("hog: %s", r.Outcome)
		}
		if r := outcomes["flood"]; r.Stdout.Kept != int64(text) || r.Error != "" || r.WallMS > 60_000 {
			t.Errorf("%d bytes came of %+v, %q", text, r.Stdout, r.Error)
		}
		if r := outcomes["short"]; r.Stdout.Text != "short\n" {
			t.Errorf("%+v", r.Stdout)
		}
		c.close()
	})
}

// TestHostileLines: nonsense of every size harms no other run, and costs no
// memory.
func TestHostileLines(t *testing.T) {
	who := testkit.AsUser(t)
	c := open(t, who, "--max-running", "2", "--max-queued", "4")
	marker := c.sleeper("good", "")
	c.up("good")
	piece := bytes.Repeat([]byte("[{\"a\":"), 1<<17)
	for range 300 { // of one line
		if _, err := c.in.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	c.send("")
	c.wrong("", "too_large")
	for _, l := range []struct{ line, id, code string }{
		{strings.Repeat("[", 1<<20), "", "malformed"},
		{`{"id":"x","type":"run","code":"\ud800","lang":"sh"}`, "x", "malformed"},
		{"{\"id\":\"x\",\"type\":\"run\",\"code\":\"\xff\",\"lang\":\"sh\"}", "", "malformed"},
		{`{"id":"x","type":"run","command":["a",` + strings.Repeat(`"",`, 1<<20) + `""]}`, "x", "malformed"},
		{`{"id":"x","type":"run","command":["true"],"files":[` + strings.Repeat(`{"path":"a","text":""},`, 200_000) + `{}]}`, "x", "refused"},
		{`{"id":"x","type":"run","command":["true"],"options":{"` + strings.Repeat("a", 1<<20) + `":1}}`, "x", "refused"},
		{`{"id":"x","type":"run","command":["a\u0000b"]}`, "x", "refused"},
		{`{"id":"good","type":"run","command":["true"]}`, "good", "duplicate_id"},
		{`{"id":"x","type":"exec"}`, "x", "unknown_type"},
	} {
		c.send("%s", l.line)
		if r := c.want("error", l.id); r.Code != l.code || len(r.Error) > 1000 {
			t.Errorf("%.60q: %.300s", l.line, fmt.Sprintf("%+v", r))
		}
	}
	if peak := memoryPeak(t, c.p.PID()); peak > 160<<10 {
		t.Errorf("the supervisor took %d KiB", peak)
	}
	if len(testkit.Processes(marker)) == 0 {
		t.Error("the good run is gone")
	}
	c.send(`{"type":"cancel","id":"good"}`)
	c.want("result", "good")
	c.close()
}

// memoryPeak is VmHWM in KiB.
func memoryPeak(t *testing.T, pid int) (kib int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "VmHWM:")
	if _, err := fmt.Sscan(after, &kib); err != nil {
		t.Fatal(err)
	}
	return kib
}

// TestManyAtOnce: 64 at once, each with its own files, answer and artifact, and
// nothing is left.
func TestManyAtOnce(t *testing.T) {
	if !testkit.Quiet(t) {
		return
	}
	before := testkit.TakeSnapshot(t)
	c := open(t, testkit.AsRoot(t), "--max-running", "64", "--max-queued", "200")
	const n = 160
	go func() {
		for i := range n {
			fmt.Fprintf(c.in, `{"type":"run","id":"r%d","command":["sh","-c","cat f; ls /work /tmp; cp f /out/o; touch /tmp/mine"],`+
				`"files":[{"path":"f","text":"%d\n"}],"artifacts":{"inline":"1k"},"options":{"timeout":"100s"}}`+"\n", i, i)
		}
		c.in.Close()
	}()
	seen := map[string]bool{}
	for range n {
		r := c.read()
		own := strings.TrimPrefix(r.ID, "r") + "\n"
		if r.Type != "result" || r.Result.Outcome != result.Exited || seen[r.ID] || r.Result.Stdout.Text != own+"/tmp:\n\n/work:\nf\n" ||
			len(r.Result.Artifacts) != 1 || r.Result.Artifacts[0].Text != own {
			t.Fatalf("%.1500s", fmt.Sprintf("%+v", r))
		}
		seen[r.ID] = true
	}
	c.close()
	if left := before.LeftBy(t, []int{c.p.PID()}); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}
