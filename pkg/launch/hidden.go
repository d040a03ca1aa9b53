package launch

import (
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// hiddenTime is how long a thread may hide its descriptors in a row.
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
	path := "/proc/" + strconv.Itoa(task) + "/" + name
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		fd, err := unix.Open(path, openDir, 0)
		if err == unix.EACCES && t.owned != nil {
			// It is of the sandbox's own id, and for the owner of its namespace to open.
			fd, err = t.owned.Open(unix.AT_FDCWD, path, &unix.OpenHow{Flags: openDir})
		}
		if err == nil {
			return fd, true
		}
		if !alive(task) || same(t.init, task, kcmpVM) {
			return -1, true
		}
		if time.Since(began) > hiddenTime || l.over() {
			return -1, false
		}
	}
}

const openDir = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC

// alive says whether a thread still has memory.
func alive(task int) bool {
	_, ok := quickly(task)
	return ok
}
