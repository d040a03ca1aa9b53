package image

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sandglass/internal/testkit"
)

// The phases of a build, as it tells them.
var phases = []string{"reading the lists of packages", "getting 4 packages", "unpacking 4 packages", "compiling its modules", "writing the image"}

// slowRecipe has a Python that never ends.
const slowRecipe = greetingRecipe + "package slow *\nbytecode /usr/lib/python3\n"

func slow(t *testing.T) *mirror {
	m := greeting(t)
	m.deb("slow", "1", "", map[string]string{"usr/bin/python3": "#!/bin/busybox sh\nexec /bin/busybox sleep 1000\n", "usr/lib/python3/m.py": "1\n"},
		map[string]os.FileMode{"usr/bin/python3": 0o755})
	m.publish("test", "")
	return m
}

// began starts a build, and gives what it writes to stderr.
func (h *home) began(args ...string) (*exec.Cmd, io.ReadCloser) {
	h.t.Helper()
	cmd := exec.Command(testkit.ImageTool(h.t), append([]string{"build"}, args...)...)
	cmd.Env, cmd.Dir = h.env(), "/"
	if h.who.UID != 0 && os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(h.who.UID), Gid: uint32(h.who.GID)}}
	}
	errs, err := cmd.StderrPipe()
	must(h.t, err)
	must(h.t, cmd.Start())
	return cmd, errs
}

// signalled sends a signal once the build has told of a phase and ready says so. It
// gives the exit code, -1 for a signal that was not caught, and what was told.
func (h *home) signalled(sig syscall.Signal, phase string, ready func(pid int), args ...string) (int, []string) {
	h.t.Helper()
	cmd, errs := h.began(args...)
	in := bufio.NewScanner(errs)
	var told []string
	for in.Scan() {
		if told = append(told, strings.TrimPrefix(in.Text(), "sandglass: ")); told[len(told)-1] == phase {
			ready(cmd.Process.Pid)
			must(h.t, cmd.Process.Signal(sig))
		}
	}
	_ = cmd.Wait() // the exit code says it
	if !slices.Contains(told, phase) {
		h.t.Errorf("%s: %q", phase, told)
	}
	return cmd.ProcessState.ExitCode(), told
}

// stopped expects an end with nothing left: no work, no image, no process.
func (h *home) stopped(sig syscall.Signal, name, phase string, ready func(pid int), args ...string) {
	h.t.Helper()
	exit, told := h.signalled(sig, phase, ready, args...)
	last := "error: image build: stopped by " + name + ": nothing is left of it"
	if exit != 128+int(sig) || len(told) == 0 || told[len(told)-1] != last {
		h.t.Errorf("%s: exit %d, %q", phase, exit, told)
	}
	for _, dir := range []string{"tmp", "names", "images"} {
		if left, err := os.ReadDir(h.dir + "/sandglass/" + dir); err != nil || len(left) > 0 {
			h.t.Errorf("%s: %s holds %v, %v", phase, dir, left, err)
		}
	}
	if left := testkit.Processes(h.dir); len(left) > 0 {
		h.t.Errorf("%s: processes are left: %q", phase, left)
	}
}

// killed expects that what works for a build ends with it, and that the next command
// takes away the rest, which is no image.
func (h *home) killed(phase string, ready func(pid int), args ...string) {
	h.t.Helper()
	if exit, told := h.signalled(syscall.SIGKILL, phase, ready, args...); exit != -1 {
		h.t.Errorf("%s: exit %d, %q", phase, exit, told)
	}
	testkit.Eventually(h.t, "the end of what the build has started", func() bool { return len(testkit.Processes(h.dir)) == 0 })
	want := "removed the leftovers of 1 killed import\n0 images and 0 unused contents removed\n"
	if exit, out, errs := h.image("prune"); exit != 0 || out != want || errs != "" {
		h.t.Errorf("%s: prune: exit %d, %q, %q, want %q", phase, exit, out, errs, want)
	}
	if _, out, _ := h.image("list"); out != "" {
		h.t.Errorf("%s: there is an image: %s", phase, out)
	}
}

