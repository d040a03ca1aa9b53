package apt

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandglass/internal/refusal"
	"sandglass/pkg/hostpath"
	"sandglass/pkg/image/child"
	"sandglass/pkg/image/store"
)

// patience is how long apt-get may do nothing that can be seen in its files. It gives
// up a mirror that does not answer earlier by itself.
const patience = 5 * time.Minute

// errStuck is the end of an apt-get that does nothing.
var errStuck = errors.New("nothing has come for minutes, and it was ended")

// watched runs a command of apt's to its end, or to that of the disk: where one that
// unpacks a list for it cannot write, apt-get waits for it for ever.
func (a *Apt) watched(cmd *exec.Cmd) error {
	if err := a.room(); err != nil {
		return err
	}
	// Whoever ends this process ends the download, and until that has ended the lock is held.
	kill, err := child.Guard(cmd, a.lock)
	if err != nil {
		return err
	}
	defer kill()
	ended, watcher := make(chan struct{}), make(chan error, 1)
	go func() {
		err := a.watch(ended)
		if err != nil {
			kill()
		}
		watcher <- err
	}()
	err = child.Run(cmd)
	close(ended)
	if why := <-watcher; why != nil {
		return why
	}
	return err
}

// watch looks until the command has ended, or is to end and why.
func (a *Apt) watch(ended <-chan struct{}) error {
	tick := time.NewTicker(min(a.patience, 250*time.Millisecond))
	defer tick.Stop()
	last, since := "", time.Now()
	for {
		select {
		case <-ended:
			return nil
		case <-tick.C:
		}
		if err := a.room(); err != nil {
			return err
		}
		if now := a.progress(); now != last {
			last, since = now, time.Now()
		} else if time.Since(since) >= a.patience {
			return errStuck
		}
	}
}

// progress changes with each file that grows.
func (a *Apt) progress() string {
	var b strings.Builder
	for _, dir := range []string{"/state/lists", "/state/lists/partial", "/cache"} {
		files(&b, a.dir+dir)
	}
	files(&b, a.debs)
	files(&b, a.debs+"/partial")
	return b.String()
}

func files(b *strings.Builder, dir string) {
	list, _ := os.ReadDir(dir)
	for _, e := range list {
		if st, err := e.Info(); err == nil {
			fmt.Fprintln(b, e.Name(), st.Size(), st.ModTime().UnixNano())
		}
	}
}

// room refuses a disk without room for downloads, as the store refuses one without
// room for images.
func (a *Apt) room() error {
	top := filepath.Dir(a.debs)
	fd, err := hostpath.OpenDir(top)
	if err != nil {
		return failed(top, err)
	}
	defer unix.Close(fd)
	if err := store.Room(fd, "a build"); err != nil {
		return full(refusal.Newf("packages are kept in %s: %v", refusal.Word(top), err), top)
	}
	return nil
}

// full adds what helps where the disk of the downloads is full.
func full(r *refusal.Error, top string) *refusal.Error {
	return r.Hint("df -h -- %s; df -i -- %[1]s", refusal.Shell(top)).
		Hint("sandglass image prune --cache   # removes what was downloaded").
		Hint("export XDG_CACHE_HOME=DIR   # a directory on another disk")
}

// noSpace says that this was the end of a program of apt's, in its words.
func noSpace(text string) bool {
	for _, e := range []error{unix.ENOSPC, unix.EDQUOT} {
		if strings.Contains(strings.ToLower(text), e.Error()) {
			return true
		}
	}
	return strings.Contains(text, "have enough free space in")
}
