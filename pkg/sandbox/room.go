package sandbox

import (
	"strings"

	"golang.org/x/sys/unix"

	"sandglass/internal/refusal"
)

// room refuses a caller whose limits leave too little for a run. Go's runtime
// itself ends in a trace where it gets no descriptor or no memory, with exit code
// 2, which looks like the program's own; init, which has the caller's limits until
// it starts the program, ends without a word or halfway through the root.
func room() error {
	for _, l := range [...]struct {
		resource   int
		least      uint64
		hard       bool // the runtime raises the soft limit to it
		what, flag string
	}{
		{unix.RLIMIT_NOFILE, 64, true, "open files", "nofile=1024"},
		{unix.RLIMIT_NPROC, 16, false, "processes", "nproc=256"},
		{unix.RLIMIT_FSIZE, 1 << 20, false, "the size of files", "fsize=unlimited"},
		{unix.RLIMIT_AS, 1e9, false, "address space", "as=unlimited"},
		// Init has a call made on each of its threads, and Go's runtime waits for ever
		// for one whose signal found no room in the queue: the run would look as if its
		// program had used up its time. Each thread has one, and others of the user some.
		{unix.RLIMIT_SIGPENDING, 64, false, "signals that wait", "sigpending=1024"},
	} {
		var own unix.Rlimit
		if unix.Getrlimit(l.resource, &own) != nil {
			continue
		}
		have := own.Cur
		if l.hard {
			have = own.Max
		}
		if have < l.least {
			return refusal.Newf("the caller's limit on %s is %d, and a run needs %d", l.what, have, l.least).
				Hint("prlimit --pid $$ --%s   # as root, for this shell", l.flag)
		}
	}
	return free()
}

// leastFree is how many descriptors a run has open at once, with a dozen mounts.
const leastFree = 48

// free refuses a caller who has opened most of what it may. Only a low limit is
// looked at: to fill another takes a caller that means to.
func free() error {
	var own unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &own) != nil || own.Max > 1024 {
		return nil
	}
	var list []int
	for len(list) < leastFree {
		fd, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			break
		}
		list = append(list, fd)
	}
	for _, fd := range list {
		unix.Close(fd)
	}
	if len(list) < leastFree {
		return refusal.Newf("the caller's limit on open files is %d, of which %d are free, and a run needs %d", own.Max, len(list), leastFree).
			Hint("prlimit --pid $$ --nofile=1024   # as root, for this shell")
	}
	return nil
}

// outOfFiles adds the remedy where descriptors were used up on the way: what the
// caller holds open counts as well.
func outOfFiles(what string, hints []string) []string {
	if len(hints) > 0 || !strings.Contains(what, unix.EMFILE.Error()) {
		return hints
	}
	return []string{"prlimit --pid $$ --nofile=1024   # as root, for this shell: what is open already counts too"}
}
