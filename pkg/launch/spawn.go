package launch

import (
	"syscall"

	"sandglass/pkg/boxinit"

	"golang.org/x/sys/unix"
)

// initCaps are the capabilities, in the new user namespace only, that init
// needs until the program starts: mounts and namespaces, lo, the bounding set.
var initCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP, unix.CAP_NET_ADMIN}

// Namespaces are always all new. The cgroup namespace is made by the program's
// own process, for it must be rooted where the program is.
const Namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// spawn clones init. fds are its descriptors from 0 on. The calling thread must
// stay until init has ended: init dies with it.
func spawn(b *Box, fds []uintptr) (pid, pidfd int, err error) {
	id := b.Identity
	attr := &syscall.SysProcAttr{
		Cloneflags:  Namespaces,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: id.InsideUID, HostID: id.HostUID, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: id.InsideGID, HostID: id.HostGID, Size: 1}},
		// A root caller's supplementary groups must go, for group root may read
		// much; an ordinary user's cannot (user_namespaces(7)).
		GidMappingsEnableSetgroups: id.Mapped,
		Credential: &syscall.Credential{
			Uid: uint32(id.InsideUID), Gid: uint32(id.InsideGID), NoSetGroups: !id.Mapped,
		},
		AmbientCaps: initCaps,
		Setsid:      true,
		PidFD:       &pidfd,
	}
	if b.Group != nil && b.Group.InitFD() >= 0 {
		attr.UseCgroupFD = true
		attr.CgroupFD = b.Group.InitFD()
	}
	pid, _, err = syscall.StartProcess(b.Self, []string{boxinit.Arg0}, &syscall.ProcAttr{
		Env:   []string{},
		Files: fds,
		Sys:   attr,
	})
	return pid, pidfd, err
}
