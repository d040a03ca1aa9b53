package hosts

import (
	"fmt"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/internal/testkit/agree"

	"golang.org/x/sys/unix"
)

// A kernel without mount_setattr(2), which came with 5.12, or the flag of
// close_range(2) before it: nothing runs, and the version that is needed is said.
func TestOldKernel(t *testing.T) {
	ownMachine(t)
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	release := unix.ByteSliceToString(u.Release[:])
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil {
		t.Fatal(err)
	}
	if major > 5 || major == 5 && minor >= 12 {
		testkit.Skip(t, "a kernel before 5.12", release)
	}
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		refused(t, agree.As(who), echo(t, who), "seal descriptors: this kernel does not take close_range(2)'s flags: Linux 5.12 or newer is required", "uname -r")
	})
}
