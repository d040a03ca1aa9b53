package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"

	profiles "sandglass/seccomp-profiles"

	"golang.org/x/sys/unix"
)

// etc are the parts of the host's /etc that sandglass shows too.
var etc = []string{"alternatives", "ld.so.cache", "ssl/certs", "ssl/openssl.cnf", "protocols", "services", "mime.types"}

// usrLinks are /bin and friends, links on a merged-/usr host.
var usrLinks = []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"}

// bwrapArgs is the nearest that bwrap comes to sandglass's default: the same
// namespaces and the same mounts. It has no cgroup, no limits and no filter.
func bwrapArgs(rest ...string) []string {
	a := []string{"--unshare-all", "--die-with-parent", "--new-session", "--as-pid-1", "--clearenv", "--hostname", "sandglass",
		"--uid", "65534", "--gid", "65534", "--ro-bind", "/usr", "/usr"}
	for _, name := range usrLinks {
		if text, err := os.Readlink("/" + name); err == nil {
			a = append(a, "--symlink", text, "/"+name)
		} else if _, err := os.Stat("/" + name); err == nil {
			a = append(a, "--ro-bind", "/"+name, "/"+name)
		}
	}
	for _, name := range etc {
		if _, err := os.Stat("/etc/" + name); err == nil {
			a = append(a, "--ro-bind", "/etc/"+name, "/etc/"+name)
		}
	}
	a = append(a, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/dev/shm", "--tmpfs", "/tmp", "--tmpfs", "/work", "--tmpfs", "/home/sandbox",
		"--setenv", "PATH", "/usr/bin:/bin", "--chdir", "/work")
	return append(a, rest...)
}

const filteredName = "bwrap, same filter"

// filtered is bwrap with the filter of sandglass's default profile. That the
// filter is there is read from a first program's /proc/self/status.
func filtered(dir string) *contender {
	file := filepath.Join(dir, "default.bpf")
	if err := os.WriteFile(file, []byte(profiles.Compiled("default")), 0o644); err != nil {
		return &contender{name: filteredName, missing: err.Error()}
	}
	proof := command(filteredName, "bwrap", bwrapArgs("--seccomp", "3", "--", "/bin/grep", "^Seccomp_filters:.1$", "/proc/self/status")...)
	proof.fd3 = file
	if proof.missing == "" {
		if _, err := proof.run(); err != nil {
			proof.missing = "its program has no filter: " + err.Error()
		}
	}
	if proof.missing != "" {
		return proof
	}
	c := command(filteredName, "bwrap", bwrapArgs("--seccomp", "3", "--", program)...)
	c.fd3 = file
	return c
}

// serial makes the containers' names.
var serial atomic.Int64

// oci runs an OCI runtime in the foreground with a bundle of its own making.
func oci(name, dir string) *contender {
	c := &contender{name: name}
	path, err := exec.LookPath(name)
	if err != nil {
		c.missing = "not installed"
		return c
	}
	bundle := filepath.Join(dir, name)
	if err := writeBundle(bundle); err != nil {
		c.missing = err.Error()
		return c
	}
	c.run = func() (sample, error) {
		id := "sandglass-bench-" + strconv.Itoa(os.Getpid()) + "-" + strconv.FormatInt(serial.Add(1), 10)
		return command(name, path, "--root", filepath.Join(dir, name+"-state"), "run", "--bundle", bundle, id).run()
	}
	return c
}

type object = map[string]any

// writeBundle makes a bundle with the mounts, namespaces and limits of a
// default run. Rootless needs the caller mapped to root.
func writeBundle(dir string) error {
	root := filepath.Join(dir, "rootfs")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	for _, name := range usrLinks {
		if text, err := os.Readlink("/" + name); err == nil {
			if err := os.Symlink(text, filepath.Join(root, name)); err != nil {
				return err
			}
		}
	}
	text, err := json.MarshalIndent(config(), "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "config.json"), text, 0o644)
}

func config() object {
	var namespaces []object
	for _, t := range []string{"pid", "network", "ipc", "uts", "mount", "cgroup"} {
		namespaces = append(namespaces, object{"type": t})
	}
	linux := object{
		"resources": object{
			"memory": object{"limit": 256 << 20, "swap": 256 << 20},
			"pids":   object{"limit": 64},
			"cpu":    object{"quota": 100000, "period": 100000},
		},
		"maskedPaths":   []string{"/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/scsi", "/sys/firmware"},
		"readonlyPaths": []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"},
	}
	if os.Geteuid() != 0 {
		namespaces = append(namespaces, object{"type": "user"})
		linux["uidMappings"] = []object{{"containerID": 0, "hostID": os.Geteuid(), "size": 1}}
		linux["gidMappings"] = []object{{"containerID": 0, "hostID": os.Getegid(), "size": 1}}
		delete(linux, "resources")
	}
	linux["namespaces"] = namespaces
	user := object{"uid": 65534, "gid": 65534}
	if os.Geteuid() != 0 {
		user = object{"uid": 0, "gid": 0}
	}
	return object{
		"ociVersion": "1.0.2",
		"process": object{
			"terminal": false, "noNewPrivileges": true, "user": user, "cwd": "/",
			"args": []string{program}, "env": []string{"PATH=/usr/bin:/bin"},
			"capabilities": object{},
		},
		"root": object{"path": "rootfs", "readonly": true}, "hostname": "sandglass", "linux": linux,
		"mounts": mounts(),
	}
}

func mounts() []object {
	m := []object{
		{"destination": "/proc", "type": "proc", "source": "proc"},
		{"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": []string{"nosuid", "mode=755", "size=64k"}},
		{"destination": "/dev/pts", "type": "devpts", "source": "devpts", "options": []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666"}},
		{"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": []string{"nosuid", "nodev", "size=64m"}},
		{"destination": "/usr", "type": "bind", "source": "/usr", "options": []string{"rbind", "ro", "nosuid", "nodev"}},
	}
	for _, name := range usrLinks {
		var st unix.Stat_t
		if unix.Lstat("/"+name, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
			m = append(m, object{"destination": "/" + name, "type": "bind", "source": "/" + name, "options": []string{"rbind", "ro"}})
		}
	}
	return m
}
