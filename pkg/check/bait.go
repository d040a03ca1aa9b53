package check

import (
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"sandglass/pkg/check/probes"

	"golang.org/x/sys/unix"
)

// secretName is the variable that the caller's environment has meanwhile.
const secretName = "SANDGLASS_CHECK_SECRET"

// baitFD is where the open descriptor lies: above what a process uses.
const baitFD = 700

// bait is what is laid out on the host for the probes. They must not find any
// of it: the secret is in all of it, the mark only in names and arguments.
type bait struct {
	secret, mark string
	dir          string   // own directory below the temporary one
	files        []string // canaries: their content is the secret
	door         *doors
	host         *listed
	key          int // in the caller's user keyring, 0: the host allows none
	shmKey       int
	shmID        int // -1: the host allows none
	prey         prey
	exe          unix.Stat_t // this binary
	undo         []func()
}

// program is the probe's host path: a link, because the name of the file
// becomes argv[0] inside.
func (b *bait) program() string { return filepath.Join(b.dir, probes.Name) }

// path is a place in the own directory.
func (b *bait) path(name string) string { return filepath.Join(b.dir, name) }

func layOut() (*bait, error) {
	Sweep()
	b := &bait{shmID: -1}
	var err error
	if b.secret, err = random(); err != nil {
		return nil, err
	}
	if b.mark, err = random(); err != nil {
		return nil, err
	}
	for _, step := range []func() error{b.directory, b.variable, b.canaries, b.descriptor, b.doors, b.listed, b.keyring, b.segment} {
		if err := step(); err != nil {
			b.remove()
			return nil, err
		}
	}
	return b, nil
}

// remove takes everything away again, last first.
func (b *bait) remove() {
	for i := len(b.undo) - 1; i >= 0; i-- {
		b.undo[i]()
	}
	b.undo = nil
}

func (b *bait) later(f func()) { b.undo = append(b.undo, f) }

func random() (string, error) {
	raw := make([]byte, 12)
	if _, err := unix.Getrandom(raw, 0); err != nil {
		return "", err
	}
	return hex.EncodeToString(raw), nil
}

func (b *bait) directory() error {
	dir, err := os.MkdirTemp("", dirPrefix)
	if err != nil {
		return err
	}
	// Resolved, because a mount source must not be a link.
	if b.dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	b.later(func() { os.RemoveAll(b.dir) })
	if err := b.lock(b.dir); err != nil {
		return err
	}
	if err := unix.Stat("/proc/self/exe", &b.exe); err != nil {
		return err
	}
	return os.Symlink("/proc/self/exe", b.program())
}

func (b *bait) variable() error {
	b.later(func() { os.Unsetenv(secretName) })
	return os.Setenv(secretName, b.secret)
}

// canaryDirs are where secrets of hosts lie: the temporary directories, the
// caller's home, root's and the state of services.
func canaryDirs() []string {
	home, _ := os.UserHomeDir()
	return []string{"/tmp", "/var/tmp", home, "/root", "/var/lib", "/etc", "/run", "/dev/shm", "/opt"}
}

// canaries puts a file into each of them, and one into the own directory. Where
// this caller may not write there is none.
func (b *bait) canaries() error {
	for _, dir := range append([]string{b.dir}, canaryDirs()...) {
		if dir == "" {
			continue
		}
		path := filepath.Join(dir, canaryPrefix+b.mark)
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			continue
		}
		b.later(func() { os.Remove(path); os.Remove(path + probes.Planted) })
		_, err = f.WriteString(b.secret)
		if err = errors.Join(err, f.Close(), b.lock(path)); err != nil {
			return err
		}
		b.files = append(b.files, path)
	}
	return nil
}

// touched names a canary that is not as it was laid out, or "".
func (b *bait) touched() string {
	for _, path := range b.files {
		data, err := os.ReadFile(path)
		if err != nil || string(data) != b.secret {
			return path + " was changed"
		}
		if _, err := os.Lstat(path + probes.Planted); err == nil {
			return path + probes.Planted + " was made"
		}
	}
	return ""
}

// descriptor leaves a file open that every child inherits.
func (b *bait) descriptor() error {
	fd, err := unix.Open(b.files[0], unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	at, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD, baitFD)
	if err != nil {
		return err
	}
	b.later(func() { unix.Close(at) })
	return nil
}

// keyring puts a key where every process of the caller's looks for its own; the
// session's would be one thread's of a Go program. The kernel
// takes it away by itself should this process be killed.
func (b *bait) keyring() error {
	id, err := unix.AddKey("user", b.keyName(), []byte(b.secret), unix.KEY_SPEC_USER_KEYRING)
	if err != nil {
		return nil // a container may forbid it; then there is nothing to find
	}
	const lifetime = 120 // seconds
	b.key = id
	b.later(func() { unix.KeyctlInt(unix.KEYCTL_UNLINK, id, unix.KEY_SPEC_USER_KEYRING, 0, 0) })
	_, err = unix.KeyctlInt(unix.KEYCTL_SET_TIMEOUT, id, lifetime, 0, 0)
	return err
}

func (b *bait) keyName() string { return "sandglass-check-" + b.mark }

// segment is System V shared memory that everybody on the host may read.
func (b *bait) segment() error {
	n, err := strconv.ParseUint(b.mark[:7], 16, 31)
	if err != nil {
		return err
	}
	b.shmKey = int(n) | 1
	id, err := unix.SysvShmGet(b.shmKey, 4096, unix.IPC_CREAT|unix.IPC_EXCL|0o644)
	if err != nil {
		return nil
	}
	b.shmID = id
	b.later(func() { unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
	data, err := unix.SysvShmAttach(id, 0, 0)
	if err != nil {
		return err
	}
	copy(data, b.secret)
	return unix.SysvShmDetach(data)
}
