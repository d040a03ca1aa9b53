package session

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sandglass/internal/testkit"

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
