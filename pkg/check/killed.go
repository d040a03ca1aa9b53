package check

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sandglass/pkg/sandbox"

	"golang.org/x/sys/unix"
)

// victimArg0 is argv[0] of the supervisor that is killed: this binary, which
// then does nothing but run one sandbox.
const victimArg0 = "sandglass-check-victim"

// preyMode is the argument of the other victim, see prey.
const preyMode = "prey"

func victimWanted() bool { return len(os.Args) == 2 && os.Args[0] == victimArg0 }

// victimMain runs the Spec of its argument and passes the output on.
func victimMain() {
	if os.Args[1] == preyMode {
		preyMain()
	}
	var spec sandbox.Spec
	if err := json.Unmarshal([]byte(os.Args[1]), &spec.Spec); err != nil {
		os.Exit(1)
	}
	spec.Stdout, spec.Stderr = os.Stdout, os.Stderr
	sandbox.Run(context.Background(), spec)
	os.Exit(0)
}

// supervisorKilled kills a supervisor while its sandbox runs, and waits for
// every process of the sandbox to end. Nobody is left to end them.
func supervisorKilled(ctx context.Context, s *suite, c *control) verdict {
	mark := s.bait.mark + "k"
	victim := *c
	victim.probe, victim.args = "daemons", func(*bait) []string { return []string{mark} }
	spec := s.spec(&victim)
	spec.Program.Args = []string{"stay", mark}
	text, err := json.Marshal(spec.Spec)
	if err != nil {
		return leak("%v", err)
	}
	ready := &signaler{want: []byte(`"staying"`), seen: make(chan struct{})}
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Args = []string{victimArg0, string(text)}
	cmd.Stdout = ready
	if err := cmd.Start(); err != nil {
		return leak("the supervisor was not started: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-ready.seen:
	case err := <-ended:
		return leak("the supervisor ended by itself: %v", err)
	}
	v := killAndWatch(cmd.Process, mark, patience)
	<-ended
	if !v.held {
		return v
	}
	return s.swept(ctx, cmd.Process.Pid)
}

// killAndWatch holds a pidfd of each process of the sandbox, so that the end
// that it waits for is theirs and not that of another with the same number.
func killAndWatch(supervisor *os.Process, mark string, patience time.Duration) verdict {
	var fds []unix.PollFd
	for _, pid := range marked(mark) {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		defer unix.Close(fd)
		fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	if len(fds) == 0 {
		supervisor.Kill()
		return leak("the sandbox's processes were not found, so their end proves nothing")
	}
	if err := supervisor.Kill(); err != nil {
		return leak("kill: %v", err)
	}
	deadline := time.Now().Add(patience)
	for i := range fds {
		for fds[i].Revents == 0 {
			left := time.Until(deadline).Milliseconds()
			n, err := unix.Poll(fds[i:i+1], int(max(left, 0)))
			// What has ended is seen even where we come back to look too late.
			if n == 0 && left <= 0 || err != nil && !errors.Is(err, unix.EINTR) {
				return leak("a process of the sandbox lives %v after its supervisor", patience)
			}
		}
	}
	return held("%d processes ended with it", len(fds))
}

// swept: the next run takes away what the killed one could not.
func (s *suite) swept(ctx context.Context, pid int) verdict {
	w := s.sandbox(ctx, &control{id: "sweep", probe: "hello"})
	if w.err != nil {
		return leak("the next run: %v", w.err)
	}
	if left := cgroupsLeft("/sys/fs/cgroup", pid, patience); len(left) > 0 {
		return leak("%s is left after the next run", left[0])
	}
	return held("its processes ended with it, and the next run took its cgroup away")
}

// cgroupsGone runs last of all.
func cgroupsGone(context.Context, *suite, *control) verdict {
	if left := cgroupsLeft("/sys/fs/cgroup", os.Getpid(), patience); len(left) > 0 {
		return leak("%s", left[0])
	}
	return held("none")
}

// cgroupsLeft are the groups of sandboxes that process pid made and that stay. A
// live process of another PID namespace, of a second container for instance,
// can have the same number: its groups go when its run ends.
func cgroupsLeft(root string, pid int, patience time.Duration) []string {
	deadline := time.Now().Add(patience)
	for {
		list := cgroupsOf(root, pid)
		if len(list) == 0 || time.Now().After(deadline) {
			return list
		}
		unix.Poll(nil, 10)
	}
}

// cgroupsOf are the groups below root of the sandboxes that process pid made.
func cgroupsOf(root string, pid int) []string {
	var list []string
	prefix := "sandglass-" + strconv.Itoa(pid) + "-"
	filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), prefix) {
			list = append(list, path)
		}
		return nil
	})
	return list
}
