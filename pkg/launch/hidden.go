package launch

import (
	"time"

	"golang.org/x/sys/unix"
)

// hiddenTime is how long a thread may hide its descriptors in a row, or as long as
// the look has when it waits for a CPU all the time.
const hiddenTime = time.Second

// openTask opens a directory of a living thread's in /proc, or gives -1 for one
// that has ended. It is false for a thread that hides (PR_SET_DUMPABLE of
// prctl(2), a program that its user may not read): it could hold any amount by
// its descriptors.
//
// Each program hides for a moment when it starts: execve(2) lets the parent of a
// vfork(2) go before it says that the new memory may be seen (begin_new_exec in
// fs/exec.c), and until then what counts is init's, which may not. One that shares
// init's memory, as no program does, has executed nothing yet: it has been told to,
// and on a busy host takes its time.
func (t *tree) openTask(task int, name string, l *look) (fd int, ok bool) {
	path := procOf(task) + "/" + name
	ticks := int64(-1)
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		fd, err := unix.Open(path, openDir, 0)
		if err == unix.EACCES && t.owned != nil {
			// It is of the sandbox's own id, and for the owner of its namespace to open.
			fd, err = t.owned.Open(unix.AT_FDCWD, path, &unix.OpenHow{Flags: openDir})
		}
		if err == nil {
			return fd, true
		}
		if !alive(task) || l.same(t.init, task, kcmpVM) {
			return -1, true
		}
		if ticks < 0 {
			ticks = ticksOf(task)
		}
		if time.Since(began) > hiddenTime && !starved(task, ticks) || l.over() {
			return -1, false
		}
	}
}

// starved says whether a thread would like to run, and its process has not for as
// much as a tick since then. A program whose other processes keep it so gains what
// is left of the look's patience.
func starved(task int, then int64) bool {
	runs, _ := stateOf(task)
	return runs && ticksOf(task) == then
}

// ticksOf is the CPU time of a process (proc_pid_stat(5): utime and stime).
func ticksOf(task int) int64 { return statTicks(task, 11, 12) }

const openDir = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC

// alive says whether a thread still has memory.
func alive(task int) bool {
	_, ok := quickly(task)
	return ok
}
