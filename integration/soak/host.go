package main

import (
	_ "embed"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"sandglass/internal/sys"
	"sandglass/internal/testkit"

	"golang.org/x/sys/unix"
)

//go:embed testdata/soak.c
var source string

// place is where the command and the C program are in the soak's own host. Its
// /var/tmp is empty and may be shown to sandboxes.
const place = "/var/tmp/soak"

// outer makes what the load needs and starts the host.
func outer(o *options) (int, error) {
	dir, err := os.MkdirTemp("", "sandglass-soak-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if o.prog == "" {
		if o.prog, err = testkit.Compile(dir, source); err != nil {
			return 0, err
		}
	}
	cmd := exec.Command("/proc/self/exe", o.pass(os.Args[1:])...)
	cmd.Env = append(os.Environ(), envStage+"=host")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = namespaces()
	stop := ignore()
	defer stop()
	// The death of the thread that started it would be the host's.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("no host of its own (as root, -uid %d does without a user namespace): %w", os.Getuid(), err)
	}
	if err := cmd.Wait(); cmd.ProcessState == nil {
		return 0, err
	}
	return exitCode(cmd.ProcessState), nil
}

// namespaces are those of the host. An ordinary user needs a user namespace for
// the others, and in it the rights to mount.
func namespaces() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWNET,
		Pdeathsig:  syscall.SIGKILL,
	}
	if uid, gid := os.Getuid(), os.Getgid(); uid != 0 {
		a.Cloneflags |= unix.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN}
	}
	return a
}

// ignore leaves SIGINT and SIGTERM to the load, which ends with its report.
func ignore() (stop func()) {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGINT, syscall.SIGTERM)
	return func() { signal.Stop(ch) }
}

// host is PID 1 of the namespaces: it furnishes them, starts the load as the
// user who is asked for, and reaps what killed supervisors leave to it.
func host(o *options) (int, error) {
	defer ignore()()
	if err := furnish(o); err != nil {
		return 0, err
	}
	cmd := exec.Command("/proc/self/exe", o.pass(os.Args[1:])...)
	cmd.Env = []string{envStage + "=load", "PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/nonexistent", secret}
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", os.Stdout, os.Stderr
	if o.uid != os.Getuid() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(o.uid), Gid: uint32(o.uid)}}
	}
	// The rights to mount end here: without an ambient set exec drops all.
	runtime.LockOSThread()
	unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, 0, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return 0, err
		case pid == cmd.Process.Pid && ws.Signaled():
			return 128 + int(ws.Signal()), nil
		case pid == cmd.Process.Pid:
			return ws.ExitStatus(), nil
		}
	}
}

// furnish replaces what the host shares with others, and copies what is needed
// of it to before it is hidden.
func furnish(o *options) error {
	copies := map[string][]byte{}
	for name, path := range map[string]*string{"sandglass": &o.sandglass, "prog": &o.prog} {
		text, err := os.ReadFile(*path)
		if err != nil {
			return err
		}
		copies[name] = text
		*path = filepath.Join(place, name)
	}
	if err := testkit.OwnMounts(); err != nil {
		return err
	}
	if err := sys.LoopbackUp(); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	// A cgroup is known by its supervisor's PID, which begins at 1 in every host
	// of its own: this one begins somewhere else. That is no more than a help.
	if text, err := os.ReadFile("/proc/sys/kernel/pid_max"); err == nil {
		highest, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(1000+rand.IntN(max(1, highest/2-1000)))), 0)
	}
	if err := os.Mkdir(place, 0o755); err != nil {
		return err
	}
	for name, text := range copies {
		if err := os.WriteFile(filepath.Join(place, name), text, 0o755); err != nil {
			return err
		}
	}
	return nameHosts()
}

// exitCode is 128+n when signal n ended the process.
func exitCode(s *os.ProcessState) int {
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return s.ExitCode()
}
