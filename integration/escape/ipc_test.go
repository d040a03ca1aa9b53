package escape

import (
	"testing"

	"golang.org/x/sys/unix"
)

// sharedSegment makes a System V segment on the host that everybody may use.
func sharedSegment(t *testing.T) (key, id int) {
	t.Helper()
	for key = 0x5a4d0000; ; key++ {
		id, err := unix.SysvShmGet(key, 4096, unix.IPC_CREAT|unix.IPC_EXCL|0o666)
		if err == unix.EEXIST {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
		return key, id
	}
}
