package runtimes

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const probeBytes = 4 << 10 // of its answer

var probeTimeout = 5 * time.Second // a variable for the test alone

// ask is the last resort for a wrapper script that is no known shim: it is run
// once, outside the sandbox, and asked for the interpreter behind it. It is the
// caller's own program on the caller's own PATH, so it gets the caller's own
// environment; their shell would have run it just the same.
//
// What keeps hostile code from being that program: it must belong to root or
// to the caller, neither it nor its directory may be writable by others, and it
// runs in / rather than in the current directory, whose files are a model's as
// often as not. Who mounts a directory of PATH writable must set NoProbe.
func (f Finder) ask(lang *Language, path, real string) (string, error) {
	if f.NoProbe {
		return "", skip(quote(path) + " is a script of an unknown kind")
	}
	if !trusted(real) || !trusted(filepath.Dir(real)) {
		return "", skip(quote(path) + " is a script that others may have written")
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	answer := limited{}
	cmd := exec.CommandContext(ctx, path, lang.asks...)
	cmd.Env = append(os.Environ(), "PATH="+f.Path)
	cmd.Dir = "/"
	cmd.Stdout = &answer
	// A group of its own: the time limit must also hold for what the script starts.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", skip(quote(path) + " did not say within 5 s which interpreter it runs")
		}
		return "", skip(quote(path) + " did not say which interpreter it runs: " + err.Error())
	}
	exe := strings.TrimSpace(answer.buf.String())
	if !filepath.IsAbs(exe) || filepath.Clean(exe) != exe || hasControl(exe) || executable(exe) != nil || isScript(exe) {
		return "", skip(quote(path) + " did not name an interpreter")
	}
	return exe, nil
}

// trusted: nobody but root and the caller can have written it.
func trusted(path string) bool {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil || st.Mode&0o022 != 0 {
		return false
	}
	return st.Uid == 0 || st.Uid == uint32(os.Geteuid())
}

// isScript: an answer that is a script again could ask in circles.
func isScript(path string) bool {
	real, _, err := resolve(path)
	if err != nil {
		return true
	}
	head, err := readFile(real, 2, false)
	return err == nil && string(head) == "#!"
}

// limited keeps the head of what is written and swallows the rest.
type limited struct{ buf bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	l.buf.Write(p[:min(len(p), probeBytes-l.buf.Len())])
	return len(p), nil
}
