package artifacts

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// grow makes a tree from a description: for each entry a byte of kind, one that
// chooses the parent, one for the length of the name, and the name. What cannot
// be made is left out.
func grow(src, outside string, b []byte) {
	dirs, files := []string{src}, []string{}
	for len(b) >= 4 {
		kind, parent, n := b[0], dirs[int(b[1])%len(dirs)], 1+int(b[2])%12
		n = min(n, len(b)-3)
		name := strings.NewReplacer("/", "_", "\x00", "_").Replace(string(b[3 : 3+n]))
		b = b[3+n:]
		path := parent + "/" + name
		if name == "." || name == ".." {
			continue
		}
		mode := uint32(kind&0x1f) << 7
		switch kind >> 5 {
		case 0, 1:
			if create(path, []byte(name)) == nil {
				unix.Chmod(path, mode)
				files = append(files, path)
			}
		case 2:
			if os.Mkdir(path, 0o700) == nil {
				dirs = append(dirs, path)
			}
		case 3:
			targets := []string{outside, outside + "/file", "../outside/file", ".", "..", "/", name, "/proc/self/environ"}
			os.Symlink(targets[int(kind)%len(targets)], path)
		case 4:
			unix.Mkfifo(path, mode)
		case 5:
			if len(files) > 0 {
				os.Link(files[int(kind)%len(files)], path)
			}
		case 6:
			if create(path, nil) == nil {
				os.Truncate(path, 1<<(kind&0x1f))
			}
		case 7:
			unix.Mknod(path, unix.S_IFSOCK|0o777, 0)
		}
	}
}

// create writes a new file. What is there already may be a pipe without a
// reader, and to open that for writing would wait for one.
func create(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write(content)
	return err
}

// FuzzCollect collects whatever tree and limits the fuzzer thinks of. The
// invariants of verify hold, nothing of the host is read or written, and there
// is no error but that of the limits: whatever else a program leaves is its own
// business.
func FuzzCollect(f *testing.F) {
	f.Add([]byte("\x05\x00\x00f\x45\x00\x00d\x60\x01\x00l\x61\x01\x00m\x85\x00\x00p\xa0\x00\x00h"), uint8(9), uint8(3), uint16(100))
	f.Add([]byte("\x05\x00\x02-rf\x05\x00\x02a\nb\x05\x00\x01\xff\xfe"), uint8(2), uint8(1), uint16(2))
	f.Add([]byte("\x45\x00\x00d\x45\x01\x00d\x45\x02\x00d\x05\x03\x00f\xdf\x03\x00s"), uint8(200), uint8(2), uint16(65535))
	f.Add([]byte("\x1f\x00\x00s\xe0\x00\x00k\x66\x00\x00e\x67\x00\x00v"), uint8(0), uint8(0), uint16(0))
	f.Add([]byte("\x05\x00\x0b.sandglass-\x05\x00\x00\xc3\x05\x00\x01\xc3\xa9"), uint8(3), uint8(1), uint16(20))
	f.Fuzz(func(t *testing.T, tree []byte, files, depth uint8, bytes uint16) {
		if len(tree) > 1<<10 {
			t.Skip("SKIP(want a small tree)")
		}
		src, dst := trees(t)
		outside := filepath.Join(filepath.Dir(dst), "outside")
		must(t, os.Mkdir(outside, 0o755))
		write(t, filepath.Join(outside, "file"), secret)
		before := snapshot(t, outside)
		grow(src, outside, tree)
		l := Limits{Files: int(files), Depth: int(depth) % (maxDepth + 1), Bytes: int64(bytes), FileBytes: int64(bytes)/2 + 1}
		list, err := Collect(context.Background(), openDir(t, src), into(t, dst), l, false)
		onlyLimits(t, err)
		verify(t, list, dst, l)
		if got := snapshot(t, outside); got != before {
			t.Errorf("outside changed:\n%s", got)
		}
		again, err := Collect(context.Background(), openDir(t, src), into(t, dst), l, true)
		onlyLimits(t, err)
		verify(t, again, dst, l)
		if lines(again) != lines(list) {
			t.Errorf("with force:\n%swas:\n%s", lines(again), lines(list))
		}
	})
}

// onlyLimits allows Collect no error but that of the limits.
func onlyLimits(t testing.TB, err error) {
	t.Helper()
	kinds := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		kinds = joined.Unwrap()
	}
	for _, e := range kinds {
		if _, ok := e.(*LimitError); e != nil && !ok {
			t.Fatal(err)
		}
	}
}
