package session

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

// hostChanges are what becomes of the host while a sandbox waits, with what a run sees
// before and after that.
var hostChanges = []struct{ name, flags, command, before, change, after string }{
	{"a source that is read-only now", "-v /mnt:/m:rw", "echo x 2>/dev/null >/m/f && echo written", "written\n", "mount -o remount,bind,ro /mnt", ""},
	{"a mount laid over a part of a source", "-v /mnt:/m", "cat /m/sub/f", "below\n", "mount -t tmpfs none /mnt/sub; echo above >/mnt/sub/f", "above\n"},
	{"a mount below a source that is gone", "-v /mnt:/m", "cat /m/on/f", "on\n", "umount /mnt/on", ""},
	{"a source that is another directory", "-v /mnt/dir:/m", "cat /m/f", "dir\n", "mv /mnt/dir /mnt/old; mkdir /mnt/dir; echo new >/mnt/dir/f", "new\n"},
	{"a mount laid over the host's programs", "", "cat /usr/local/f; true", "", "mount -t tmpfs none /usr/local; echo above >/usr/local/f", "above\n"},
	{"files of /etc that are others", "", "cat /etc/mime.types; ls /etc/ssl/certs", "old\n", "echo new >/etc/n; mv /etc/n /etc/mime.types; mv /etc/ssl/certs /etc/ssl/revoked; mkdir /etc/ssl/certs; touch /etc/ssl/certs/a.pem", "new\na.pem\n"},
	{"a file of /etc that is new", "", "cat /etc/matplotlibrc; true", "", "echo new >/etc/matplotlibrc", "new\n"},
	{"an image's directories that are others", "--image /mnt/image", "cat /data/f; cat /more/f /link; true", "data\none\n", "cd /mnt/image; mv data more; mkdir data; echo new >data/f; ln -s usr/../more/f n; mv n link", "new\ndata\ndata\n"},
}

// hostOfItsOwn has an /etc and a directory of sources that may change.
const hostOfItsOwn = `set -e
mkdir -p /run/etc && mount -t tmpfs none /mnt
cp -a /etc/. /run/etc && mount --bind /run/etc /etc
echo old >/etc/mime.types; rm -rf /etc/ssl/certs /etc/matplotlibrc; mkdir -p /etc/ssl/certs
mkdir -p /mnt/sub /mnt/on /mnt/dir /mnt/image/data /mnt/image/usr
echo below >/mnt/sub/f; echo dir >/mnt/dir/f
mount -t tmpfs none /mnt/on; echo on >/mnt/on/f
mount --rbind /usr /mnt/image/usr
cd /mnt/image; echo data >data/f; echo one >data/one; ln -s data/one link
for d in bin lib lib64; do ln -s usr/$d $d; done
chmod -R a+rwX /mnt/sub /mnt/dir /mnt/image/data; chmod 777 /mnt`

// TestWarmHostHasChanged: what a sandbox is made of and is not that of the host any more
// serves no run: the run has what is there now, and so have the sandboxes that wait
// after it.
func TestWarmHostHasChanged(t *testing.T) {
	if !testkit.Quiet(t) {
		return
	}
	sh := func(script string) {
		t.Helper()
		if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
	}
	for _, h := range hostChanges {
		sh(hostOfItsOwn)
		// One for each run before the change, and one that waits all the time until then.
		c := openWarm(t, testkit.AsRoot(t), "command=3", append([]string{"--max-running", "1"}, strings.Fields(h.flags)...)...)
		n := 0
		run := func() (warm bool, out string) {
			n++
			c.sh(fmt.Sprint(n), h.command, "")
			r := c.lastOf(fmt.Sprint(n))
			return r.Result.Warm, r.Result.Stdout.Text + r.Error
		}
		again := func(what, want string) {
			t.Helper()
			testkit.Eventually(t, h.name+": "+what, func() bool {
				warm, out := run()
				if out != want {
					t.Errorf("%s: %s: warm %t, %q, want %q", h.name, what, warm, out, want)
				}
				return warm
			})
		}
		again("before", h.before)
		sh("mount -t tmpfs none /var/tmp") // nothing of the sandbox's
		again("elsewhere", h.before)
		sh(h.change)
		if warm, out := run(); warm || out != h.after {
			t.Errorf("%s: warm %t, %q, want %q", h.name, warm, out, h.after)
		}
		again("after", h.after)
		c.close()
		sh("cd /; umount /etc; umount -R /mnt; umount /var/tmp; umount /usr/local 2>/dev/null; true")
	}
}
