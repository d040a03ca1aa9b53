package escape

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"

	"golang.org/x/sys/unix"
)

func TestRootIsReadOnly(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		attempt(t, who, nil, slices.Concat(
			all("EROFS", "mkdir:/x", "mkdir:/usr/x", "mkdir:/etc/x", "mkdir:/dev/x", "mkdir:/code/x", "mkdir:/opt/x", "mkdir:/run/x",
				"mkdir:/sys/x", "mkdir:/home/x", "mkdir:/var/x", "open:w:/etc/passwd", "open:w:/etc/hosts",
				"unlink:/etc/passwd", "unlink:/bin", "rename:/etc/passwd:/etc/x", "chmod:777:/usr", "chmod:777:/etc"),
			all("EACCES", "open:w:/etc/ld.so.cache", "open:w:/usr/bin/env"), // root's own, whatever the mount says
			all("EPERM", "remount:/", "remount:/usr", "remount:/etc", "remount:/proc/sys", "umount:/proc", "umount:/dev/null", "umount:/tmp",
				"umount:/", "bind:/tmp:/usr", "mount:tmpfs:/tmp", "mount:proc:/tmp", "mount:sysfs:/tmp", "mount:overlay:/tmp",
				call("pivot_root", ":0:0"), call("chroot", ":0"), call("open_tree", ":-100:0:1"), call("move_mount", ":-1:0:-1:0:0"), call("fsopen", ":0:0"),
				call("mount_setattr", ":-1:0:0:0:0"))))
	})
}

// What holds the host's state is not there at all, by whatever name.
func TestHostFilesAreNotThere(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		secret := filepath.Join(testkit.Dir(t), "secret")
		write(t, secret, "secret")
		attempt(t, who, nil, all("ENOENT",
			"list:/root", "list:/boot", "list:/var/log", "list:/var/lib", "list:/srv", "list:/mnt", "list:/media", "list:/home/cloudsdk",
			"open:r:/etc/shadow", "open:r:/etc/gshadow", "open:r:/etc/sudoers", "list:/etc/ssh", "open:r:/etc/machine-id",
			"list:/etc/ssl/private", "list:/run/docker.sock", "list:/run/systemd", "open:r:"+secret, "open:r:/proc/self/cwd/.."+secret,
			"open:r:/proc/self/root"+secret, "open:r:/tmp/../../../../../.."+secret))
		o := must(t, testkit.Sh(t, who, "ls -A /run /home /home/sandbox /work /out /tmp /var /sys | cat"))
		want := "/home:\nsandbox\n\n/home/sandbox:\n\n/out:\n\n/run:\n\n/sys:\nfs\n\n/tmp:\n\n/var:\nrun\ntmp\n\n/work:\n"
		if !who.Limited() {
			want = strings.Replace(want, "/sys:\nfs\n", "/sys:\n", 1)
		}
		if o.Stdout != want {
			t.Errorf("%q, want %q", o.Stdout, want)
		}
	})
}

// mountPoint is one line of mountinfo.
type mountPoint struct {
	root, target, fstype string
	options, optional    []string
}

func parseMounts(text string) []mountPoint {
	var list []mountPoint
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		dash := slices.Index(f, "-")
		if dash < 6 {
			continue
		}
		list = append(list, mountPoint{root: f[3], target: f[4], options: strings.Split(f[5], ","), optional: f[6:dash], fstype: f[dash+1]})
	}
	return list
}

// writable are all places that a program can change, and nothing else is.
var writable = []string{"/tmp", "/work", "/home/sandbox", "/out", "/dev/shm", "/dev/pts", "/proc"}

var deviceFiles = []string{"/null", "/zero", "/full", "/random", "/urandom"}

func TestMountAttributes(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := must(t, testkit.Sh(t, who, "cat /proc/self/mountinfo"))
		mounts := parseMounts(o.Stdout)
		if len(mounts) < 20 {
			t.Fatalf("only %d mounts were read: %s", len(mounts), o.Stdout)
		}
		for _, m := range mounts {
			if !slices.Contains(m.options, "nosuid") {
				t.Errorf("%s may hold set-uid programs: %v", m.target, m.options)
			}
			if m.fstype == "devtmpfs" && slices.Contains(deviceFiles, m.root) {
				continue // a single device that leads nowhere
			}
			if !slices.Contains(m.options, "nodev") && m.target != "/dev/pts" {
				t.Errorf("%s may hold devices: %v", m.target, m.options)
			}
			if slices.Contains(m.options, "rw") && !slices.Contains(writable, m.target) {
				t.Errorf("%s is writable: %v", m.target, m.options)
			}
			if len(m.optional) != 0 {
				t.Errorf("%s shares mounts with another namespace: %v", m.target, m.optional)
			}
		}
	})
}

