package child

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"sandglass/internal/refusal"
)

// guardName is what this binary is called when it is the guard of a program.
const guardName = "sandglass-image-guard"

// Guard has a program, and all that it starts, end with this process however that
// ends. The kernel's own signal for that (PR_SET_PDEATHSIG) is of a direct child's
// and is forgotten when it changes its ids, as root's apt-get does: it went on
// downloading below the next build. Between the two is therefore this binary once
// more, which reads a pipe that ends when this process does, and whom the program's
// orphans belong to. keep stays open until all of them have ended. done is called
// when the program has.
func Guard(cmd *exec.Cmd, keep *os.File) (done func(), err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	first := 3 + len(cmd.ExtraFiles)
	cmd.ExtraFiles = append(cmd.ExtraFiles, r, keep)
	cmd.Args = append([]string{guardName, strconv.Itoa(first), cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/proc/self/exe"
	end := func() { r.Close(); w.Close() }
	running.Lock()
	defer running.Unlock()
	running.guards[cmd] = end
	return func() {
		running.Lock()
		delete(running.guards, cmd)
		running.Unlock()
		end()
	}, nil
}

// Main is the guard's, and returns in any other process.
func Main() {
	if os.Args[0] != guardName || len(os.Args) < 3 {
		return
	}
	first, err := strconv.Atoi(os.Args[1])
	if err != nil || first < 3 {
		return
	}
	os.Exit(guard(first, os.Args[2:]))
}

// guard runs a program to its end, or to the end of whoever holds the other end of
// the pipe.
func guard(first int, argv []string) int {
	// Caught and not ignored: who is started inherits what is ignored. The signals
	// are for the group, and the program has its own opinion of them.
	signal.Notify(make(chan os.Signal, 1), unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT)
	unix.CloseOnExec(first)
	unix.CloseOnExec(first + 1)
	files := []uintptr{0, 1, 2}
	for fd := 3; fd < first; fd++ {
		files = append(files, uintptr(fd))
	}
	err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	leader := 0
	if err == nil {
		leader, err = syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{Env: os.Environ(), Files: files})
	}
	if err != nil {
		os.Stderr.WriteString("E: " + refusal.Word(argv[0]) + ": " + err.Error() + "\n") // as apt says it
		return refusal.ExitRefused
	}
	var ending atomic.Bool
	go func() {
		for {
			if _, err := unix.Read(first, make([]byte, 1)); err != unix.EINTR {
				break
			}
		}
		ending.Store(true)
		killChildren()
	}()
	return reap(leader, &ending)
}

// reaping is held while a child is reaped, and while children are killed by their
// numbers: one that has ended and is not reaped keeps its number to itself.
var reaping sync.Mutex

// reap waits for all, and says how the leader ended. Who is left when it has is
// killed; the children of one that ends are this process's before it can be waited
// for, so that a look after each finds the last one.
func reap(leader int, ending *atomic.Bool) (code int) {
	for {
		var status unix.WaitStatus
		if unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
			continue
		}
		reaping.Lock()
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		reaping.Unlock()
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return code // there are none
		}
		if pid == leader {
			ending.Store(true)
			if code = status.ExitStatus(); status.Signaled() {
				code = 128 + int(status.Signal())
			}
		}
		if ending.Load() {
			killChildren()
		}
	}
}

func killChildren() {
	reaping.Lock()
	defer reaping.Unlock()
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, l := range lists {
		text, _ := os.ReadFile(l) // of a thread that has ended: its children are another's
		for f := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(f); err == nil {
				_ = unix.Kill(pid, unix.SIGKILL) // see reaping
			}
		}
	}
}
