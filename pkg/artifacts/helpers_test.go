package artifacts

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"sandglass/pkg/hostpath"
	"sandglass/pkg/result"
)

const secret = "host-secret-8f2c"

// childEnv makes the test binary the child of deadTmpfs.
const childEnv = "SANDGLASS_TEST_TMPFS"

func TestMain(m *testing.M) {
	if opts, ok := os.LookupEnv(childEnv); ok {
		if err := tmpfsChild(opts); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	syscall.Umask(0o022) // the manifests below have its modes
	os.Exit(m.Run())
}

// deadTmpfs returns the descriptor of a tmpfs whose mount namespace and user
// namespace are gone, as the supervisor has it after a run. opts are
// mount options; with ";tree" after them it holds what hostileTree makes.
func deadTmpfs(t *testing.T, opts string) int {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[0])
	theirs := os.NewFile(uintptr(pair[1]), "socket")
	uid, gid := os.Getuid(), os.Getgid()
	if uid == 0 && strings.HasSuffix(opts, ";tree") {
		// Like the id that sandglass takes for a root caller. A destination must
		// know the caller's id, or nothing can be made there (EOVERFLOW).
		uid, gid = 200123, 200123
		exe, err := os.Executable() // which a tight umask keeps from that id
		must(t, errors.Join(err, os.Chmod(exe, 0o755)))
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{childEnv + "=" + opts}
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential:  &syscall.Credential{Uid: 0, Gid: 0, NoSetGroups: true},
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: gid, Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	theirs.Close()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.ENOSYS) {
		t.Skipf("SKIP(want user namespaces, have %v)", err)
	}
	if err != nil {
		t.Fatalf("child: %v: %s", err, out)
	}
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(pair[0], make([]byte, 1), oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	msgs, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(msgs) != 1 {
		t.Fatalf("control messages: %d, %v", len(msgs), err)
	}
	fds, err := unix.ParseUnixRights(&msgs[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fds[0]) })
	return fds[0]
}

func tmpfsChild(opts string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private: %w", err)
	}
	mountOpts, tree, _ := strings.Cut(opts, ";")
	if err := unix.Mount("tmpfs", "/tmp", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, mountOpts); err != nil {
		return fmt.Errorf("tmpfs: %w", err)
	}
	if tree == "tree" {
		if err := hostileTree("/tmp", "/tmp/c14-secret"); err != nil {
			return err
		}
	}
	fd, err := unix.Open("/tmp", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return unix.Sendmsg(3, []byte{0}, unix.UnixRights(fd), nil, 0)
}

// hostileTree leaves what case C14's payload leaves.
func hostileTree(dir, secretPath string) error {
	links := map[string]string{
		"abs.txt": "/etc/passwd", "secret.txt": secretPath, "root": "/", "loop": ".", "self": "self",
		"rel.txt": strings.Repeat("../", 30) + strings.TrimPrefix(secretPath, "/"),
		"env.txt": "/proc/self/environ", "dangling": "missing", "endless": "/dev/zero", "dirlink": "/tmp",
	}
	files := []string{"plain.txt", "new\nline", "-rf", "bad\xffname", " lead", "a;b$(c)`d`", strings.Repeat("n", 255), "…", "sub/deep/leaf"}
	var errs []error
	do := func(err error) { errs = append(errs, err) }
	do(os.MkdirAll(filepath.Join(dir, "sub/deep"), 0o755))
	do(os.Mkdir(filepath.Join(dir, "empty"), 0o700))
	for name, target := range links {
		do(os.Symlink(target, filepath.Join(dir, name)))
	}
	for _, name := range files {
		do(os.WriteFile(filepath.Join(dir, name), []byte("data of "+name), 0o644))
	}
	do(unix.Mkfifo(filepath.Join(dir, "pipe"), 0o644))
	do(unix.Mknod(filepath.Join(dir, "sock"), unix.S_IFSOCK|0o644, 0))
	do(os.WriteFile(filepath.Join(dir, "setuid.bin"), []byte("\x7fELF"), 0o755))
	do(unix.Chmod(filepath.Join(dir, "setuid.bin"), 0o6755))
	do(os.Link(filepath.Join(dir, "plain.txt"), filepath.Join(dir, "hard.txt")))
	do(os.Chmod(filepath.Join(dir, "sub/deep"), 0))
	return errors.Join(errs...)
}

// newDir is a temporary directory that can be removed whatever modes are in it.
func newDir(t testing.TB) string {
	dir := t.TempDir()
	t.Cleanup(func() {
		filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if e != nil && e.IsDir() {
				os.Chmod(path, 0o700)
			}
			return nil
		})
	})
	return dir
}

func openDir(t testing.TB, path string) int {
	t.Helper()
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

const tempNames = ".sandglass-"

// into opens a destination as a run does. The temporary directory's own path
// may have links.
func into(t testing.TB, dst string) *Dest {
	t.Helper()
	if strings.HasPrefix(dst, "/proc/self/fd/") {
		return &Dest{path: dst, parent: -1, dir: openDir(t, dst)}
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(dst))
	must(t, err)
	d, err := OpenDest(filepath.Join(parent, filepath.Base(dst)))
	must(t, err)
	t.Cleanup(d.Close)
	return d
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, path, data string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(data), 0o644))
}