// A build that is told to stop while it waits for a mirror, or for a program in its
// sandbox, leaves nothing: neither files nor those who work for it.
func TestBuildIsStopped(t *testing.T) {
	testkit.Binary(t) // lies beside the tool, which compiles with it
	m := slow(t)
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		h := newHome(t, who)
		recipe := h.recipe(slowRecipe)
		block, asked := "/dists/", make(chan bool)
		var gone atomic.Int32
		files := http.FileServer(http.Dir(m.dir))
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.URL.Path, block) {
				files.ServeHTTP(w, r)
				return
			}
			select {
			case asked <- true:
			case <-r.Context().Done(): // apt asks for more than one file at once
				return
			}
			<-r.Context().Done() // who asked has ended
			gone.Add(1)
		}))
		t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
		flags := []string{"--mirror", server.URL, "--suite", "test", "--keyring", m.keyring(), recipe}
		for i, dir := range []string{"/dists/", "/pool/"} {
			block = dir
			sig := [...]syscall.Signal{syscall.SIGTERM, syscall.SIGQUIT}[i]
			h.stopped(sig, unix.SignalName(sig), phases[i], func(int) { <-asked }, flags...)
			testkit.Eventually(t, "the end of who downloads", func() bool { return gone.Load() == int32(i+1) })
		}
		for i, dir := range []string{"/dists/", "/pool/"} {
			block = dir
			h.killed(phases[i], func(int) { <-asked }, flags...)
		}
		local := append(m.flags(), recipe)
		sandbox := func(pid int) {
			testkit.Eventually(t, "a sandbox", func() bool { return len(testkit.Children(t, pid)) > 0 })
		}
		h.stopped(syscall.SIGINT, "SIGINT", phases[3], sandbox, local...)
		h.killed(phases[3], sandbox, local...)
	})
}

// A build tells each phase by one line, whoever reads it, and nothing with --quiet.
func TestBuildTellsItsPhases(t *testing.T) {
	m := greeting(t)
	h := newHome(t, testkit.AsUser(t))
	args := append([]string{"build", h.recipe(greetingRecipe)}, m.flags()...)
	want := strings.NewReplacer("4", "3").Replace("sandglass: " + strings.Join(slices.Concat(phases[:3], phases[4:]), "\nsandglass: ") +
		"\nsandglass: cat is a command of this host too: sandglass run cat means the image now, sandglass run -- cat the command\n")
	h.says(0, want, append(args, "--name", "cat")...)
	h.says(0, "", append(args, "--name", "cat", "--quiet")...)
	h.says(0, "", append(args, "--name", "cat", "-q")...)
}

// An export that is told to stop leaves no half of a directory.
func TestExportIsStopped(t *testing.T) {
	h := newHome(t, testkit.AsUser(t))
	h.bring("x", archive(t, file("zeros", 0o644, strings.Repeat("\x00", 64<<20))))
	to := h.dir + "/out"
	for range 50 {
		cmd := exec.Command(testkit.ImageTool(t), "export", "x", to)
		cmd.Env = h.env()
		if h.who.UID != 0 && os.Getuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(h.who.UID), Gid: uint32(h.who.GID)}}
		}
		var errs strings.Builder
		cmd.Stderr = &errs
		must(t, cmd.Start())
		testkit.Eventually(t, "a directory", func() bool { _, err := os.Lstat(to); return err == nil })
		must(t, cmd.Process.Signal(syscall.SIGINT))
		if err := cmd.Wait(); err == nil {
			must(t, os.RemoveAll(to)) // it was quicker
			continue
		}
		if exit := cmd.ProcessState.ExitCode(); exit != 130 || errs.String() != "sandglass: error: image export: stopped by SIGINT: nothing is left of it\n" {
			t.Errorf("exit %d, %q", exit, errs.String())
		}
		if left, err := os.ReadDir(to); !os.IsNotExist(err) {
			t.Errorf("left: %v, %v", left, err)
		}
		return
	}
	t.Error("no export was stopped")
}
