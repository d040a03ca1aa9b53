// Package boxinit is the inside: what runs as PID 1 between the supervisor's
// clone and the program's execve, and then waits for the program.
//
// Steps is the order of everything that is done, and Child the order of what
// the program's own process does to itself last. Nothing untrusted runs before
// both lists are through.
package boxinit

import (
	"os"

	"sandglass/internal/sys"
	"sandglass/pkg/mount"
	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// ControlFD is the socket to the supervisor, the first descriptor after stdio.
const ControlFD = 3

// box is init's state while it works through the steps.
type box struct {
	control int // the socket to the supervisor
	cfg     *wire.Config
	builder *mount.Builder
	outDir  int
	quotas  int // /proc/sys/user, -1 when it is not open

	pid     int // the program
	pidfd   int
	waiting *sys.Waiting // the same where it has yet to be told what to execute

	listener int // of the program's filter, when one is asked for

	later *mount.Later // how the root can still be written, nil for an ordinary run

	landlock    int // ruleset, -1 for none
	queues      int // the POSIX queues' file system, -1 for none
	landlockABI int // 0 for none
}

func newBox(cfg *wire.Config) *box {
	return &box{control: ControlFD, cfg: cfg, outDir: -1, quotas: -1, queues: -1, pidfd: -1, landlock: -1}
}

// Step is one named piece of the set-up.
type Step struct {
	Name string
	Do   func(*box) error
}

// Steps is the order. The supervisor clones init before it has a plan, so that
// the two work side by side; what needs none stands first. Each step that needs
// a capability stands before "drop capabilities"; the program starts after the
// root is final and before init confines itself, because clone3 into a cgroup
// is not in the filter.
func Steps() []Step {
	return []Step{
		{"seal descriptors", sealDescriptors},
		{"ordinary priority", ordinaryPriority},
		{"ignore signals to init", ignoreSignals},
		{"die with the supervisor", dieWithSupervisor},
		{"take the ids", takeIDs},
		{"hide init", hideInit},
		{"receive the plan", receivePlan},
		{"find the quotas", findQuotas},
		{"hostname", setHostname},
		{"loopback", loopback},
		{"addresses and sockets of the listed hosts", openNetwork},
		{"mounts", buildRoot},
		{"report the root", reportRoot},
		{"landlock ruleset", prepareLandlock},
		{"quotas", setQuotas},
		{"working directory", enterWorkdir},
		{"terminal", openTerminal},
		{"hand out the artefact directory", handOut},
		{"hand out the place of the text", handOutText},
		{"hand out the way to write to the root", handOutLater},
		{"start program", startProgram},
		{"report the start", reportStart},
		{"close descriptors of init", closeDescriptors},
		{"drop capabilities of init", dropOwnCaps},
		{"seccomp of init", filterSelf},
	}
}

// sealDescriptors makes everything but stdio close on exec, whatever the
// caller of sandglass had open (CVE-2024-21626). Linux 5.11.
func sealDescriptors(*box) error {
	return unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
}

// IDsLater in init's environment says that init has no ids of its own yet.
const IDsLater = idsVar + "=later"

const idsVar = "SANDGLASS_IDS"

// takeIDs waits for the word that newuidmap and newgidmap have mapped the ids,
// and takes them, on all threads. Until then init is the caller, which no file
// inside may belong to (EOVERFLOW), and nothing has been made. An id that is not
// mapped after all is EINVAL.
//
// It stands before "hide init": helpers that are not set-uid could not open
// the maps of a process that is not dumpable.
func takeIDs(b *box) error {
	if os.Getenv(idsVar) == "" {
		return nil
	}
	t, body, _, err := wire.ReadFrameWithFiles(b.control, wire.MaxIDs, 0)
	if err != nil {
		os.Exit(1) // the supervisor is gone, or has no ids for us
	}
	ids, err := wire.DecodeIDs(t, body)
	if err != nil {
		return err
	}
	if err := reachThreads("take the ids"); err != nil {
		return err
	}
	if err := sys.SetIDs(int(ids.UID), int(ids.GID)); err != nil {
		return err
	}
	return dieWithSupervisor(b)
}

// hideInit keeps the program from PID 1: a process that is not dumpable cannot
// be traced, its /proc files belong to the host's root, and with
// hidepid=ptraceable it is not in /proc at all. So /proc/1/exe, the host's own
// binary, cannot be opened for writing (CVE-2019-5736).
func hideInit(*box) error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

// ignoreSignals takes Go's handlers away: a signal of the program's, which has
// init's user id, would else end the run. The kernel drops every signal that comes
// from inside a PID namespace for its init, unless init has a handler for it
// (pid_namespaces(7)); Go's runtime has one for each.
//
// The default disposition is not enough. A signal that init's first thread blocks
// at the moment, as Go's runtime does while it starts a thread and Start while
// there is a child, is not dropped, and where another thread does not block it the
// kernel ends the whole process without another look at whose it is
// (complete_signal in kernel/signal.c asks for SIG_DFL alone). On a slow machine
// every seventh program that signaled PID 1 as soon as it ran ended it.
func ignoreSignals(*box) error {
	if err := sys.IgnoreSignals(); err != nil {
		return err
	}
	// Here as well, so that nothing of the program runs where it cannot end well.
	return reachThreads("ignore signals to init")
}

// reachThreads keeps init from waiting for ever where the kernel queues no
// signal: the program would have ended, and the run would go on to its timeout.
func reachThreads(step string) error {
	err := sys.CanReachThreads()
	if err == nil {
		return nil
	}
	return &mount.Error{Op: step, Errno: err.(unix.Errno), Note: "no signal can be queued: the user's limit on signals that wait (ulimit -i) is used up"}
}

// dieWithSupervisor asks for SIGKILL when the thread that cloned init ends. It
// stands after the change of credentials, which clears it (prctl(2)), or is done
// again after it. The control socket's end of file is the second cord, see wait.
func dieWithSupervisor(*box) error {
	return unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
}

// setHostname also sets the NIS domain: a new namespace begins with the host's.
func setHostname(b *box) error {
	if err := unix.Sethostname([]byte(b.cfg.Hostname)); err != nil {
		return err
	}
	return unix.Setdomainname([]byte("(none)"))
}

func loopback(b *box) error {
	if !b.cfg.Loopback {
		return nil
	}
	return sys.LoopbackUp()
}

func buildRoot(b *box) error {
	b.builder = mount.New()
	defer b.builder.Close()
	for i := range b.cfg.Mounts {
		op := &b.cfg.Mounts[i]
		if op.Kind == wire.OpPivot && b.cfg.OutDir != "" {
			fd, err := b.builder.OpenDir(b.cfg.OutDir)
			if err != nil {
				return &mount.Error{Op: "open " + b.cfg.OutDir, Errno: err.(unix.Errno)}
			}
			b.outDir = fd
		}
		if err := b.builder.Apply(op); err != nil {
			return err
		}
		if op.Kind == wire.OpRoot && b.cfg.Waits != wire.NoWait {
			if err := b.builder.KeepLater(); err != nil {
				return err
			}
		}
	}
	b.later = b.builder.Later()
	return nil
}

// reportRoot lets the supervisor compare the mounts with the plan while init goes on.
// Nothing is mounted after it.
func reportRoot(b *box) error {
	report(b.control, &wire.Report{Type: wire.TypeRooted}, nil)
	return nil
}

// enterWorkdir changes into the directory inside. It runs after pivot_root and
// after every host descriptor is closed or out of the path's reach, and what
// it reached is checked to lie below the root: a path like /proc/self/fd/7
// must not lead to the host (CVE-2024-21626).
func enterWorkdir(b *box) error {
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(unix.AT_FDCWD, b.cfg.Dir, how)
	if err != nil {
		return &mount.Error{Op: "enter " + b.cfg.Dir, Errno: err.(unix.Errno)}
	}
	defer unix.Close(fd)
	return unix.Fchdir(fd)
}

// handOut sends the artefact directory before the program can write to it: a
// run that is ended in its first moment, before its start was reported, still
// brings what it has written.
func handOut(b *box) error {
	if b.outDir >= 0 {
		report(b.control, &wire.Report{Type: wire.TypeReady}, []int{b.outDir})
	}
	return nil
}

// handOutText sends what a text's place can be written by to the supervisor, and
// keeps none of it: the program that waits for the text is running when it comes.
func handOutText(b *box) error {
	if b.cfg.Waits != wire.ProgramWaits {
		return nil
	}
	if b.later == nil || b.later.Text == nil {
		return unix.EINVAL
	}
	b.later.Close()
	report(b.control, &wire.Report{Type: wire.TypeText}, b.later.Text)
	return nil
}

// handOutLater gives the supervisor a copy of what the files of a release are
// written by. Init's own is closed before the program executes anything; it must
// not be the last one, for which the kernel takes its time.
func handOutLater(b *box) error {
	if b.cfg.Waits != wire.InitWaits {
		return nil
	}
	fd, err := b.later.Dup()
	if err != nil {
		return err
	}
	report(b.control, &wire.Report{Type: wire.TypeWaits}, []int{fd})
	return nil
}

// reportStart lets the supervisor look at the program while init confines
// itself. What fails after it ends init, and the program with it.
func reportStart(b *box) error {
	fds := []int{b.pidfd}
	if b.cfg.Listener {
		fds = append(fds, b.listener)
	}
	report(b.control, &wire.Report{Type: wire.TypeStarted, Landlock: uint32(b.landlockABI)}, fds)
	return nil
}

// closeDescriptors lets go of everything the supervisor passed in but the
// control socket: the program's streams, the cgroup, the mounts' sources. What
// might take init over finds none of it.
func closeDescriptors(b *box) error {
	c := b.cfg
	fds := append([]int32{c.Box, int32(b.landlock), int32(b.queues)}, c.Tasks...)
	if !c.Terminal { // else see openTerminal
		fds = append(fds, c.Stdin, c.Stdout, c.Stderr)
	}
	for i := range c.Mounts {
		fds = append(fds, c.Mounts[i].FD)
	}
	for _, fd := range fds {
		if fd > ControlFD {
			unix.Close(int(fd))
		}
	}
	return nil
}

// dropOwnCaps leaves init no more than the program has. No signal has a handler
// after it.
func dropOwnCaps(*box) error {
	if err := reachThreads("drop capabilities of init"); err != nil {
		return err
	}
	if err := sys.ClearAllCaps(); err != nil {
		return err
	}
	return sys.IgnorePerThread()
}

// filterSelf puts init under a filter too: whatever might take init over from
// inside gains nothing by it.
func filterSelf(b *box) error { return sys.SeccompAllThreads(b.cfg.InitSeccomp) }
