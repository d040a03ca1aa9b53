package image

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandglass/internal/testkit"
)

// An archive that would fill the disk is refused before it has: something is left for
// what else runs here, and all that the import took is given back.
func TestImportLeavesRoom(t *testing.T) {
	testkit.Requires(t, "root")
	h := newHome(t, testkit.AsRoot(t))
	if err := unix.Mount("tmpfs", h.dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=40m,nr_inodes=2000,mode=0700"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(h.dir, unix.MNT_DETACH) })
	h.bring("first", archive(t, file("f", 0o644, "1")))
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(archive(t, file("zeros", 0o644, strings.Repeat("\x00", 50<<20)))); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	many := make([]entry, 3000)
	for i := range many {
		many[i] = file(fmt.Sprint("f", i), 0o644, fmt.Sprint(i))
	}
	free := func() [2]uint64 {
		var fs unix.Statfs_t
		if err := unix.Statfs(h.dir, &fs); err != nil {
			t.Fatal(err)
		}
		return [2]uint64{fs.Bfree, fs.Ffree}
	}
	before := free()
	for want, text := range map[string][]byte{
		" kB are free on the disk, and an import leaves at least 2048 kB":         packed.Bytes(),
		" files can still be made on the disk, and an import leaves at least 100": archive(t, many...),
	} {
		exit, out, errs := h.image("import", "--name", "x", h.file(text))
		hints := "\nhint: sandglass image prune\nhint: df -h -- " + h.dir + "/sandglass; df -i -- " + h.dir + "/sandglass\nhint: export XDG_DATA_HOME=DIR   # a store on another disk\n"
		if exit != 125 || out != "" || !strings.Contains(errs, "image store "+h.dir+"/sandglass: ") || !strings.HasSuffix(errs, want+hints) {
			t.Errorf("exit %d, %q, %q, want %q", exit, out, errs, want+hints)
		}
		if after := free(); after != before {
			t.Errorf("free before %d, after %d", before, after)
		}
	}
}
