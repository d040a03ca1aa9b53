package sys

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// A file that only another id may read is for the owner of that id's namespace to
// open, by its capabilities there, and for nobody else.
func TestOwnedOpens(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIP(want root, have uid " + strconv.Itoa(os.Geteuid()) + ")")
	}
	requireUserNS(t)
	const id, other = 4711, 4712
	dir := t.TempDir()
	files := map[string]int{"its": id, "others": other}
	for name, owner := range files {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, owner, owner); err != nil {
			t.Fatal(err)
		}
	}
	fd, err := UserNamespace(5, id, 5, id)
	if err != nil {
		t.Fatal(err)
	}
	ns := &Owned{fd}
	defer ns.Close()
	root, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(root)
	how := &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH}
	if fd, err := ns.Open(root, "others", how); err != unix.EACCES {
		t.Errorf("root's own rights went along: %d, %v", fd, err)
	}
	got, err := ns.Open(root, "its", how)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(got)
	buf := make([]byte, 8)
	if n, err := unix.Read(got, buf); err != nil || string(buf[:n]) != "its" {
		t.Errorf("%q, %v", buf[:n], err)
	}
	if flags, err := unix.FcntlInt(uintptr(got), unix.F_GETFD, 0); err != nil || flags != unix.FD_CLOEXEC {
		t.Errorf("flags %d, %v", flags, err)
	}
	if _, err := ns.Open(root, "none", how); err != unix.ENOENT {
		t.Errorf("a file that is not there: %v", err)
	}
	found, err := ns.Stat(root, []string{"its", "none", "others"})
	if err != nil || found[0].Mask == 0 || found[0].Uid != 5 || found[1].Mask != 0 || found[2].Uid != 65534 {
		t.Errorf("%+v, %v", found, err)
	}
	if link, err := ns.Readlink("/proc/self/cwd", 1024); err != nil || link == "" {
		t.Errorf("link %q, %v", link, err)
	}
	for _, c := range []struct {
		owner int
		want  error
	}{{other, unix.EACCES}, {id, nil}, {id, unix.ENOENT}} { // the last has it renamed already
		if err := errors.Join(os.Chmod(dir, 0o755), os.Chown(dir, c.owner, c.owner)); err != nil {
			t.Fatal(err)
		}
		if err := ns.Rename(root, "its", "new"); err != c.want {
			t.Errorf("in a directory of %d: %v, want %v", c.owner, err, c.want)
		}
	}
	if err := (&Owned{root}).visit(&visit{}); err == nil {
		t.Error("a descriptor of something else was entered")
	}
}
