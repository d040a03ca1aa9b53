package sys

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// UserNamespace makes a user namespace that maps insideUID to hostUID (and the
// same for groups) and returns a descriptor of it. It lives as long as the
// descriptor: the process that made it is gone. Needs CAP_SETUID and CAP_SETGID.
func UserNamespace(insideUID, hostUID, insideGID, hostGID int) (fd int, err error) {
	pid, e := cloneHolder()
	if e != 0 {
		return -1, unix.Errno(e)
	}
	defer func() {
		for {
			if _, err := unix.Wait4(int(pid), nil, 0, nil); err != unix.EINTR {
				return
			}
		}
	}()
	proc := "/proc/" + strconv.Itoa(int(pid))
	if err := writeMap(proc+"/uid_map", insideUID, hostUID); err != nil {
		return -1, err
	}
	if err := writeMap(proc+"/gid_map", insideGID, hostGID); err != nil {
		return -1, err
	}
	return unix.Open(proc+"/ns/user", unix.O_RDONLY|unix.O_CLOEXEC, 0)
}

// MapIDs maps one user id and one group id of a new user namespace's first
// process. Without setgroups the process can never call setgroups(2), which is
// what a caller without CAP_SETGID must promise (user_namespaces(7)).
func MapIDs(pid, insideUID, hostUID, insideGID, hostGID int, setgroups bool) error {
	proc := "/proc/" + strconv.Itoa(pid)
	if err := writeMap(proc+"/uid_map", insideUID, hostUID); err != nil {
		return err
	}
	if !setgroups {
		if err := writeProc(proc+"/setgroups", "deny"); err != nil {
			return err
		}
	}
	return writeMap(proc+"/gid_map", insideGID, hostGID)
}

func writeMap(path string, inside, host int) error {
	return writeProc(path, strconv.Itoa(inside)+" "+strconv.Itoa(host)+" 1\n")
}

func writeProc(path, text string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, []byte(text)); err != nil {
		return &os.PathError{Op: "write", Path: path, Err: err}
	}
	return nil
}

// cloneHolder forks a process that ends at once. Until it is waited for, a
// process that has ended still shows its user namespace in /proc, to map and to
// open. So it holds nothing and waits for nobody: a supervisor that is killed
// right now leaves none behind. As in cloneChild nothing may call into the
// runtime in the child.
//
//go:norace
//go:noinline
//go:nosplit
func cloneHolder() (pid, errno uintptr) {
	pid, errno = rawVfork(unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD), 0, 0)
	if errno != 0 || pid != 0 {
		return pid, errno
	}
	exitChild()
	return 0, 0
}
