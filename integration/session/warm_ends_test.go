package session

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"

	"golang.org/x/sys/unix"
)

// TestWarmEnds: what waits dies with its session, however that ends.
func TestWarmEnds(t *testing.T) {
	testkit.Requires(t, "python3")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for _, end := range []func(*client){
			func(c *client) { c.in.Close() }, func(c *client) { c.p.Kill() },
			func(c *client) { c.p.Signal(unix.SIGTERM) }, func(c *client) { c.out.Close() },
		} {
			c := openWarm(t, who, "command=2,python=2")
			inits := idle(t, c)
			if len(inits) != 4 {
				t.Fatalf("%d sandboxes wait, want 4", len(inits))
			}
			end(c)
			out := c.p.Wait()
			for _, pid := range inits {
				testkit.WaitGone(t, pid)
			}
			if out.Exit == 137 {
				continue // what only a cleanup can remove is for the next one
			}
			if left := testkit.CgroupsLeft(t, out.PID); len(left) > 0 {
				t.Errorf("cgroups are left: %q", left)
			}
		}
	})
}

// TestWarmMemberDies: one that ends while it waits is never given out, and
// another takes its place.
func TestWarmMemberDies(t *testing.T) {
	testkit.Requires(t, "root", "python3")
	for _, warm := range []string{"command=1", "python=1"} {
		c := openWarm(t, testkit.AsRoot(t), warm, "--max-running", "1")
		dead := idle(t, c)[0]
		victim := dead
		if warm != "command=1" {
			victim = testkit.Children(t, dead)[0]
		}
		if err := unix.Kill(victim, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		testkit.WaitGone(t, dead)
		c.send(`{"type":"run","id":"1","code":"print(1)","lang":"python"}`)
		if r := c.ended("1"); r.Stdout.Text != "1\n" {
			t.Errorf("%+v", r)
		}
		testkit.Eventually(t, "another is there", func() bool { return len(idle(t, c)) == 1 })
		c.close()
	}
}

// TestWarmMemberIsDying: one that was killed gets no request, though the kernel has not
// ended it yet: neither its end is told as the run's, nor is the text run twice.
func TestWarmMemberIsDying(t *testing.T) {
	testkit.Requires(t, "root", "python3")
	dir := testkit.Dir(t)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for i := range 6 { // without the control it is right now and then
		c := openWarm(t, testkit.AsRoot(t), "python=3", "--max-running", "1", "-v", dir+":/data:rw")
		inits := idle(t, c)
		slices.Reverse(inits) // the one that is given out first dies last
		for _, init := range inits {
			if err := unix.Kill(testkit.Children(t, init)[0], unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		c.send(`{"type":"run","id":"1","code":"open('/data/%d','a').write('x')","lang":"python"}`, i)
		c.ended("1")
		if ran, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(i))); err != nil || string(ran) != "x" {
			t.Errorf("%d: it was run so often: %q, %v", i, ran, err)
		}
		c.in.Close()
		c.p.Wait() // it may say that they end while they wait
	}
}

// thief is what an interpreter starts before it waits: it takes the first byte of a text
// from the file that is not at its place yet, says so, and kills the interpreter.
const thief = `import os
parent = os.getpid()
if os.path.exists('/code/.text') and os.fork() == 0:
    text, seen = os.open('/code/.text', os.O_RDONLY), os.open('/data/seen', os.O_WRONLY | os.O_APPEND)
    os.write(seen, b'a')
    while not os.pread(text, 1, 0):
        pass
    os.write(seen, b'b')
    os.kill(parent, 9)
    os._exit(0)
`

// TestWarmTextIsTaken: a text of which the interpreter's sandbox can have read anything
// is run in no other one, whatever became of the interpreter.
func TestWarmTextIsTaken(t *testing.T) {
	testkit.Requires(t, "root", "python3")
	dir := testkit.Dir(t)
	seen := filepath.Join(dir, "seen")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(dir, "sitecustomize.py"), thief)
	for i := range 6 { // without the control it is right now and then
		write(seen, "")
		c := openWarm(t, testkit.AsRoot(t), "python=1", "--cpus", "2", "--max-running", "1", "-v", dir+":/data:rw", "-e", "PYTHONPATH=/data")
		testkit.Eventually(t, "the thief waits", func() bool { text, _ := os.ReadFile(seen); return string(text) == "a" })
		c.send(`{"type":"run","id":"1","code":"import time; time.sleep(60)\n#%s","lang":"python"}`, strings.Repeat("x", 2<<20-100))
		r := c.lastOf("1").Result
		// The sandbox that takes its place may have its thief already.
		if text, err := os.ReadFile(seen); err != nil || strings.TrimSuffix(string(text), "a") != "ab" || !r.Warm || r.Outcome != result.Signaled {
			t.Errorf("%d: %q, %v; warm %t, %s, exit %d", i, text, err, r.Warm, r.Outcome, r.ExitCode)
		}
		c.in.Close()
		c.p.Wait()
	}
}

