package testkit

import (
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"sandglass/pkg/cgroup"
)

// Who is an identity that starts the binary.
type Who struct {
	Name     string // root or user: the name of the subtest
	UID, GID int
	// Groups are supplementary groups, nil for none.
	Groups []uint32
	// self: the test's own identity, nothing to change.
	self bool
}

// EnvUID names the ordinary user's id when the tests run as root.
const EnvUID = "SANDGLASS_TEST_UID"

const defaultUID = 1000

// AsRoot is root; the test is skipped when it does not run as root.
func AsRoot(t testing.TB) Who {
	t.Helper()
	Requires(t, "root")
	return Who{Name: "root", self: true}
}

// AsUser is an ordinary user: another id when the tests run as root.
func AsUser(t testing.TB) Who {
	t.Helper()
	if uid := os.Getuid(); uid != 0 {
		return Who{Name: "user", UID: uid, GID: os.Getgid(), self: true}
	}
	uid := defaultUID
	if s := os.Getenv(EnvUID); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n <= 0 {
			t.Fatalf("%s=%q is not a user id", EnvUID, s)
		}
		uid = n
	}
	return Who{Name: "user", UID: uid, GID: uid}
}

// Each runs a test as root and as an ordinary user.
func Each(t *testing.T, test func(t *testing.T, who Who)) {
	t.Helper()
	t.Run("root", func(t *testing.T) { test(t, AsRoot(t)) })
	t.Run("user", func(t *testing.T) { test(t, AsUser(t)) })
}

// IsRoot says whether the binary runs as root.
func (w Who) IsRoot() bool { return w.UID == 0 }

// Flags are what this identity needs on this host for any run at all: an
// ordinary user without a delegated cgroup has no kernel limits for the tree.
func (w Who) Flags() []string {
	if w.Limited() {
		return nil
	}
	return []string{"--allow-degraded", "memory,cpu,pids"}
}

// Limited says whether cgroups hold this identity's limits on this host.
func (w Who) Limited() bool {
	if w.IsRoot() {
		return probeCgroup("memory") != ""
	}
	if !w.self || probeCgroup("memory") != "cgroup2" {
		return false
	}
	return delegated()
}

// delegated says whether this process, not being root, can make a group with a
// limit. For that it leaves its own group, which the runs that it starts could
// not use otherwise.
var delegated = sync.OnceValue(func() bool {
	g, err := cgroup.Create(cgroup.Options{ID: "testkit-" + strconv.Itoa(os.Getpid()), HostUID: os.Getuid()}, cgroup.Limits{PidsMax: 64})
	if err != nil {
		return false
	}
	g.Close()
	return true
})

// credential is what a child needs to be this identity.
func (w Who) credential() *syscall.Credential {
	if w.self && w.Groups == nil {
		return nil
	}
	return &syscall.Credential{Uid: uint32(w.UID), Gid: uint32(w.GID), Groups: w.Groups}
}

// Command is any program, run as this identity with next to no environment.
func (w Who) Command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = environment(Opts{})
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: w.credential()}
	return cmd
}
