package launch

import (
	"os"
	"runtime"
	"syscall"
	"time"

	"sandglass/pkg/boxinit"
	"sandglass/pkg/cgroup"

	"golang.org/x/sys/unix"
)

// initCaps are the capabilities, in the new user namespace only, that init
// needs until the program starts: mounts and namespaces, lo, the bounding set.
var initCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP, unix.CAP_NET_ADMIN}

// Namespaces are always all new. The cgroup namespace is made by the program's
// own process, for it must be rooted where the program is.
const Namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// Init is a sandbox's PID 1 from its clone on. It has no plan yet, and nothing
// of the host's but its control socket.
type Init struct {
	began      time.Time
	control    *os.File
	pid, pidfd int
	err        error
	ready      chan struct{} // closed when init runs, or err is set
	done       chan struct{} // closed when it is nobody's any more
}

// Boot clones init in the background: that, and the start of its runtime, take
// as long as planning the run does. Either Run or Cancel ends it.
func Boot(self string, id Identity, g *cgroup.Group) *Init {
	in := &Init{began: time.Now(), ready: make(chan struct{}), done: make(chan struct{})}
	group := -1
	if g != nil {
		group = g.InitFD()
	}
	go in.hold(self, id, group)
	return in
}

// hold keeps the thread that cloned init until init has ended: its
// parent-death signal is tied to it.
func (in *Init) hold(self string, id Identity, group int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	in.err = in.clone(self, id, group)
	close(in.ready)
	<-in.done
}

func (in *Init) clone(self string, id Identity, group int) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(pair[1])
	if in.pid, in.pidfd, err = spawn(self, id, group, pair[1]); err != nil {
		unix.Close(pair[0])
		return err
	}
	in.control = os.NewFile(uintptr(pair[0]), "control")
	return nil
}

// Cancel ends an init that never got a plan. After Run it does nothing.
func (in *Init) Cancel() {
	<-in.ready
	select {
	case <-in.done:
		return
	default:
	}
	if in.err == nil {
		kill(in.pidfd)
		for {
			if _, err := unix.Wait4(in.pid, nil, 0, nil); err != unix.EINTR {
				break
			}
		}
		in.close()
	}
	close(in.done)
}

func (in *Init) close() {
	unix.Close(in.pidfd)
	in.control.Close()
}

// spawn clones init, with the control socket as its descriptor 3 and none for
// stdio: Go's runtime opens /dev/null there.
func spawn(self string, id Identity, group, control int) (pid, pidfd int, err error) {
	none := ^uintptr(0)
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
	if group >= 0 {
		attr.UseCgroupFD = true
		attr.CgroupFD = group
	}
	pid, _, err = syscall.StartProcess(self, []string{boxinit.Arg0}, &syscall.ProcAttr{
		// With one processor init needs few threads, and always as many: they
		// count where only RLIMIT_NPROC bounds the program.
		Env:   []string{"GOMAXPROCS=1"},
		Files: []uintptr{none, none, none, uintptr(control)},
		Sys:   attr,
	})
	return pid, pidfd, err
}
