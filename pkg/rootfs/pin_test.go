package rootfs

import (
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
