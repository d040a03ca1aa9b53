package session

import (
	"encoding/json"
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

// openWarm starts a session and waits until all that it keeps ready is there.
func openWarm(t *testing.T, who testkit.Who, warm string, flags ...string) *client {
	t.Helper()
	c := open(t, who, append([]string{"--warm", warm}, flags...)...)
	if r := c.want("ready", ""); fmt.Sprint(r.Warm) != fmt.Sprint(c.hello.Warm) || len(r.Warm) == 0 {
		t.Fatalf("ready with %v, hello with %v", r.Warm, c.hello.Warm)
	}
	return c
}

// compared is what must be the same of two runs, warm and cold: everything but
// times, usage, numbers of namespaces and ids, and what names the request.
func compared(r reply) string {
	res := r.Result
	if r.Type == "error" {
		return fmt.Sprint(r.Code, r.Error, r.Hints, r.ExitCode)
	}
	res.Warm, res.WallMS, res.SetupMS, res.CPUMS, res.MemoryPeakBytes, res.PidsPeak = false, 0, 0, 0, 0, 0
	if res.HostID != nil {
		res.HostID.UID, res.HostID.GID = 0, 0
	}
	for i := range res.Layers {
		for name := range res.Layers[i].ReadBack {
			if strings.Contains("user mnt pid net ipc uts Uid Gid", name) {
				res.Layers[i].ReadBack[name] = ""
			}
		}
	}
	text, err := json.MarshalIndent(&res, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// lastOf is the one reply to a run.
func (c *client) lastOf(id string) reply {
	c.t.Helper()
	r := c.read()
	if r.ID != id || r.Type != "result" && r.Type != "error" {
		c.t.Fatalf("%+v", r)
	}
	return r
}

// both runs one request warm and cold, and compares them whole.
func both(t *testing.T, warm, cold *client, id, fields string) (reply, bool) {
	t.Helper()
	var got [2]reply
	for i, c := range []*client{warm, cold} {
		c.send(`{"type":"run","id":%q,%s}`, id, fields)
		got[i] = c.lastOf(id)
	}
	if a, b := compared(got[0]), compared(got[1]); a != b {
		t.Errorf("%s differs:\n%s", id, different(a, b))
	}
	if got[1].Result.Warm {
		t.Errorf("%s: a cold run says that it is warm", id)
	}
	return got[0], got[0].Type == "error" || got[0].Result.Warm
}

// different are the lines of one text that the other has not.
func different(warm, cold string) string {
	var b strings.Builder
	for _, side := range [][2]string{{warm, cold}, {cold, warm}} {
		for line := range strings.Lines(side[0]) {
			if !strings.Contains(side[1], line) {
				b.WriteString(line)
			}
		}
		b.WriteString("--\n")
	}
	return b.String()
}

// commands are requests that a sandbox can serve which waits for any program.
var commands = []string{
	`"command":["/bin/true"]`,
	`"command":["sh","-c","echo out; echo err >&2; exit 7"]`,
	`"command":["sh","-c","kill -9 $$"]`,
	`"command":["sh","-c","cat; readlink /proc/self/fd/* | grep -v pipe; ls /proc/self/fd | wc -l"],"stdin":"in\n"`,
	`"command":["sh","-c","env | sort; pwd; id; umask; ulimit -a | grep -v process; hostname"],"env":{"A":"b c","PATH":"/bin:/usr/bin"}`,
	`"command":["no-such-command"]`,
	`"command":["/etc/passwd"]`,
	`"command":["sh","-c","sleep 100"],"options":{"timeout":0.3}`,
	`"command":["sh","-c","while :; do :; done"],"options":{"cpu-time":0.3}`,
	`"command":["sh","-c","head -c 100000 /dev/zero | tr '\\0' x"],"options":{"output-limit":"1k"}`,
	`"command":["sh","-c","ls -lAR --time-style=+ . | grep -v total; cat a/b c; echo own >>c; ./x"],"files":[{"path":"a/b","text":"text"},{"path":"c","base64":"AAE="},{"path":"x","text":"#!/bin/sh\necho $0","executable":true}]`,
	`"command":["sh","-c","echo one >/out/a; mkdir /out/d; echo two >/out/d/b; ln -s /etc/passwd /out/l"],"artifacts":{"inline":"1k"}`,
	`"code":"ls -ldA --time-style=+ / /code /work; ls -lA --time-style=+ /code; cat $0; echo x >/code/y","lang":"sh"`,
	`"code":"exit $1","lang":"sh","args":["5"]`,
	`"command":["sh","-c","cut -d' ' -f4- /proc/self/mountinfo | sed 's/nobody//; s/sandglass-[0-9a-z-]*//g; s/size=[48]...k//; s/.id=[0-9]*//g' | sort; echo x >/x; mkdir /etc/x; mount -o remount,rw / 2>&1; unshare -r true"]`,
}

// TestWarmCommand: a sandbox that waits for any program gives what one that is
// made for it gives, with the same verdicts, limits and layers.
func TestWarmCommand(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		flags := []string{"--max-running", "1", "--memory", "64m"}
		cold := open(t, who, flags...)
		for list := range slices.Chunk(commands, 8) { // a small machine has memory for no more at once
			warm := openWarm(t, who, fmt.Sprintf("command=%d", len(list)), flags...)
			for i, fields := range list {
				if r, ok := both(t, warm, cold, fmt.Sprint(i), fields); !ok {
					t.Errorf("%s was run cold, or not: %s %q", fields, r.Type, r.Error)
				}
			}
			warm.close()
		}
		cold.close()
	})
}

// others are requests whose policy is not that of the pool, or that a sandbox
// which waits could not serve as a new one would.
var others = []string{
	`"command":["true"],"options":{"memory":"128m"}`,
	`"command":["true"],"options":{"cpus":0.5}`,
	`"command":["true"],"options":{"pids-limit":32}`,
	`"command":["true"],"options":{"disk":"32m"}`,
	`"command":["true"],"options":{"ulimit":["nofile=64"]}`,
	`"command":["true"],"options":{"user":"1234"}`,
	`"command":["true"],"options":{"workdir":"/tmp"}`,
	`"command":["true"],"options":{"volume":["/usr/share:/data:ro"]}`,
	`"command":["true"],"options":{"security-opt":["seccomp=minimal"]}`,
	`"command":["true"],"options":{"proc":"none"}`,
	`"command":["true"],"options":{"pty":true}`,
	`"command":["true"],"options":{"explain-denials":true}`,
	`"command":["true"],"options":{"allow-host":["example.org:443"]}`,
	`"code":"` + strings.Repeat("#", 3<<20) + `","lang":"sh"`,
}

// TestWarmIsTheSamePolicy: what asks for another sandbox gets a new one.
func TestWarmIsTheSamePolicy(t *testing.T) {
	who := testkit.AsUser(t)
	warm, cold := openWarm(t, who, "command=1", "--max-running", "1"), open(t, who, "--max-running", "1")
	for i, fields := range others {
		r, _ := both(t, warm, cold, fmt.Sprint(i), fields)
		if r.Type != "result" || r.Result.Warm {
			t.Errorf("%.100s: %+v", fields, r)
		}
	}
	// None of them has used it up.
	if r, ok := both(t, warm, cold, "last", commands[0]); !ok {
		t.Errorf("%+v", r.Result)
	}
	warm.close()
	cold.close()
}

// TestWarmIsRefused: what could never be ready is refused at the start.
func TestWarmIsRefused(t *testing.T) {
	who := testkit.AsUser(t)
	for _, c := range []struct{ flags, want string }{
		{"--warm command=1 --allow-host example.org", "a list of hosts cannot wait"},
		{"--warm command=1 --explain-denials", "cannot wait"},
		{"--warm command=64,python=64 --memory 1t", "more than the"},
		{"--warm command=1 -v /no/such/dir:/x", "/no/such/dir"},
		{"--warm command=1 --cgroup-parent /no/such", "/no/such does not exist\nhint: "}, // only an attempt shows it
	} {
		out := testkit.Run(t, testkit.Opts{Verb: "session", Who: who}, append(who.Flags(), strings.Fields(c.flags)...)...)
		if out.Exit != 125 || !strings.Contains(out.Stderr, c.want) || out.Stdout != "" {
			t.Errorf("%s: exit %d, %q, %q; want %q", c.flags, out.Exit, out.Stdout, out.Stderr, c.want)
		}
	}
}

// idle are the inits of the sandboxes that a session keeps ready: its children.
func idle(t *testing.T, c *client) []int {
	t.Helper()
	list := testkit.Children(t, c.p.PID())
	slices.Sort(list)
	return list
}

// TestWarmBeforeItsRelease: what waits runs nothing. In a sandbox for any program
// init and the program's process are as confined as they will be, and the way to
// write to the root is gone once that executes anything. An interpreter that runs
// has no descriptor but its streams and the FIFO that it reads, and init has none
// that leads to a file of the root.
func TestWarmBeforeItsRelease(t *testing.T) {
	testkit.Requires(t, "root", "python3")
	c := openWarm(t, testkit.AsRoot(t), "command=1")
	inits := idle(t, c)
	if len(inits) != 1 {
		t.Fatalf("inits %v", inits)
	}
	program := testkit.Children(t, inits[0])
	if len(program) != 1 || len(testkit.Children(t, program[0])) != 0 {
		t.Fatalf("programs %v", program)
	}
	for _, pid := range []int{program[0], inits[0]} {
		testkit.Eventually(t, fmt.Sprint(pid, " is confined"), func() bool { return confined(t, pid) })
	}
	exe := func(pid int) string { path, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); return path }
	if has := exe(program[0]); has == "" || has != exe(inits[0]) {
		t.Errorf("the program's process has executed %s", has)
	}
	if links := openFiles(t, program[0]); links != "pipe pipe pipe" {
		t.Errorf("the program's process has open %q", links)
	}
	c.sleeper("a", "")
	c.up("a")
	noFiles(t, inits[0])
	c.send(`{"type":"cancel","id":"a"}`)
	c.want("result", "a")
	c.close()

	c = openWarm(t, testkit.AsRoot(t), "python=1")
	inits = idle(t, c)
	if len(inits) != 1 {
		t.Fatalf("inits %v", inits)
	}
	if program = testkit.Children(t, inits[0]); len(program) != 1 {
		t.Fatalf("programs %v", program)
	}
	var links string
	testkit.Eventually(t, "the interpreter has opened its text", func() bool {
		links = openFiles(t, program[0])
		return strings.Contains(links, "/code/main.py")
	})
	if want := "pipe pipe pipe /code/main.py r"; links != want {
		t.Errorf("the interpreter has open %q, want %q", links, want)
	}
	noFiles(t, inits[0])
	c.close()
}