// trees is a source and a destination (not yet made) side by side.
func trees(t testing.TB) (src, dst string) {
	dir := newDir(t)
	src = filepath.Join(dir, "src")
	must(t, os.Mkdir(src, 0o755))
	return src, filepath.Join(dir, "dst")
}

// gather collects src into dst and fails on an error.
func gather(t testing.TB, src, dst string, l Limits) []result.Artifact {
	t.Helper()
	list, err := Collect(context.Background(), openDir(t, src), into(t, dst), l, false)
	must(t, err)
	return list
}

// lines is a manifest as text: "path type size mode skipped".
// gatherPast is gather of a tree that is past the limits; want is the whole
// error.
func gatherPast(t testing.TB, src, dst string, l Limits, want string) []result.Artifact {
	t.Helper()
	list, err := Collect(context.Background(), openDir(t, src), into(t, dst), l, false)
	var beyond *LimitError
	if !errors.As(err, &beyond) || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	return list
}

func lines(list []result.Artifact) string {
	var b strings.Builder
	for _, a := range list {
		fmt.Fprintf(&b, "%q %s %d %s", a.Path, a.Type, a.Size, a.Mode)
		if a.Target != "" {
			fmt.Fprintf(&b, " -> %q", a.Target)
		}
		if a.Skipped != "" {
			fmt.Fprintf(&b, " (%s)", a.Skipped)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func wantLines(t testing.TB, list []result.Artifact, want ...string) {
	t.Helper()
	if got := lines(list); got != strings.Join(want, "\n")+"\n" {
		t.Errorf("manifest:\n%swant:\n%s", got, strings.Join(want, "\n"))
	}
}

func rawPath(t testing.TB, a result.Artifact) string {
	t.Helper()
	if a.PathBase64 == "" {
		return a.Path
	}
	raw, err := base64.StdEncoding.DecodeString(a.PathBase64)
	must(t, err)
	return string(raw)
}

// verify checks what holds for every collection into an empty destination: the
// manifest and the destination say the same, nothing else is there, no secret
// came along, order and bounds are kept.
func verify(t testing.TB, list []result.Artifact, dst string, l Limits) {
	t.Helper()
	l, err := l.resolve()
	must(t, err)
	if len(list) > l.Files+1 {
		t.Errorf("%d entries, limit %d", len(list), l.Files)
	}
	want := map[string]result.Artifact{}
	last, bytes := "", int64(0)
	for i, a := range list {
		raw := rawPath(t, a)
		if !utf8.ValidString(a.Path) || !utf8.ValidString(a.Target) {
			t.Errorf("entry %q is not UTF-8", a.Path)
		}
		if a.Path == "." {
			if i != len(list)-1 || a.Skipped == "" {
				t.Errorf("entry %d is the final one: %+v", i, a)
			}
			continue
		}
		if key := strings.ReplaceAll(raw, "/", "\x00"); key <= last {
			t.Errorf("%q comes after %q", raw, last)
		} else {
			last = key
		}
		if a.Skipped == "" {
			want[raw] = a
			bytes += a.Size
		} else if a.SHA256 != "" || a.Mode != "" {
			t.Errorf("skipped, yet collected: %+v", a)
		}
	}
	if bytes > l.Bytes {
		t.Errorf("%d bytes collected, limit %d", bytes, l.Bytes)
	}
	must(t, filepath.WalkDir(dst, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dst {
			return err
		}
		rel := path[len(dst)+1:]
		a, ok := want[rel]
		if !ok {
			t.Errorf("%q is in the destination but not in the manifest", rel)
		}
		delete(want, rel)
		checkEntry(t, path, e, a)
		return nil
	}))
	for p := range want {
		t.Errorf("%q is in the manifest but not in the destination", p)
	}
}

func checkEntry(t testing.TB, path string, e fs.DirEntry, a result.Artifact) {
	t.Helper()
	info, err := e.Info()
	must(t, err)
	st := info.Sys().(*syscall.Stat_t)
	if octal(st.Mode) != a.Mode || st.Mode&0o7022 != 0 || int(st.Uid) != os.Geteuid() {
		t.Errorf("%q: mode %o of %d, manifest %s", a.Path, st.Mode, st.Uid, a.Mode)
	}
	switch {
	case info.IsDir() && a.Type == typeDir:
	case info.Mode().IsRegular() && a.Type == typeFile:
		data, err := os.ReadFile(path)
		must(t, err)
		sum := sha256.Sum256(data)
		if hex.EncodeToString(sum[:]) != a.SHA256 || int64(len(data)) != a.Size {
			t.Errorf("%q: %d bytes %x, manifest %+v", a.Path, len(data), sum, a)
		}
		if strings.Contains(string(data), secret) {
			t.Errorf("%q holds the host's secret", a.Path)
		}
	default:
		t.Errorf("%q is a %v, manifest %s", a.Path, info.Mode(), a.Type)
	}
}

// eachDraft runs a test with files that have no name while they are written, and
// with ones that have.
func eachDraft(t *testing.T, test func(*testing.T)) {
	t.Run("nameless", test)
	t.Run("named", func(t *testing.T) {
		useDraft(t, hostpath.NamedDraft)
		test(t)
	})
}

func useDraft(t *testing.T, draft func(dir int, mode uint32) (*hostpath.Draft, error)) {
	t.Cleanup(func() { newDraft = hostpath.NewDraft })
	newDraft = draft
}
