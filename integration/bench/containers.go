package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// nsjail has no package in Debian; where it is installed, it gets much the same.
func nsjail() *contender {
	args := []string{"-Mo", "--quiet", "--disable_clone_newtime", "--user", "65534", "--group", "65534", "--hostname", "sandglass", "-R", "/usr"}
	for _, name := range usrLinks {
		if text, err := os.Readlink("/" + name); err == nil {
			args = append(args, "-s", text+":/"+name)
		}
	}
	return command("nsjail", "nsjail", append(args, "-T", "/tmp", "-T", "/dev/shm", "--", program)...)
}

// isolate needs a box that was made before: --init is outside the clock.
func isolate() *contender {
	c := command("isolate", "isolate", "--run", "--", program)
	if c.missing != "" {
		return c
	}
	if out, err := exec.Command("isolate", "--init").CombinedOutput(); err != nil {
		c.missing = "--init: " + err.Error() + ": " + firstLine(out)
	}
	return c
}

// podmanImage is its image: the program with its libraries, as sandglass's has.
const podmanImage = "localhost/sandglass-bench:1"

// podmanGroup is where its containers' control groups are: it leaves its own.
const podmanGroup = "sandglass-bench-podman"

// removeGroups removes them, which are empty.
func removeGroups() {
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
		for _, name := range []string{podmanGroup + "/conmon", podmanGroup} {
			found, _ := filepath.Glob(pattern + name)
			for _, dir := range found {
				os.Remove(dir)
			}
		}
	}
}

// podman runs the program from an image, in a storage of its own below dir, by
// each OCI runtime. No registry is asked for anything.
func podman(dir string) []*contender {
	path, err := exec.LookPath("podman")
	if err != nil {
		return []*contender{{name: "podman", missing: "not installed"}}
	}
	data := filepath.Join(dir, "podman")
	base := []string{"--cgroup-manager", "cgroupfs", "--root", filepath.Join(data, "root"), "--runroot", filepath.Join(data, "run"), "--tmpdir", filepath.Join(data, "tmp")}
	root, archive := filepath.Join(data, "content"), filepath.Join(data, "image.tar")
	err = copyProgram(root)
	if err == nil {
		err = loud(exec.Command("tar", "-C", root, "-cf", archive, "."))
	}
	if err == nil {
		err = loud(exec.Command(path, append(base, "import", archive, podmanImage)...))
	}
	var list []*contender
	for _, runtime := range []string{"crun", "runc"} {
		c := &contender{name: "podman, " + runtime}
		if err != nil {
			c.missing = err.Error()
		} else if full, err := exec.LookPath(runtime); err != nil {
			c.missing = runtime + " is not installed"
		} else {
			args := append(base[:len(base):len(base)], "--runtime", full, "run", "--rm", "--cgroup-parent", "/"+podmanGroup,
				"--pull", "never", "--log-driver", "none", "--network", "none", "--read-only",
				"--memory", "256m", "--cpus", "1", "--pids-limit", "64", "--cap-drop", "all", "--security-opt", "no-new-privileges",
				"--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024", "--user", "65534", podmanImage, program)
			c.run, c.stop = withOrphans(command(c.name, path, args...).run), removeGroups
		}
		list = append(list, c)
	}
	return list
}

// loud runs a command, and its failure has what it said.
func loud(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	if err != nil {
		return errors.New(filepath.Base(cmd.Path) + ": " + err.Error() + ": " + firstLine(out))
	}
	return nil
}

// withOrphans is a run whose processes leave their parent, as podman's monitor
// does: what they use and do when the command has ended already is of the run. The
// clock has stopped by then.
func withOrphans(run func() (sample, error)) func() (sample, error) {
	return func() (sample, error) {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return sample{}, err
		}
		defer unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
		s, err := run()
		for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
			var use unix.Rusage
			pid, werr := unix.Wait4(-1, nil, unix.WNOHANG, &use)
			if werr == unix.ECHILD {
				return s, err
			}
			if pid > 0 {
				s.cpu += time.Duration(use.Utime.Nano() + use.Stime.Nano())
				continue
			}
			time.Sleep(time.Millisecond)
		}
		return s, errors.Join(err, errors.New("processes of it are there for 5 s after its end"))
	}
}

// runsc is gVisor's own short form: the host's files, read-only, and no network.
func runsc(dir string) *contender {
	c := command("runsc do", "runsc", "--root", filepath.Join(dir, "runsc"), "--network", "none", "do", program)
	if c.missing == "" {
		c.run = withOrphans(c.run)
	}
	return c
}

// systemdRun is a transient service with about the same. The host's init does all
// of the work, so its CPU time is nobody's that can be told.
func systemdRun() *contender {
	const name = "systemd-run"
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		return &contender{name: name, missing: "systemd is not the init here"}
	}
	args := []string{"--pipe", "--wait", "--quiet", "--collect"}
	if os.Geteuid() != 0 {
		args = append(args, "--user")
	} else {
		args = append(args, "-p", "DynamicUser=yes")
	}
	for _, p := range []string{
		"PrivateNetwork=yes", "PrivateTmp=yes", "PrivateDevices=yes", "PrivateUsers=yes", "PrivateIPC=yes", "ProtectSystem=strict", "ProtectHome=yes",
		"ProtectProc=invisible", "ProtectHostname=yes", "NoNewPrivileges=yes", "CapabilityBoundingSet=", "SystemCallFilter=@system-service",
		"MemoryMax=256M", "MemorySwapMax=0", "TasksMax=64", "CPUQuota=100%",
	} {
		args = append(args, "-p", p)
	}
	c := command(name, name, append(args, program)...)
	c.elsewhere = true
	return c
}
