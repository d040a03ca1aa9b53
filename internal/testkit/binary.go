// Package testkit is what the tests of whole runs share: the real binary,
// built once; runs as root and as an ordinary user; the conditions of a test;
// hostile programs in C; waiting for events; and what a run may not leave.
//
// A package that uses it needs
//
//	func TestMain(m *testing.M) { testkit.Main(m) }
package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// EnvBinary names a binary to test instead of a fresh build, for example one
// of a release, or one that lacks a control on purpose.
const EnvBinary = "SANDGLASS_TEST_BINARY"

// EnvImageTool and EnvMCPServer are the same for sandglass-image and sandglass-mcp.
const (
	EnvImageTool = "SANDGLASS_TEST_IMAGE_BINARY"
	EnvMCPServer = "SANDGLASS_TEST_MCP"
)

// dir is where everything that is built goes. Every user may read it, for the
// tests run the binary under several ids.
var dir = sync.OnceValues(func() (string, error) {
	d, err := os.MkdirTemp("", "sandglass-test-")
	if err != nil {
		return "", err
	}
	return d, os.Chmod(d, 0o755)
})

var binary = sync.OnceValues(func() (string, error) {
	if b := os.Getenv(EnvBinary); b != "" {
		return b, nil
	}
	if Warm() {
		return buildCommand("sandglass", "sandglass_warm")
	}
	return buildCommand("sandglass")
})

// tool is one of the other commands: the one that env names, or a fresh build.
func tool(env, name string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		if b := os.Getenv(env); b != "" {
			return b, nil
		}
		return buildCommand(name)
	})
}

var (
	imageTool = tool(EnvImageTool, "sandglass-image")
	mcpServer = tool(EnvMCPServer, "sandglass-mcp")
)

// buildCommand builds one of the commands into dir.
func buildCommand(name string, tags ...string) (string, error) {
	d, err := dir()
	if err != nil {
		return "", err
	}
	out := filepath.Join(d, name)
	return out, GoBuild(out, "sandglass/cmd/"+name, tags...)
}

// Binary is the path of the command under test.
func Binary(t testing.TB) string {
	t.Helper()
	b, err := binary()
	if err != nil {
		t.Fatalf("the binary under test: %v", err)
	}
	return b
}

// ImageTool is the path of sandglass-image.
func ImageTool(t testing.TB) string {
	t.Helper()
	b, err := imageTool()
	if err != nil {
		t.Fatalf("sandglass-image: %v", err)
	}
	return b
}

// MCPServer is the path of sandglass-mcp, which lies beside Binary.
func MCPServer(t testing.TB) string {
	t.Helper()
	Binary(t)
	b, err := mcpServer()
	if err != nil {
		t.Fatalf("sandglass-mcp: %v", err)
	}
	return b
}

// GoBuild builds a package of this module as a release is built.
func GoBuild(out, pkg string, tags ...string) error {
	args := []string{"build", "-trimpath", "-ldflags", "-s -w -buildid=", "-o", out}
	if len(tags) > 0 {
		args = append(args, "-tags", strings.Join(tags, ","))
	}
	cmd := exec.Command("go", append(args, pkg)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %v\n%s", pkg, err, text)
	}
	return os.Chmod(out, 0o755)
}

// Main runs the tests of a package, removes what was built and lists what was
// skipped, so that "ok" never hides that nothing was tried.
func Main(m *testing.M) {
	heedSignals()
	code := m.Run()
	if d, err := dir(); err == nil {
		os.RemoveAll(d)
	}
	for _, s := range Skips() {
		fmt.Println(s)
	}
	tellWarm()
	os.Exit(code)
}

// heedSignals makes what the tests start heed Ctrl-C, Ctrl-\\ and a lost terminal: a
// shell without jobs has what it starts in the background ignore the first two,
// nohup the third, and sandglass leaves what its caller ignores as it is.
func heedSignals() {
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP} {
		if signal.Ignored(sig) {
			// A handler, unlike an ignored signal, is not passed on by an exec.
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}

// Root is the top of this module's source.
func Root(t testing.TB) string {
	t.Helper()
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for d := wd; ; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "go.mod")); err == nil {
			return d
		}
		if d == "/" {
			t.Fatalf("no go.mod above %s", wd)
		}
	}
}

// Dir is a directory that lasts for the test and that everybody may enter.
func Dir(t testing.TB) string {
	t.Helper()
	d, err := os.MkdirTemp("", "sandglass-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(d) })
	if err := os.Chmod(d, 0o755); err != nil {
		t.Fatal(err)
	}
	return d
}
