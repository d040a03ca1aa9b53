// Package artifacts collects what the program left in its out directory. It
// runs on the host with the caller's rights over a tree whose every byte, name
// and type the attacker chose, and it is written as if the attacker were still
// changing that tree, although all of the sandbox's processes are dead by then.
//
// The rules, each the answer to a way in which collectors were led out:
//
//   - The tree is walked through descriptors, one name at a time, never by path.
//   - Each entry is first pinned with O_PATH, which opens nothing: no driver's
//     open runs, no FIFO waits. Its type, size and inode are those of the pinned
//     inode, and only a regular file or a directory is then opened, through the
//     pin. A name that is swapped for a link after the pin changes nothing.
//   - Links are reported, never followed and never made; FIFOs, sockets and
//     devices are reported. Another mount in the tree is not entered.
//   - Everything is bounded: entries, names read from one directory, depth,
//     bytes (those really copied, not those that stat claims), text of the
//     manifest, time.
//   - What is left out is in the manifest with the reason.
//   - The destination is opened before the run and not looked up again: the
//     program may have had a hand in its name. In it nothing is followed. Files get a temporary name first, so no half of one is ever visible, and
//     without force only names that were free are used: not even an existing
//     directory is entered, or a program could leave .git/hooks/post-checkout
//     in the caller's repository.
//
// Names are written as the very bytes that the program chose: ".bashrc" and
// "-rf" included. Give the artifacts a directory of their own.
//
// The source must be a file system of its own (sandglass makes it a tmpfs): a
// hard link to a host file could not be told from a file of the program's.
package artifacts

import (
	"context"
	"errors"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"sandglass/internal/refusal"
	"sandglass/pkg/hostpath"
	"sandglass/pkg/result"
)

// Limits bound one collection. A zero field takes its value from Defaults; a
// negative one is refused.
type Limits struct {
	Files     int           // entries of every type, skipped ones included; at most 1000000
	Depth     int           // directories inside each other below out; at most 128
	Bytes     int64         // of all files together, counted as they are copied
	FileBytes int64         // of one file
	Time      time.Duration // of the whole collection
}

// Each level of depth holds three descriptors, each entry some memory.
const (
	maxDepth = 128
	maxFiles = 1000000
)

// Defaults are the limits that apply where the caller says nothing: 1000
// entries, 16 levels, 256 MiB (one file may take them all) and 30 s.
func Defaults() Limits {
	return Limits{Files: 1000, Depth: 16, Bytes: 256 << 20, FileBytes: 256 << 20, Time: 30 * time.Second}
}

// resolve fills the zero fields and refuses what makes no sense.
func (l Limits) resolve() (Limits, error) {
	d := Defaults()
	if l.Files == 0 {
		l.Files = d.Files
	}
	if l.Depth == 0 {
		l.Depth = d.Depth
	}
	if l.Bytes == 0 {
		l.Bytes = d.Bytes
	}
	if l.FileBytes == 0 {
		l.FileBytes = d.FileBytes
	}
	if l.Time == 0 {
		l.Time = d.Time
	}
	switch {
	case l.Files < 0 || l.Files > maxFiles:
		return l, refusal.Newf("artifact limit: files must be between 1 and %d, not %d", maxFiles, l.Files)
	case l.Depth < 0 || l.Depth > maxDepth:
		return l, refusal.Newf("artifact limit: depth must be between 1 and %d, not %d", maxDepth, l.Depth)
	case l.Bytes < 0:
		return l, refusal.Newf("artifact limit: bytes must be positive, not %d", l.Bytes)
	case l.FileBytes < 0:
		return l, refusal.Newf("artifact limit: bytes of one file must be positive, not %d", l.FileBytes)
	case l.Time < 0:
		return l, refusal.Newf("artifact limit: time must be positive, not %s", l.Time)
	}
	return l, nil
}

