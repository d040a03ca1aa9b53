//go:build cgo

package sys

import (
	"sync"

	"golang.org/x/sys/unix"
)

// LinksC says whether this program links C: Go then makes no system call on all
// threads at once, for it does not know those of C.
var LinksC = sync.OnceValue(func() bool {
	_, _, errno := allThreads(unix.SYS_GETPID, 0, 0, 0, 0, 0, 0)
	return errno == unix.ENOTSUP
})
