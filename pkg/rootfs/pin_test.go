package rootfs

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestPin(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir+"/real", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/real/file", nil, 0o640); err != nil {
		t.Fatal(err)
	}
	for _, l := range []string{"link", "real/inner"} {
		if err := os.Symlink(dir+"/real", filepath.Join(dir, l)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{dir + "/link", dir + "/link/file", dir + "/real/inner", "/proc/self/cwd", "/proc/self/fd/0"} {
		if _, _, err := Pin(path); err != unix.ELOOP {
			t.Errorf("%s: %v, want ELOOP", path, err)
		}
	}
	if _, _, err := Pin(dir + "/missing"); err != unix.ENOENT {
		t.Errorf("missing: %v, want ENOENT", err)
	}
	var st unix.Stat_t
	if err := unix.Stat(dir+"/real/file", &st); err != nil {
		t.Fatal(err)
	}
	src, mode, err := Pin(dir + "/real/file")
	if want := (Source{Path: dir + "/real/file", Dev: uint64(st.Dev), Ino: st.Ino}); err != nil || src != want || mode != unix.S_IFREG|0o640 {
		t.Errorf("%+v, %o, %v, want %+v", src, mode, err, want)
	}
	if src, _, err := Pin(dir + "/real"); err != nil || !src.Dir {
		t.Errorf("%+v, %v", src, err)
	}
}

// A node of the host's that is a file, another device, or not there is no node
// to hand to a program.
func TestCheckDevice(t *testing.T) {
	dir := t.TempDir()
	for name, link := range map[string]string{"null": "/dev/null", "zero": "/dev/zero", "missing": "nowhere"} {
		if err := os.Symlink(link, dir+"/"+name); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(dir+"/file", []byte("thrown away"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path string
		is   [2]uint32
		want string
	}{
		{"/dev/null", [2]uint32{1, 3}, ""}, {"/dev/zero", [2]uint32{1, 5}, ""}, {"/dev/full", [2]uint32{1, 7}, ""}, {"/dev/random", [2]uint32{1, 8}, ""}, {"/dev/urandom", [2]uint32{1, 9}, ""}, {dir + "/null", [2]uint32{1, 3}, ""},
		{"/dev/tty", [2]uint32{5, 0}, ""}, {"/dev/null", [2]uint32{5, 0}, "/dev/null of this host: not the device that it should be"},
		{dir + "/zero", [2]uint32{1, 3}, dir + "/zero of this host: not the device that it should be"},
		{dir + "/file", [2]uint32{1, 3}, dir + "/file of this host: not the device that it should be"},
		{dir, [2]uint32{1, 3}, dir + " of this host: not the device that it should be"},
		{dir + "/missing", [2]uint32{1, 3}, dir + "/missing of this host: no such file or directory"},
	} {
		err := checkDevice(c.path, c.is)
		if got := fmt.Sprint(err); c.want != got && (c.want != "" || err != nil) {
			t.Errorf("%s: %v, want %q", c.path, err, c.want)
		}
	}
	for _, name := range devices(Input{Terminal: true}) {
		if deviceNumbers[name][0] == 0 {
			t.Errorf("%s has no number to be checked by", name)
		}
	}
}
