package hosts

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"sandglass/internal/testkit"
)

// An engine starts outer containers: a root of busybox with sandglass in it, and a
// secret in its files and its environment.
type engine interface {
	// run starts a container of this command, and waits for its end.
	run(t *testing.T, args ...string) testkit.Output
	// heed does what a hint says of the outer container, false if it says nothing of it.
	heed(t *testing.T, hint string) bool
}

const secret = "outer-secret"

// box is what the engines have in common: who starts them, a directory of theirs,
// and the container's root in it.
type box struct {
	who       testkit.Who
	dir, root string
}

func newBox(t *testing.T, who testkit.Who) box {
	t.Helper()
	b := box{who: who, dir: testkit.Dir(t)}
	b.root = filepath.Join(b.dir, "rootfs")
	for _, d := range []string{"usr/bin", "proc", "dev", "sys", "tmp", "run", "etc"} {
		if err := os.MkdirAll(filepath.Join(b.root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for to, from := range map[string]string{"busybox": testkit.StaticBusybox(t), "sandglass": testkit.Binary(t)} {
		text, err := os.ReadFile(from)
		if err = errors.Join(err, os.WriteFile(filepath.Join(b.root, "usr/bin", to), text, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	err := errors.Join(os.WriteFile(filepath.Join(b.root, "secret"), []byte(secret+"\n"), 0o644), os.Symlink("usr/bin", filepath.Join(b.root, "bin")))
	for _, applet := range []string{"sh", "cat", "echo", "env", "grep", "id", "true"} {
		err = errors.Join(err, os.Symlink("busybox", filepath.Join(b.root, "usr/bin", applet)))
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// give makes all of it whoever's starts the container.
func (b box) give(t *testing.T) {
	t.Helper()
	if !b.who.IsRoot() {
		paste(t, "chown -R "+strconv.Itoa(b.who.UID)+":"+strconv.Itoa(b.who.GID)+" "+b.dir)
	}
}

// command starts a program of the host's as the one who owns the container.
func (b box) command(t *testing.T, name string, args ...string) testkit.Output {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = b.dir
	cmd.Env = []string{"HOME=" + b.dir, "XDG_RUNTIME_DIR=" + b.dir, "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if !b.who.IsRoot() {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(b.who.UID), Gid: uint32(b.who.GID)}
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return testkit.Output{Exit: cmd.ProcessState.ExitCode(), Stdout: out.String(), Stderr: errs.String()}
}

// podman starts containers without a daemon, an image or a registry.
type podman struct {
	box
	flags []string // of podman run
}

func newPodman(t *testing.T, who testkit.Who, flags ...string) engine {
	t.Helper()
	ownMachine(t) // it keeps locks and sockets in the host's directories
	testkit.Requires(t, "podman", "newuidmap", "cgroup2")
	p := &podman{newBox(t, who), flags}
	if !who.IsRoot() {
		for _, file := range []string{"/etc/subuid", "/etc/subgid"} {
			if err := os.WriteFile(file, []byte(strconv.Itoa(who.UID)+":100000:65536\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	p.give(t)
	return p
}

func (p *podman) run(t *testing.T, args ...string) testkit.Output {
	t.Helper()
	list := []string{"--root", p.dir + "/store", "--runroot", p.dir + "/run", "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs",
		"--events-backend", "none", "--log-level", "error", "run", "--rm", "--network", "none", "--env", "SECRET=" + secret}
	return p.command(t, "podman", append(append(append(list, p.flags...), "--rootfs", p.root), args...)...)
}

func (p *podman) heed(_ *testing.T, hint string) bool {
	flags, ok := strings.CutPrefix(hint, "podman run ")
	flags, _, _ = strings.Cut(flags, " IMAGE")
	if ok {
		p.flags = append(p.flags, strings.Fields(flags)...)
	}
	return ok
}

// runc starts the container of a bundle.
type runc struct{ box }

// newRunc has the bundle that "runc spec" writes, and what change does to it.
func newRunc(t *testing.T, who testkit.Who, change func(spec map[string]any)) engine {
	t.Helper()
	testkit.Requires(t, "root", "userns", "runc", "jq")
	r := &runc{newBox(t, who)}
	r.give(t)
	args := []string{"spec"}
	if !who.IsRoot() {
		args = append(args, "--rootless")
	}
	if o := r.command(t, "runc", args...); o.Exit != 0 {
		t.Fatalf("runc spec: %s", o.Stderr)
	}
	r.change(t, func(spec map[string]any) {
		process := spec["process"].(map[string]any)
		process["terminal"] = false
		process["env"] = append(process["env"].([]any), "SECRET="+secret)
		if change != nil {
			change(spec)
		}
	})
	return r
}

func (r *runc) change(t *testing.T, change func(spec map[string]any)) {
	t.Helper()
	path := filepath.Join(r.dir, "config.json")
	var spec map[string]any
	text, err := os.ReadFile(path)
	if err = errors.Join(err, json.Unmarshal(text, &spec)); err != nil {
		t.Fatal(err)
	}
	change(spec)
	if text, err = json.Marshal(spec); err == nil {
		err = os.WriteFile(path, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (r *runc) run(t *testing.T, args ...string) testkit.Output {
	t.Helper()
	r.change(t, func(spec map[string]any) { spec["process"].(map[string]any)["args"] = args })
	return r.command(t, "runc", "--root", r.dir+"/state", "run", "sandglass-test-"+strconv.Itoa(os.Getpid()))
}

func (r *runc) heed(t *testing.T, hint string) bool {
	t.Helper()
	if !strings.HasPrefix(hint, "jq ") {
		return false
	}
	paste(t, "cd "+r.dir+" && "+hint)
	return true
}

// allCaps gives the container's root every capability that its starter has.
func allCaps(spec map[string]any) {
	names, _ := exec.Command("setpriv", "--list-caps").Output() // by their numbers
	have := capBnd()
	var list []any
	for i, n := range strings.Fields(string(names)) {
		if have&(1<<i) != 0 {
			list = append(list, "CAP_"+strings.ToUpper(n))
		}
	}
	caps := spec["process"].(map[string]any)["capabilities"].(map[string]any)
	for _, set := range []string{"bounding", "effective", "permitted"} {
		caps[set] = list
	}
}

func capBnd() uint64 {
	text, _ := os.ReadFile("/proc/self/status")
	_, hex, _ := strings.Cut(string(text), "CapBnd:\t")
	set, _ := strconv.ParseUint(hex[:16], 16, 64)
	return set
}
