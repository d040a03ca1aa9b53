package launch

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Init that failed early has said why and is gone: what it said counts, not
// that it takes no more.
func TestSendFilesToAnInitThatIsGone(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours := os.NewFile(uintptr(pair[0]), "control")
	defer ours.Close()
	if err := unix.Close(pair[1]); err != nil {
		t.Fatal(err)
	}
	if err := sendFiles(ours, []*os.File{os.Stdin}); err != nil {
		t.Errorf("%v, want none", err)
	}
	closed := os.NewFile(uintptr(1<<20), "no descriptor")
	if err := sendFiles(closed, []*os.File{os.Stdin}); err == nil {
		t.Error("no error from a descriptor that is not open")
	}
}
