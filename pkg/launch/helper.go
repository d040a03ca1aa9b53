package launch

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"sandglass/internal/refusal"
	"sandglass/internal/sys"

	"golang.org/x/sys/unix"
)

// helperTime bounds newuidmap and newgidmap, which take a millisecond each. On a
// busy host, or where the user database is slow, it is more.
const helperTime = 10 * time.Second

// mapByHelpers maps the ids of a new user namespace's first process by
// newuidmap and newgidmap, both at once, and reads back what they did. The
// process goes on meanwhile: what it may do before it has its ids is its own
// start, as the caller, and to make things in namespaces of its own.
func mapByHelpers(id *Identity, pid int) error {
	var gid error
	var other sync.WaitGroup
	other.Go(func() { gid = runHelper(id.GIDHelper, pid, id.InsideGID, id.HostGID) })
	uid := runHelper(id.UIDHelper, pid, id.InsideUID, id.HostUID)
	other.Wait()
	if uid != nil {
		return uid
	}
	if gid != nil {
		return gid
	}
	proc := "/proc/" + strconv.Itoa(pid)
	if err := mappedAs(proc+"/uid_map", id.UIDHelper, id.InsideUID, id.HostUID); err != nil {
		return err
	}
	return mappedAs(proc+"/gid_map", id.GIDHelper, id.InsideGID, id.HostGID)
}

// mappedAs says whether a map is of that one id and of nothing else: a helper
// that is not what it seems must not leave a sandbox with an id of somebody's.
func mappedAs(path, helper string, inside, host int) error {
	text, err := readProc(path)
	if err != nil {
		return err
	}
	want := []string{strconv.Itoa(inside), strconv.Itoa(host), "1"}
	got := strings.Fields(string(text))
	if strings.Join(got, " ") != strings.Join(want, " ") {
		return helperRefused(refusal.Newf("%s said that it has mapped the ids, and the kernel has %q, not %q", helper, strings.Join(got, " "), strings.Join(want, " ")))
	}
	return nil
}

// helperRefused adds the way that needs no helper.
func helperRefused(r *refusal.Error) error {
	return r.Hint("--host-id caller   # the sandbox has the caller's own id on the host then")
}

// helper is one that runs.
type helper struct {
	path       string
	pid, pidfd int
	words      int // what it says: the reading end of a pipe
}

// runHelper has a helper map one id, and waits for it.
func runHelper(path string, pid, inside, host int) error {
	h, err := startHelper(path, pid, inside, host)
	if err != nil {
		return err
	}
	return h.wait()
}

// startHelper starts a set-uid program of the host's: with an empty environment,
// nothing open but /dev/null and a pipe, in a session of its own.
func startHelper(path string, pid, inside, host int) (*helper, error) {
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: "/dev/null", Err: err}
	}
	defer unix.Close(null)
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, os.NewSyscallError("pipe2", err)
	}
	defer unix.Close(p[1])
	c := &sys.Calls{}
	c.Add("new session", unix.SYS_SETSID)
	c.Add("stdin", unix.SYS_DUP3, uintptr(null), 0, 0)
	c.Add("stdout", unix.SYS_DUP3, uintptr(null), 1, 0)
	c.Add("stderr", unix.SYS_DUP3, uintptr(p[1]), 2, 0)
	c.Add("close descriptors", unix.SYS_CLOSE_RANGE, 3, uintptr(^uint32(0)), 0)
	c.DefaultSignals("default signals")
	c.SignalMask("unblock signals", 0)
	h := &helper{path: path, words: p[0]}
	prog := &sys.Program{
		Calls: c, Paths: []string{path}, Cgroup: -1,
		Argv: []string{path, strconv.Itoa(pid), strconv.Itoa(inside), strconv.Itoa(host), "1"},
	}
	if h.pid, h.pidfd, err = startBlocked(prog); err != nil {
		unix.Close(p[0])
		return nil, helperRefused(refusal.Newf("%s could not be started: %v", path, err))
	}
	return h, nil
}

// startBlocked is sys.Start with every signal blocked on this thread.
func startBlocked(p *sys.Program) (pid, pidfd int, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	restore, err := sys.BlockSignals()
	if err != nil {
		return 0, -1, err
	}
	defer restore()
	return sys.Start(p)
}

// wait waits for the helper's end, and says in its own words why it failed.
func (h *helper) wait() error {
	defer unix.Close(h.words)
	defer unix.Close(h.pidfd)
	late := !endsBy(h.pidfd, time.Now().Add(helperTime))
	if late {
		kill(h.pidfd) // its real user is still ours, so we may
	}
	status := await(h.pid)
	if late {
		return helperRefused(refusal.Newf("%s did not end within %v", h.path, helperTime))
	}
	if status.Exited() && status.ExitStatus() == 0 {
		return nil
	}
	said := make([]byte, 300)
	n, _ := unix.Read(h.words, said)
	why := strings.TrimSpace(strings.ToValidUTF8(string(said[:max(n, 0)]), "?"))
	if why == "" {
		why = "exit status " + strconv.Itoa(status.ExitStatus())
	}
	return helperRefused(refusal.Newf("%s did not map the ids: %s", h.path, refusal.Word(why)).
		Hint("ls -l %s; cat /etc/subuid /etc/subgid; grep subid /etc/nsswitch.conf", h.path))
}

// endsBy waits until then for the end of a process.
func endsBy(pidfd int, until time.Time) bool {
	for {
		left := time.Until(until)
		if left <= 0 {
			return false
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, int(left.Milliseconds())+1)
		if n > 0 || err != nil && err != unix.EINTR {
			return true
		}
	}
}

// enterable opens init's user namespace where its ids are not the caller's. Its
// owner has every capability in it, and needs them for the files and descriptors
// of these ids.
func (s *session) enterable() error {
	if !s.box.Identity.helped() {
		return nil
	}
	ns, err := sys.OwnUserNamespace(s.pid)
	if err != nil {
		return err
	}
	s.end.Owned = ns
	if s.box.Denials != nil {
		s.box.Denials.Readlink, s.box.Denials.Getxattr = ns.Readlink, ns.Getxattr
	}
	return nil
}
