package limits

import (
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

// Every mount that can be written is the one bounded scratch, or holds no data:
// /proc, where no file can be made.
func TestWritableMountsAreBounded(t *testing.T) {
	const want = `/dev/shm tmpfs 8388608 500
/home/sandbox tmpfs 8388608 500
/out tmpfs 8388608 500
/proc proc 0 0
/tmp tmpfs 8388608 500
/work tmpfs 8388608 500
on 1 tmpfs
`
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := script(t, who, "disk.py", "--disk 8m --disk-inodes 500 --timeout 60s", "mounts")
		ended(t, o, result.Exited, 0, want)
	})
}

// However the scratch is filled, it is full at its size, in all places, and the
// program is told so: its end is its own.
func TestDiskWays(t *testing.T) {
	for _, way := range []string{
		"written", "holes", "mapped", // files, sparse files, pages behind a mapping
		"reserved",       // blocks of a file of no length
		"small", "links", // a page for each name
		"deleted", "shared", // files that only a descriptor leads to, of a process or on its way
		"copied", "sent", "spliced", // by the kernel
	} {
		t.Run(way, func(t *testing.T) {
			testkit.Each(t, func(t *testing.T, who testkit.Who) {
				o := script(t, who, "disk.py", "--disk 8m --timeout 60s", way)
				ended(t, o, result.Exited, 0, "ENOSPC used 8388608\n")
				held(t, o, "disk", 8<<20, result.ByTmpfs)
			})
		})
	}
}

// Whatever has a name counts as one, a link as well; attributes come out of the
// same account.
func TestDiskInodesOfEveryKind(t *testing.T) {
	// Six are the scratch's own directories.
	const want = `free 494
file 494 ENOSPC
directory 494 ENOSPC
symlink 494 ENOSPC
fifo 494 ENOSPC
socket 494 ENOSPC
link 494 ENOSPC
tmpfile 494 ENOSPC
deleted 494 ENOSPC
attributes `
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := script(t, who, "inodes.py", "--disk-inodes 500 --timeout 60s")
		// A kernel before 6.6, or one without them, has none.
		size := last(t, o, want)
		if size > 500<<10 || size == 0 && o.Stdout != want+"0 ENOTSUP\n" || size != 0 && size < 400<<10 {
			t.Errorf("%d bytes of attributes: %s", size, o.Stdout)
		}
	})
}