// A mount made on the host after the start must not show inside, and nothing
// made inside may show on the host.
func TestMountsPropagateNowhere(t *testing.T) {
	if !testkit.Quiet(t) {
		return
	}
	dir := testkit.Dir(t)
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=755"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	for _, d := range []string{"/early", "/late"} {
		if err := os.Mkdir(dir+d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		t.Fatal(err)
	}
	for _, who := range []testkit.Who{testkit.AsRoot(t), testkit.AsUser(t)} {
		t.Run(who.Name, func(t *testing.T) {
			before := hostMounts(t)
			l := hold(t, testkit.Opts{Who: who}, "ls /data/late /usr/share/doc/late-mount; cat /proc/self/mountinfo", "-v", dir+":/data")
			if got := hostMounts(t); got != before {
				t.Errorf("the host's mounts changed:\n%s\nbefore:\n%s", got, before)
			}
			for _, at := range []string{dir + "/late", "/usr/share/doc"} {
				if err := unix.Mount("tmpfs", at, "tmpfs", 0, ""); err != nil {
					t.Fatal(err)
				}
				defer unix.Unmount(at, unix.MNT_DETACH)
			}
			write(t, dir+"/late/secret", "x")
			write(t, "/usr/share/doc/late-mount", "x")
			l.release()
			o := l.Wait()
			if strings.Contains(o.Stdout, "secret") || strings.Contains(o.Stdout, "/usr/share/doc/late-mount") {
				t.Errorf("a later mount of the host shows inside: %s", o.Stdout)
			}
			for _, m := range parseMounts(o.Stdout) {
				if m.target == "/data/late" || m.target == "/usr/share/doc" {
					t.Errorf("a later mount of the host shows inside: %v", m)
				}
			}
		})
	}
}

func hostMounts(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestReadOnlyMountStaysSo(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir := testkit.Dir(t)
		write(t, dir+"/file", "as it was")
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir+"/file", 0o666); err != nil {
			t.Fatal(err)
		}
		attempt(t, who, []string{"-v", dir + ":/data"}, append(
			all("EROFS", "open:w:/data/file", "mkdir:/data/x", "unlink:/data/file", "chmod:600:/data/file", "rename:/data/file:/data/y"),
			try{"remount:/data", "EPERM"}, try{"write:/proc/self/root/data/file:x", "EROFS"}))
		if text, err := os.ReadFile(dir + "/file"); err != nil || string(text) != "as it was" {
			t.Errorf("%q, %v", text, err)
		}
	})
}

// A file that is set-uid after the run, in a mount that belongs to root on the
// host, makes the next user of it root.
func TestNoSetUIDBitsInWritableMounts(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir := testkit.Dir(t)
		if !who.IsRoot() {
			if err := os.Chown(dir, who.UID, who.GID); err != nil {
				t.Fatal(err)
			}
		}
		attempt(t, who, []string{"-v", dir + ":/data:rw"}, append(
			[]try{{"creat:755:/data/file", "OK"}, {"chmod:700:/data/file", "OK"}, {"mkfifo:600:/data/fifo", "OK"}},
			all("EPERM", "chmod:4755:/data/file", "chmod:2755:/data/file", "chmod:6711:/data/file", "creat:4755:/data/x", "creat:2755:/data/y",
				"mkfifo:4755:/data/z", "mknod:/data/disk")...))
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
			if info, err := e.Info(); err != nil || info.Mode()&(os.ModeSetuid|os.ModeSetgid|os.ModeDevice) != 0 {
				t.Errorf("%s: %v, %v", e.Name(), info.Mode(), err)
			}
		}
		if want := []string{"fifo", "file"}; !slices.Equal(names, want) {
			t.Errorf("the mount holds %v, want %v", names, want)
		}
	})
}
