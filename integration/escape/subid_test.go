package escape

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

// allotted is this host with other files in /etc, in a mount namespace of the
// runs': the ordinary user has a name, and the ids that the test gives it.
type allotted struct {
	who   testkit.Who
	dir   string // of the user's, for what a run is shown
	locks string // the user's runtime directory, one for all runs
	setup string // more for root to do first
}

// firstID is where the tests' ranges begin.
const firstID = 700000

// allot gives the user ids: lines of /etc/subuid and /etc/subgid, "USER" in them
// is its name.
func allot(t *testing.T, subuid, subgid string) *allotted {
	t.Helper()
	testkit.Requires(t, "root", "unshare", "setpriv", "newuidmap", "newgidmap", "userns")
	a := &allotted{who: testkit.AsUser(t), dir: testkit.Dir(t)}
	etc := testkit.Dir(t)
	id := strconv.Itoa(a.who.UID)
	for name, text := range map[string]string{
		"passwd": "root:x:0:0::/root:/bin/sh\nUSER:x:" + id + ":" + id + "::/nonexistent:/bin/sh\n",
		"subuid": subuid, "subgid": subgid,
	} {
		write(t, filepath.Join(etc, name), text)
	}
	a.locks = filepath.Join(etc, "locks")
	if err := os.Mkdir(a.locks, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{a.locks, a.dir} {
		if err := os.Chown(path, a.who.UID, a.who.GID); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"passwd", "subuid", "subgid"} {
		a.setup += "mount --bind " + etc + "/" + name + " /etc/" + name + "\n"
	}
	a.setup += "mount -t tmpfs tmpfs /run\nmkdir -p /run/user/" + id + "\nmount --bind " + a.locks + " /run/user/" + id + "\n"
	return a
}

// span gives both kinds of ids, count of them from firstID on.
func span(t *testing.T, count int) *allotted {
	line := "USER:" + strconv.Itoa(firstID) + ":" + strconv.Itoa(count) + "\n"
	return allot(t, line, line)
}

// opts starts runs there.
func (a *allotted) opts(t *testing.T) testkit.Opts {
	t.Helper()
	id := strconv.Itoa(a.who.UID)
	return testkit.Opts{Who: testkit.AsRoot(t), Strict: true, Setup: func(cmd *exec.Cmd) {
		path, err := exec.LookPath("unshare")
		if err != nil {
			t.Fatal(err)
		}
		become := a.setup + "exec setpriv --reuid " + id + " --regid " + id + " --clear-groups \"$@\""
		cmd.Path, cmd.Args = path, append([]string{"unshare", "--mount", "--propagation", "private", "sh", "-ec", become, "sh"}, cmd.Args...)
	}}
}

// run is a run of the user's.
func (a *allotted) run(t *testing.T, args ...string) testkit.Output {
	t.Helper()
	return testkit.Run(t, a.opts(t), append(a.who.Flags(), args...)...)
}

func (a *allotted) sh(t *testing.T, script string, flags ...string) testkit.Output {
	t.Helper()
	return a.run(t, append(flags, "--", "sh", "-c", script)...)
}

func (a *allotted) hold(t *testing.T, flags ...string) *live {
	t.Helper()
	return hold(t, a.opts(t), "true", append(a.who.Flags(), append(flags, "--timeout", "120s")...)...) // emulated machines are slow
}

// whose checks the result's word against the ranges, and gives the id.
func whose(t *testing.T, o testkit.Output) int {
	t.Helper()
	h := o.Result.HostID
	if h == nil || !h.Own || h.Why != "" || h.UID < firstID || h.GID < firstID {
		t.Fatalf("host id %+v, want one of the sandbox's own\nexit %d\nstderr: %s", h, o.Exit, o.Stderr)
	}
	return h.UID
}

// refused checks a refusal's line.
func refused(t *testing.T, o testkit.Output, line string) {
	t.Helper()
	if first, _, _ := strings.Cut(o.Stderr, "\n"); o.Exit != 125 || first != "sandglass: error: "+line {
		t.Errorf("exit %d: %s\nwant: %s", o.Exit, o.Stderr, line)
	}
}

// Two sandboxes of one user, and the user, have three owners on the host. Each
// id is free again when its sandbox has ended, also when its supervisor was
// killed, and taken by nobody before.
func TestUserSandboxesHaveIDsOfTheirOwn(t *testing.T) {
	a := span(t, 2)
	one, two := a.hold(t), a.hold(t)
	var all []int
	for _, l := range []*live{one, two} {
		for _, field := range []string{"Uid", "Gid"} {
			ids := []int{hostUID(t, l.init, field), hostUID(t, l.program, field)}
			if ids[0] != ids[1] {
				t.Errorf("%s of init and program: %v, want one", field, ids)
			}
			all = append(all, ids[0])
		}
		onEveryThread(t, l.init, fmt.Sprintf("Uid:\t%[1]d\t%[1]d\t%[1]d\t%[1]d", all[len(all)-2]), fmt.Sprintf("Gid:\t%[1]d\t%[1]d\t%[1]d\t%[1]d", all[len(all)-1]), "Groups:\t ")
		if got := status(t, l.program, "Groups"); got != "" {
			t.Errorf("groups %q, want none of the caller's", got)
		}
		text, err := os.ReadFile("/proc/" + strconv.Itoa(l.program) + "/uid_map")
		if want := "65534 " + strconv.Itoa(all[len(all)-2]) + " 1"; err != nil || strings.Join(strings.Fields(string(text)), " ") != want {
			t.Errorf("uid map %q (%v), want %q: the caller is not in it", text, err, want)
		}
	}
	uids := []int{all[0], all[2]}
	slices.Sort(uids)
	if !slices.Equal(uids, []int{firstID, firstID + 1}) || all[1] == all[3] {
		t.Errorf("user and group ids %v, want two of each", all)
	}

	refused(t, a.sh(t, "true", "--host-id", "own"), "--host-id own: all host ids are in use")
	o := a.sh(t, "true")
	if want := (result.HostID{UID: a.who.UID, GID: a.who.GID, Why: "all host ids are in use"}); o.Exit != 0 || o.Result.HostID == nil || *o.Result.HostID != want {
		t.Errorf("exit %d, host id %+v, want %+v: %s", o.Exit, o.Result.HostID, want, o.Stderr)
	}

	two.Signal(syscall.SIGKILL) // its supervisor
	testkit.WaitGone(t, two.init)
	if got := whose(t, a.sh(t, "true", "--host-id", "own")); got != all[2] {
		t.Errorf("id %d, want %d, the killed one's", got, all[2])
	}
	one.release()
	if got := whose(t, one.Wait()); got != all[0] {
		t.Errorf("the first sandbox's result has the id %d, the kernel had %d", got, all[0])
	}
}

// A sandbox's own id can do what the caller's can: each ending is told as it was,
// each limit holds, and the supervisor, which is another user, ends it.
func TestEndingsWithAnIDOfItsOwn(t *testing.T) {
	testkit.Requires(t, "python3")
	a := span(t, 64)
	for _, c := range []struct {
		name, script string
		flags        []string
		exit         int
		outcome      result.Outcome
	}{
		{"exit code", "exit 7", nil, 7, result.Exited},
		{"signal", "kill -9 $$", nil, 137, result.Signaled},
		{"time", "trap '' TERM; setsid sleep 1000 & sleep 1000", []string{"--timeout", "500ms"}, 124, result.Timeout},
		{"cpu time", "while :; do :; done", []string{"--cpu-time", "300ms"}, 124, result.CPUTime},
		{"memory", "exec python3 -c 'x = b\"x\" * (200 << 20); input()'", []string{"--memory", "64m", "-i"}, 137, result.Memory},
		// Files without a path, which only who may look at descriptors can count.
		{"memory of descriptors", "exec python3 -c 'import os\nwhile True: os.write(os.memfd_create(\"x\"), b\"x\" * (1 << 20))'", []string{"--memory", "64m", "--timeout", "60s"}, 137, result.Memory},
		{"output", "yes", []string{"--output-limit", "1k", "--on-output-limit", "kill"}, 153, result.Output},
		{"scratch", "echo a >/tmp/a; echo b >$HOME/b; mkdir -m 700 /work/c && cat /tmp/a $HOME/b && ! echo x 2>/dev/null >/c", nil, 0, result.Exited},
		{"streams anew", "echo a >/dev/stdout; echo b >/dev/stderr; cat /dev/stdin", []string{"-i"}, 0, result.Exited},
		{"terminals", "python3 -c 'import pty; pty.spawn([\"true\"])'", []string{"--pty"}, 0, result.Exited},
	} {
		t.Run(c.name, func(t *testing.T) {
			opts := a.opts(t)
			if slices.Contains(c.flags, "-i") {
				opts.Stdin = strings.NewReader("")
				if c.outcome == result.Memory { // it holds what it has until it is ended
					r, w, err := os.Pipe()
					if err != nil {
						t.Fatal(err)
					}
					defer r.Close()
					defer w.Close()
					opts.Stdin = r
				}
			}
			o := testkit.Run(t, opts, append(append(a.who.Flags(), c.flags...), "--host-id", "own", "--", "sh", "-c", c.script)...)
			if o.Exit != c.exit || o.Result.Outcome != c.outcome {
				t.Fatalf("exit %d, %s; want %d, %s\nstdout: %.200s\nstderr: %s %s", o.Exit, o.Result.Outcome, c.exit, c.outcome, o.Stdout, o.Stderr, o.Result.Error)
			}
			whose(t, o)
		})
	}
}
