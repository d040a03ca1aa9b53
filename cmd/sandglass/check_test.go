package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sandglass/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// checkCmd is the binary's check as somebody, with a temporary directory and a
// home of its own, which are returned.
func checkCmd(t *testing.T, who testkit.Who, args ...string) (cmd *exec.Cmd, dir string) {
	t.Helper()
	dir = testkit.Dir(t)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(testkit.Binary(t), append([]string{"check"}, args...)...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + dir, "TMPDIR=" + dir}
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() == 0 && !who.IsRoot() {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(who.UID), Gid: uint32(who.GID)}
	}
	return cmd, dir
}

// run returns the exit code and the two streams.
func run(t *testing.T, cmd *exec.Cmd) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errOut.String()
}

// nothingLeft: neither canaries nor the directory of the check.
func nothingLeft(t *testing.T, dir string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		t.Errorf("%s is left behind", filepath.Join(dir, e.Name()))
	}
}

func TestCheckHolds(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		cmd, dir := checkCmd(t, who, who.Flags()...)
		code, out, errOut := run(t, cmd)
		if code != 0 || errOut != "" || !strings.HasSuffix(out, ", 0 FAILED\n") || strings.Contains(out, "FAIL ") {
			t.Fatalf("exit %d\n%s%s", code, out, errOut)
		}
		if n := strings.Count(out, "\n"); n != 49 {
			t.Errorf("%d lines, want 48 controls and the sum", n)
		}
		if weak := strings.Contains(out, "\nweak "); weak == who.Limited() {
			t.Errorf("weak lines: %v\n%s", weak, out)
		}
		if first, _, _ := strings.Cut(out, "\n"); first != "ok    c01  environment: no secret of the caller's appears" {
			t.Errorf("first line %q", first)
		}
		nothingLeft(t, dir)
	})
}

func TestCheckJSON(t *testing.T) {
	who := testkit.AsUser(t)
	cmd, _ := checkCmd(t, who, append(who.Flags(), "--json")...)
	code, out, errOut := run(t, cmd)
	var got struct {
		Schema int
		Held   bool
		Checks []struct {
			ID, Claim, Layer, Seen string
			Held                   bool
		}
	}
	d := json.NewDecoder(strings.NewReader(out))
	if err := d.Decode(&got); err != nil || d.More() {
		t.Fatalf("%v\n%s%s", err, out, errOut)
	}
	if code != 0 || got.Schema != 1 || !got.Held || len(got.Checks) != 48 {
		t.Errorf("exit %d, schema %d, held %v, %d checks", code, got.Schema, got.Held, len(got.Checks))
	}
	for _, c := range got.Checks {
		if c.ID == "" || c.Claim == "" || c.Layer == "" || c.Seen == "" || !c.Held {
			t.Errorf("%+v", c)
		}
	}
}

// TestCheckFails: under a file size limit of the caller's own, the probe of
// c18 cannot use up the memory, so that nothing is proven.
func TestCheckFails(t *testing.T) {
	who := testkit.AsRoot(t)
	testkit.Requires(t, "cgroup")
	cmd, dir := checkCmd(t, who)
	const eightMiB = "16384" // blocks of 512 bytes
	cmd.Args = []string{"sh", "-c", "ulimit -f " + eightMiB + "; exec \"$0\" check", cmd.Path}
	cmd.Path = "/bin/sh"
	code, out, errOut := run(t, cmd)
	if code != 1 || !strings.Contains(out, "\nFAIL  c18  ") || !strings.HasSuffix(out, " 1 FAILED\n") {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
	nothingLeft(t, dir)
}

// TestCheckNoSandboxes: where no user namespace can be made, nothing is said
// of controls.
func TestCheckNoSandboxes(t *testing.T) {
	testkit.Requires(t, "userns")
	who := testkit.AsUser(t)
	cmd, dir := checkCmd(t, who)
	cmd.Args = []string{"sh", "-c", "echo 0 >/proc/sys/user/max_user_namespaces && exec \"$0\" check --allow-degraded memory,cpu,pids", cmd.Path}
	cmd.Path = "/bin/sh"
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
	cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 1234, HostID: who.UID, Size: 1}}
	cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 1234, HostID: who.GID, Size: 1}}
	if c := cmd.SysProcAttr.Credential; c != nil {
		c.Uid, c.Gid, c.NoSetGroups = 1234, 1234, true
	}
	cmd.SysProcAttr.AmbientCaps = []uintptr{24} // CAP_SYS_RESOURCE, to lower the limit
	code, out, errOut := run(t, cmd)
	if code != 125 || out != "" || !strings.HasPrefix(errOut, "sandglass: error: user namespaces cannot be made") || !strings.Contains(errOut, "\nhint: ") {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
	nothingLeft(t, dir)
}

func TestCheckUsage(t *testing.T) {
	who := testkit.AsUser(t)
	for _, c := range []struct {
		args string
		code int
		text string // how stdout or stderr begins
	}{
		{"--help", 0, "usage: sandglass check "},
		{"--allow-degraded", 125, "sandglass: error: --allow-degraded: the value is missing\nhint: "},
		{"--allow-degraded seccomp", 125, "sandglass: error: --allow-degraded: \"seccomp\" is not a limit that may be degraded"},
		{"--allow-degraded=", 125, "sandglass: error: --allow-degraded: "},
		{"--json=yes", 125, "sandglass: error: check: unknown argument \"--json=yes\"\nhint: "},
		{"host", 125, "sandglass: error: check: unknown argument \"host\"\nhint: "},
	} {
		cmd, _ := checkCmd(t, who, strings.Fields(c.args)...)
		code, out, errOut := run(t, cmd)
		if code != c.code || !strings.HasPrefix(out+errOut, c.text) {
			t.Errorf("%s: exit %d, %s%s", c.args, code, out, errOut)
		}
	}
}

// TestCheckInterrupted: a signal ends it with its own code, and what was laid
// out is taken away.
func TestCheckInterrupted(t *testing.T) {
	who := testkit.AsUser(t)
	cmd, dir := checkCmd(t, who, who.Flags()...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	if _, err := r.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	cmd.Process.Signal(syscall.SIGTERM)
	r.WriteTo(&bytes.Buffer{})
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 143 {
		t.Errorf("exit %d, want 143", code)
	}
	nothingLeft(t, dir)
}

// TestProbeNeedsItsPlace: the name of the probe alone does not start one.
func TestProbeNeedsItsPlace(t *testing.T) {
	cmd := exec.Command(testkit.Binary(t))
	cmd.Args = []string{"/code/sandglass-probe", "hello"}
	code, out, errOut := run(t, cmd)
	if code != 125 || out != "" || !strings.HasPrefix(errOut, "sandglass: error: unknown command \"hello\"") {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
}
