package boxinit

import (
	"os"
	"runtime"
	"slices"

	"sandglass/internal/sys"
	"sandglass/pkg/mount"
	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// Trial is a part of what init does, for doctor: a throwaway process that does
// it by the code of a run, and in which nothing untrusted ever runs.
type Trial struct {
	Config *wire.Config
	Steps  []string // of Steps, done in that order
	Calls  []string // of Child, made by a process of its own after the steps that come before "start program"
	// After looks at what was made. Its error is told as that of step Name.
	After func() error
	Name  string
	Wait  bool // for the supervisor's kill, or the end of its socket, and do nothing else
}

// Try does the trial and reports to the control socket what failed, or Started
// when nothing did. It never returns.
func Try(t Trial) {
	runtime.LockOSThread()
	if dieWithSupervisor(nil) != nil {
		os.Exit(1)
	}
	b := newBox(t.Config)
	if err := takeIDs(b); err != nil {
		report(b.control, failure(b.cfg, "take the ids", err), nil)
		os.Exit(1)
	}
	r := t.do(b)
	if r == nil {
		r = &wire.Report{Type: wire.TypeStarted, Landlock: uint32(b.landlockABI)}
	}
	report(b.control, r, nil)
	if t.Wait { // without CAP_KILL nothing else reaches it: the supervisor's end must
		unix.Read(b.control, make([]byte, 1))
	}
	os.Exit(0)
}

// do returns what failed, nil for nothing.
func (t *Trial) do(b *box) *wire.Report {
	for _, s := range Steps() {
		var err error
		switch {
		case s.Name == "start program" && len(t.Calls) > 0:
			err = tryCalls(b, t.Calls)
		case slices.Contains(t.Steps, s.Name):
			err = s.Do(b)
		}
		if err != nil {
			return failure(b.cfg, s.Name, err)
		}
	}
	if t.After != nil {
		if err := t.After(); err != nil {
			return failure(b.cfg, t.Name, err)
		}
	}
	return nil
}

// tryCalls makes some of the program's own calls in a process that ends where
// the program would begin: without a path to execute, execve is not reached, and
// the error that says so means that every call before it went well.
func tryCalls(b *box, names []string) error {
	restore, err := sys.BlockSignals()
	if err != nil {
		return err
	}
	defer restore()
	_, _, err = sys.Start(&sys.Program{Calls: Child(b.cfg, b.landlock, b.landlockABI).Only(names...), Argv: []string{Arg0}, Cgroup: -1})
	if e, ok := err.(*sys.StartError); ok && e.Call == "execve" && e.Errno == unix.ENOENT {
		return nil
	}
	if err == nil {
		return &mount.Error{Op: "start program", Errno: unix.EINVAL, Note: "a process without a program was started"}
	}
	return err
}
