package store

import (
	"fmt"
	"os"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/image"

	"golang.org/x/sys/unix"
)

// TestManyLeaveRoom: imports that are under way together leave as much of the disk as
// one does, whoever writes when.
func TestManyLeaveRoom(t *testing.T) {
	testkit.Requires(t, "root")
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=40m,nr_inodes=2000,mode=0700"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	t.Setenv("XDG_DATA_HOME", dir)
	s, err := Create()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	free := func() int64 {
		var fs unix.Statfs_t
		if err := unix.Statfs(dir, &fs); err != nil {
			t.Fatal(err)
		}
		return int64(fs.Bfree) * fs.Bsize
	}
	const (
		least = 2 << 20
		pages = 6 * 2 * 4096 // the last one of a file, and that of what is promised
	)
	var works []*Work
	promised := int64(0)
	for range 6 {
		w, err := Begin(s, &Stopper{})
		if err != nil {
			t.Fatal(err)
		}
		works, promised = append(works, w), promised+w.room.bytes
	}
	if promised > free()-least || works[0].room.bytes != lookBytes || works[5].room.bytes < 64<<10 {
		t.Errorf("%d kB are promised of %d kB: %+v", promised>>10, (free()-least)>>10, works[5].room)
	}
	refused := 0
	for round := 0; refused < len(works) && round < 1000; round++ {
		refused = 0
		for i, w := range works {
			takes := w.room.bytes - 1
			path := fmt.Sprintf("%s/%s/%s/%d", s.Path, image.TempDir, w.name, round)
			if takes > 0 {
				if err := os.WriteFile(path, make([]byte, takes), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := free(); got < least-pages {
				t.Fatalf("round %d: %d leaves %d kB", round, i, got>>10)
			}
			if w.spend(takes+1, 1) != nil {
				w.room.bytes = 0
				refused++
			}
		}
	}
	if refused < len(works) {
		t.Error("they are never refused")
	}
	for _, w := range works {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	w, err := Begin(s, &Stopper{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if w.room.bytes != lookBytes {
		t.Errorf("%d kB when the others are gone", w.room.bytes>>10)
	}
}
