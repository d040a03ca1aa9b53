package sys

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOnly(t *testing.T) {
	c := &Calls{}
	c.Add("a", unix.SYS_GETPID)
	c.Add("b", unix.SYS_GETPPID)
	c.Add("c", unix.SYS_GETUID)
	c.Add("a", unix.SYS_GETGID)
	c.Add("c", unix.SYS_GETEUID)
	if got, want := c.Only("c", "a", "nothing").Names(), []string{"a", "c", "a", "c"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := c.Only().Names(); len(got) != 0 {
		t.Errorf("%q of none", got)
	}
}