// Collect copies the files and directories below srcFD into dest and returns the manifest: one entry for each name that was met, bytewise
// sorted in each directory, a directory before what it holds. srcFD is a
// descriptor of the sandbox's out directory (O_PATH will do); it stays open and
// its offset stays where it is.
//
// dest is made if it was not there when it was opened. With force, files replace whatever stands at their name but a
// directory (a link or FIFO there is replaced, never written through), and
// directories of the same name are filled. Files belong to the caller and have
// the program's permission bits without group and other write, set-uid, set-gid,
// sticky and what the caller's umask takes; the owner can always read and write.
//
// When a limit ends the walk the manifest's last entry has the Path ".", which
// no entry of the program's can have, and a Skipped that starts with "… and
// more". (With another Skipped, "." is out itself: it or dest could not be opened.)
// Of a directory with more names than Files allows, the first ones that
// the kernel lists are taken.
//
// The manifest holds even when the error is not nil; what was collected before
// stays. The error joins any of: *ExistsError, *CopyError, *LimitError, ErrTime,
// and the cause of ctx when it was cancelled. A *refusal.Error means that the limits are
// wrong or the host lacks openat2 or /proc; nothing was collected then. What the
// program alone is to blame for (a link, a file too large) is no error.
func Collect(ctx context.Context, srcFD int, dest *Dest, l Limits, force bool) ([]result.Artifact, error) {
	return collect(ctx, srcFD, dest, l, force, nil)
}

// Opener opens what is not the caller's to open: sys.Owned, whose ids the
// sandbox's files are.
type Opener interface {
	Open(dir int, path string, how *unix.OpenHow) (int, error)
}

// CollectOwned is Collect of a sandbox that had an id of its own, for a caller
// who is an ordinary user: a file that the program made for itself alone (0600)
// is then another user's.
func CollectOwned(ctx context.Context, srcFD int, by Opener, dest *Dest, l Limits, force bool) ([]result.Artifact, error) {
	return collectBy(ctx, srcFD, by, dest, l, force, nil)
}

// newDraft is where a test leaves out what its file system offers.
var newDraft = hostpath.NewDraft

// collect is Collect with the tests' hook, called at named moments so that a
// test can change either tree exactly there.
func collect(ctx context.Context, srcFD int, dest *Dest, l Limits, force bool, hook func(stage, path string)) ([]result.Artifact, error) {
	return collectBy(ctx, srcFD, nil, dest, l, force, hook)
}

func collectBy(ctx context.Context, srcFD int, by Opener, dest *Dest, l Limits, force bool, hook func(stage, path string)) ([]result.Artifact, error) {
	c := &collector{limits: l, force: force, hook: hook, draft: newDraft, owned: by}
	return c.collect(ctx, srcFD, dest)
}

// collect fills in what every collection has, and walks.
func (c *collector) collect(ctx context.Context, srcFD int, dest *Dest) (_ []result.Artifact, err error) {
	if c.limits, err = c.limits.resolve(); err != nil {
		return nil, err
	}
	if c.proc, err = openProc(); err != nil {
		return nil, err
	}
	defer unix.Close(c.proc)
	if err := needOpenat2(c.proc); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.limits.Time, ErrTime)
	defer cancel()
	c.ctx, c.umask, c.left, c.list = ctx, readUmask(c.proc), c.limits.Bytes, []result.Artifact{}
	c.run(srcFD, dest)
	return c.list, errors.Join(c.errs()...)
}

// run walks from the source's root and closes the manifest.
func (c *collector) run(srcFD int, dest *Dest) {
	root := result.Artifact{Path: ".", Type: typeDir}
	src, names, err := c.readDir(srcFD)
	if err != nil {
		c.fail(root, err)
		return
	}
	defer unix.Close(src)
	dst := -1
	if !c.kept {
		if dst, err = dest.make(c); err != nil {
			c.fail(root, &destFault{err})
			return
		}
	}
	c.walk(src, dst, names, "", 1)
	if c.stop != "" {
		root.Skipped = "… and more: " + c.stop
		c.list = append(c.list, root)
	}
}

// errs are the kinds of trouble that the caller must hear of.
func (c *collector) errs() []error {
	var errs []error
	if c.exists != nil {
		errs = append(errs, c.exists)
	}
	if c.failed != nil {
		errs = append(errs, c.failed)
	}
	if c.beyond != nil {
		errs = append(errs, c.beyond)
	}
	if c.stopErr != nil {
		errs = append(errs, c.stopErr)
	}
	return errs
}

func bytesText(n int64) string { return strconv.FormatInt(n, 10) + " bytes" }