// stopped opens a session with one sandbox for any program, whose init is stopped: as if
// it took its time to put the files of a request in their place.
func stopped(t *testing.T, flags ...string) (c *client, init int) {
	t.Helper()
	c = openWarm(t, testkit.AsRoot(t), "command=1", append([]string{"--max-running", "2"}, flags...)...)
	init = idle(t, c)[0]
	signal(t, init, unix.SIGSTOP)
	return c, init
}

// given waits until the one sandbox has been given out, and another takes its place.
func given(t *testing.T, c *client) {
	t.Helper()
	testkit.Eventually(t, "the next is there", func() bool { return len(idle(t, c)) == 2 })
}

func signal(t *testing.T, pid int, sig unix.Signal) {
	t.Helper()
	if err := unix.Kill(pid, sig); err != nil {
		t.Fatal(err)
	}
}

// TestWarmClockBeginsAtTheExec: what init does with a request is no time of its
// program's, as in a run that is made for it.
func TestWarmClockBeginsAtTheExec(t *testing.T) {
	testkit.Requires(t, "root")
	c, init := stopped(t)
	c.sh("slow", "echo x", `,"options":{"timeout":"3s"}`)
	given(t, c)
	c.sh("clock", "sleep 3.2", `,"options":{"timeout":"1m"}`)
	c.ended("clock")
	signal(t, init, unix.SIGCONT)
	if r := c.ended("slow"); !r.Warm || r.Stdout.Text != "x\n" || r.WallMS >= 3000 {
		t.Errorf("%+v", r)
	}
	c.sh("limit", "sleep 1000", `,"options":{"timeout":"0.3s"}`)
	if r := c.want("result", "limit").Result; r.Outcome != result.Timeout || r.WallMS < 300 {
		t.Errorf("%+v", r)
	}
	c.close()
}

// TestWarmWordsComeTogether: a program that has begun and ended, and its sandbox with it,
// before the session looks at any of that has its whole output.
func TestWarmWordsComeTogether(t *testing.T) {
	testkit.Requires(t, "root")
	for range 5 { // what is looked at first is chance
		c, init := stopped(t)
		c.sh("1", "echo x", "")
		given(t, c)
		signal(t, c.p.PID(), unix.SIGSTOP)
		signal(t, init, unix.SIGCONT)
		testkit.Eventually(t, "its end", func() bool { return testkit.Dead(init) })
		signal(t, c.p.PID(), unix.SIGCONT)
		if r := c.ended("1"); !r.Warm || r.Stdout.Text != "x\n" {
			t.Errorf("%+v", r)
		}
		c.close()
	}
}

// TestWarmDiesBeforeTheExec: a request whose sandbox ends when it has the request, and
// has executed nothing of it, has another sandbox, once.
func TestWarmDiesBeforeTheExec(t *testing.T) {
	testkit.Requires(t, "root")
	for name, victim := range map[string]func(init int) int{
		"program": func(init int) int { return testkit.Children(t, init)[0] }, "init": func(init int) int { return init },
	} {
		dir := testkit.Dir(t)
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		c, init := stopped(t, "-v", dir+":/data:rw")
		c.sh("1", "echo x >>/data/ran; cat", `,"stdin":"in","files":[{"path":"a","text":"b"}]`)
		given(t, c)
		pid := victim(init)
		signal(t, pid, unix.SIGKILL)
		testkit.Eventually(t, "its end", func() bool { return testkit.Dead(pid) })
		if pid != init {
			signal(t, init, unix.SIGCONT)
		}
		if r := c.ended("1"); r.Stdout.Text != "in" {
			t.Errorf("%s: %+v", name, r)
		}
		if ran, err := os.ReadFile(dir + "/ran"); err != nil || string(ran) != "x\n" {
			t.Errorf("%s: it was run so often: %q, %v", name, ran, err)
		}
		c.close()
	}
}
