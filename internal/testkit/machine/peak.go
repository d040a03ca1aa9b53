package machine

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// WatchPeak follows the memory of a process until stop, which says the most that it
// had. The usage that a wait gives counts that of the process that started it, too,
// up to the execve.
func WatchPeak(pid int) (stop func() int64) {
	done, peak := make(chan struct{}), make(chan int64)
	go func() {
		var most int64
		for tick := time.Tick(10 * time.Millisecond); ; {
			most = max(most, highWater(pid))
			select {
			case <-done:
				peak <- most
				return
			case <-tick:
			}
		}
	}()
	return func() int64 { close(done); return <-peak }
}

// highWater is VmHWM, in bytes; 0 once the process has ended.
func highWater(pid int) (kib int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(text), "\nVmHWM:")
	fmt.Sscan(after, &kib)
	return kib << 10
}
