package v2

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/doctor"
)

const uid = 1000

// needSystemd skips where no systemd is the first process, and starts the user's.
func needSystemd(t *testing.T) {
	t.Helper()
	if text, _ := os.ReadFile("/proc/1/comm"); string(text) != "systemd\n" {
		testkit.Skip(t, "systemd as PID 1", strings.TrimSpace(string(text)))
	}
	if out, err := exec.Command("systemctl", "start", fmt.Sprintf("user@%d.service", uid)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// scope runs a command in sandglass, as an ordinary user in a scope that systemd
// delegates.
func scope(t *testing.T, flags string, command ...string) (string, error) {
	t.Helper()
	return inScope(t, append(append(append([]string{"run"}, strings.Fields(flags)...), "--"), command...)...)
}

func inScope(t *testing.T, words ...string) (string, error) {
	t.Helper()
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		testkit.Skip(t, "a passwd entry for uid 1000", "none")
	}
	args := []string{"--reuid", u.Uid, "--regid", u.Gid, "--init-groups", "env", "-i", "HOME=" + u.HomeDir, "PATH=/usr/bin:/bin",
		"XDG_RUNTIME_DIR=/run/user/" + u.Uid, "DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/" + u.Uid + "/bus",
		"systemd-run", "--user", "--quiet", "--scope", "-p", "Delegate=yes", testkit.Binary(t)}
	out, err := exec.Command("setpriv", append(args, words...)...).CombinedOutput()
	return string(out), err
}

// systemd gives users memory, pids and cpu. The disk's rate is refused by name
// with the drop-in for it, and holds when the hints were pasted as they stand.
func TestDelegation(t *testing.T) {
	testkit.Requires(t, "root", "cgroup2", "systemd-run")
	needSystemd(t)
	limits := []string{"cat", "/sys/fs/cgroup/memory.max"}
	if out, err := scope(t, "--memory 64m", limits...); err != nil || out != "67108864\n" {
		t.Fatalf("in a delegated scope: %v: %q", err, out)
	}
	node, _ := disk(t, "/var/tmp")
	limit := "--memory 64m --device-write-bps " + node + ":1m"
	out, err := scope(t, limit, limits...)
	const what = "sandglass: error: io limit: the io controller is not available in /sys/fs/cgroup/user.slice/"
	if err == nil || !strings.HasPrefix(out, what) || !strings.Contains(out, "(available: cpu memory pids)\n") {
		t.Fatalf("without io: %v: %q, want %q", err, out, what)
	}
	sameFromDoctor(t, out)
	for _, begin := range []string{"mkdir -p /etc/systemd/system/user@.service.d && ", "systemctl restart user@"} {
		_, hint, ok := strings.Cut(out, "\nhint: "+begin)
		hint, _, _ = strings.Cut(begin+hint, "\n")
		if text, err := exec.Command("sh", "-c", hint).CombinedOutput(); !ok || err != nil {
			t.Fatalf("the hint %q: %v: %s", hint, err, text)
		}
	}
	if out, err := scope(t, limit, limits...); err != nil || out != "67108864\n" {
		t.Errorf("after the hints: %v: %q", err, out)
	}
}

// sameFromDoctor: its layer of the io limit says what the run has, of a scope of its own.
func sameFromDoctor(t *testing.T, said string) {
	t.Helper()
	said, _, _ = strings.Cut(strings.TrimPrefix(said, "sandglass: error: io limit: "), "\n")
	text, err := inScope(t, "doctor", "--json")
	var r doctor.Report
	if err != nil || json.Unmarshal([]byte(text), &r) != nil {
		t.Fatalf("doctor: %v: %s", err, text)
	}
	scope := regexp.MustCompile(`run-[^ /]*\.scope`)
	for _, l := range r.Layers {
		if l.Name == "io limit" && scope.ReplaceAllString(l.Cause, "SCOPE") == scope.ReplaceAllString(said, "SCOPE") {
			return
		}
	}
	t.Errorf("no layer of doctor's says %q: %s", said, text)
}
