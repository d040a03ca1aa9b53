package parity

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sandglass/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

//go:embed testdata/probe.c
var probeSource string

// envRunc names a runc to compare with, instead of the one that go.mod names.
const envRunc = "SANDGLASS_TEST_RUNC"

// runc is the engine: its source is a dependency of go.mod, so that it is the
// same on every machine and the table of differences holds.
func runc(t *testing.T) string {
	t.Helper()
	testkit.Requires(t, "root", "userns")
	if own := os.Getenv(envRunc); own != "" {
		return own
	}
	testkit.Requires(t, "go", "gcc", "pkg-config")
	if err := exec.Command("pkg-config", "--exists", "libseccomp").Run(); err != nil {
		testkit.Skip(t, "libseccomp", "no libseccomp-dev, which runc is built with")
	}
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// built is a path that lasts as long as this process, and leaves nothing behind.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "parity-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "runc")
	cmd := exec.Command("go", "build", "-trimpath", "-tags", "seccomp", "-o", out, "github.com/opencontainers/runc")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build runc: %v\n%s", err, text)
	}
	if kept, err = os.Open(out); err != nil {
		return "", err
	}
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), kept.Fd()), nil
})

// kept is referenced, so that no garbage collection closes it.
var kept *os.File

// probe is the compiled program, where its file system can map ids: runc asks for
// that of every mount.
func probe(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(testkit.C(t, probeSource))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(testkit.Dir(t), "probe")
	if err := os.WriteFile(path, text, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// container is one that runc runs, and what it writes.
type container struct {
	cmd     *exec.Cmd
	out     bytes.Buffer
	errs    bytes.Buffer
	lines   *bufio.Scanner
	release func()
	state   func() int
}

// start runs a bundle. The container's name is its cgroup's, so it must not look
// like one of sandglass's own.
func start(t *testing.T, engine, bundle string) *container {
	t.Helper()
	name := fmt.Sprintf("parity-%d-%d", os.Getpid(), time.Now().UnixNano())
	global := []string{"--root", filepath.Join(testkit.Dir(t), "state"), "--systemd-cgroup=false"}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	c := &container{cmd: exec.CommandContext(ctx, engine, append(slices.Clip(global), "run", "--bundle", bundle, name)...)}
	c.cmd.Stderr = &c.errs
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.lines, c.release = bufio.NewScanner(stdout), func() { stdin.Close() }
	t.Cleanup(func() {
		c.release()
		exec.Command(engine, append(slices.Clip(global), "delete", "-f", name)...).Run()
		cancel()
		c.cmd.Wait()
	})
	c.state = func() int {
		text, err := exec.Command(engine, append(slices.Clip(global), "state", name)...).Output()
		var s struct{ Pid int }
		if err != nil || json.Unmarshal(text, &s) != nil || s.Pid <= 0 {
			t.Fatalf("runc state: %v\n%s", err, text)
		}
		return s.Pid
	}
	return c
}

// until reads the container's output up to a line.
func (c *container) until(t *testing.T, last string) string {
	t.Helper()
	for c.lines.Scan() {
		fmt.Fprintln(&c.out, c.lines.Text())
		if c.lines.Text() == last {
			return c.out.String()
		}
	}
	c.cmd.Wait()
	t.Fatalf("runc's program never printed %q: %v\n%s\n%s", last, c.cmd.ProcessState, c.out.String(), c.errs.String())
	return ""
}

// end lets the program end, and returns the rest of what it wrote.
func (c *container) end(t *testing.T) (string, int) {
	t.Helper()
	c.release()
	for c.lines.Scan() {
		fmt.Fprintln(&c.out, c.lines.Text())
	}
	c.cmd.Wait()
	return c.out.String(), c.cmd.ProcessState.ExitCode()
}

// plan writes the bundle for a command line, as root's own sandglass does.
func plan(t *testing.T, who testkit.Who, args ...string) string {
	t.Helper()
	parent := testkit.Dir(t)
	if os.Geteuid() == 0 {
		if err := os.Chown(parent, who.UID, who.GID); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(parent, "bundle")
	o := testkit.Run(t, testkit.Opts{Who: who, Verb: "plan"}, append([]string{"--bundle", dir}, args...)...)
	if o.Exit != 0 {
		t.Fatalf("plan: exit %d\n%s", o.Exit, o.Stderr)
	}
	return dir
}

// program is the PID on the host of the program of a run.
func program(t *testing.T, supervisor int, comm string) int {
	t.Helper()
	for _, line := range testkit.Processes(testkit.Inside) {
		pid, err := strconv.Atoi(strings.Fields(line)[0])
		if err != nil {
			t.Fatal(err)
		}
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if strings.TrimSpace(string(name)) == comm && parent(parent(pid)) == supervisor {
			return pid
		}
	}
	t.Fatalf("no process %s of the run of %d", comm, supervisor)
	return 0
}

func parent(pid int) int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	f := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(f) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(f[1])
	return n
}
