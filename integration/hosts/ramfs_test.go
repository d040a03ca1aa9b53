package hosts

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/internal/testkit/agree"
)

// A host that never left its initial ramfs, as small machines and rescue systems
// are: no root can be left for another there, and the command that is printed
// makes one that can.
func TestInitialRamfs(t *testing.T) {
	ownMachine(t)
	if kind := rootType(t); kind != "rootfs" {
		testkit.Skip(t, "the initial ramfs as the root", kind)
	}
	const what = "init: pivot_root: invalid argument (the host's root is the initial ramfs, which pivot_root(2) refuses)"
	const hint = "unshare -m sh -c 'mkdir -p /mnt && mount --rbind / /mnt && cd /mnt && mount --move . / && exec chroot . sandglass run script.py'" +
		"   # as root: with a root that is a mount of its own"
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		refused(t, agree.As(who), echo(t, who), what, hint, "exec switch_root /newroot /sbin/init   # for good: in the host's initramfs")
	})
	script := strings.Replace(hint, "sandglass run script.py", testkit.Binary(t)+" run -- echo ran", 1)
	out, err := exec.Command("sh", "-c", script).CombinedOutput()
	if err != nil || string(out) != "ran\n" {
		t.Errorf("%s: %v: %q", script, err, out)
	}
}

// rootType is the file system that / is.
func rootType(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	kind := ""
	for line := range strings.Lines(string(text)) {
		before, after, _ := strings.Cut(line, " - ")
		if f := strings.Fields(before); len(f) > 4 && f[4] == "/" {
			kind = strings.Fields(after)[0] // the last is on top
		}
	}
	return kind
}
