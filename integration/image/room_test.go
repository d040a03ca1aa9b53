package image

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
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

// Downloads leave room too: where there is none a build is refused before apt-get is
// asked, which would wait for ever for one of its own that cannot write; and a package
// that is too large is told with the directory that it does not fit in.
func TestDownloadsLeaveRoom(t *testing.T) {
	testkit.Requires(t, "root")
	m := greeting(t)
	h := newHome(t, testkit.AsRoot(t))
	h.cache = testkit.Dir(t)
	must(t, unix.Mount("tmpfs", h.cache, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=40m,nr_inodes=2000,mode=0755"))
	t.Cleanup(func() { unix.Unmount(h.cache, unix.MNT_DETACH) })
	at := h.cache + "/sandglass/packages"
	hints := "\nhint: df -h -- " + at + "; df -i -- " + at + "\nhint: sandglass image prune --cache   # removes what was downloaded\n" +
		"hint: export XDG_CACHE_HOME=DIR   # a directory on another disk\n"
	args := append(m.flags(), "--quiet", h.recipe(greetingRecipe+"package large *\n"))
	m.deb("large", "1", "", nil, nil)
	text, err := os.ReadFile(m.dir + "/pool/large_1.deb")
	must(t, err)
	must(t, os.WriteFile(m.dir+"/pool/large_1.deb", append(text, make([]byte, 45<<20)...), 0o644))
	m.publish("test", "")
	h.says(125, "sandglass: error: apt-get install: You don't have enough free space in "+at+"/archives/."+hints, append([]string{"build"}, args...)...)
	var fs unix.Statfs_t
	must(t, unix.Statfs(h.cache, &fs))
	must(t, os.WriteFile(h.cache+"/else", make([]byte, int64(fs.Bavail)*fs.Bsize-1<<20), 0o600))
	exit, out, errs := h.image(append([]string{"build"}, args...)...)
	if exit != 125 || out != "" || !strings.HasPrefix(errs, "sandglass: error: packages are kept in "+at+": ") ||
		!strings.HasSuffix(errs, " kB are free on the disk, and a build leaves at least 2048 kB"+hints) {
		t.Errorf("exit %d, %q, %q", exit, out, errs)
	}
}