// noFiles: an init has nothing of the root open.
func noFiles(t *testing.T, init int) {
	t.Helper()
	for _, f := range strings.Fields(openFiles(t, init)) {
		if strings.Contains(f, "/") && filepath.Base(f) != "null" { // its own stdio
			t.Errorf("init has %s open", f)
		}
	}
}

// openFiles are the descriptors of a process: where they lead, and for a file of
// a name whether it may be written to.
func openFiles(t *testing.T, pid int) string {
	t.Helper()
	fds := fmt.Sprintf("/proc/%d/fd/", pid)
	entries, err := os.ReadDir(fds)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		path := fds + e.Name()
		to, err := os.Readlink(path)
		if err != nil {
			continue
		}
		if kind, _, found := strings.Cut(to, ":["); found {
			list = append(list, kind)
			continue
		}
		var st unix.Stat_t
		err = unix.Lstat(path, &st)
		if err == unix.ENOENT {
			continue // closed since: an interpreter that starts
		}
		if err != nil {
			t.Fatal(err)
		}
		how := "r"
		if st.Mode&0o200 != 0 {
			how = "w"
		}
		list = append(list, to, how)
	}
	return strings.Join(list, " ")
}

// TestWarmIsSingleUse: nothing of one run is there in the next one.
func TestWarmIsSingleUse(t *testing.T) {
	testkit.Requires(t, "python3", "node")
	who := testkit.AsUser(t)
	c := openWarm(t, who, "command=2,python=3,node=3", "--max-running", "1", "--memory", "160m")
	for i := range 2 {
		id := fmt.Sprint(i)
		c.sh(id, "ls -A /work /tmp /out /dev/shm; ipcs -q | grep -c 0x; for d in /work /tmp /out /dev/shm; do echo x >$d/left; done; ipcmk -Q >/dev/null; sleep 1000 & disown 2>/dev/null; echo", "")
		if r := c.ended(id); !r.Warm || r.Stdout.Text != "/dev/shm:\n\n/out:\n\n/tmp:\n\n/work:\n0\n\n" {
			t.Errorf("warm %v: %q", r.Warm, r.Stdout.Text)
		}
	}
	seen := map[string]bool{}
	for i := range 6 {
		id, lang, code := fmt.Sprint("r", i), "python", `import random,uuid,os,tempfile\nfor x in hash('x'),random.random(),uuid.uuid4(),uuid.uuid1(),os.urandom(8).hex(),tempfile.mktemp(): print(x)`
		if i >= 3 {
			lang, code = "node", `const c=require('crypto');for(const x of [Math.random(),c.randomUUID(),c.randomBytes(8).toString('hex')])console.log(x)`
		}
		c.send(`{"type":"run","id":%q,"code":"%s","lang":%q}`, id, code, lang)
		r := c.ended(id)
		if !r.Warm {
			t.Errorf("%s %d was run cold", lang, i)
		}
		for line := range strings.Lines(r.Stdout.Text) {
			if seen[line] {
				t.Errorf("%s: %q twice", lang, line)
			}
			seen[line] = true
		}
	}
	if len(seen) != 3*6+3*3 {
		t.Errorf("%d values: %v", len(seen), seen)
	}
	c.close()
}

// TestWarmCancel: a run in a sandbox that waited is cancelled as any other, and
// its limits hold from its release on.
func TestWarmCancel(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		c := openWarm(t, who, "command=2", "--max-running", "2", "--timeout", "1h")
		marker := c.sleeper("a", "")
		c.up("a")
		c.send(`{"type":"cancel","id":"a"}`)
		if r := c.want("result", "a").Result; r.Outcome != result.Canceled || !r.Warm {
			t.Errorf("%s, warm %v", r.Outcome, r.Warm)
		}
		gone(t, marker)
		c.close()
	})
}
