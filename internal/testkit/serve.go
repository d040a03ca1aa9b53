package testkit

import (
	"net"
	"os"
	"runtime"
	"slices"
	"testing"
)

// Serve gives each connection of l to f and closes it then, until l is closed.
func Serve(l net.Listener, f func(*net.TCPConn)) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			f(c.(*net.TCPConn))
		}()
	}
}

// NothingLeft runs f and waits until as many goroutines and the same descriptors
// are there as before.
func NothingLeft(t *testing.T, f func()) {
	t.Helper()
	if l, err := net.Listen("tcp4", "127.0.0.1:0"); err == nil {
		l.Close() // what the runtime opens once is not ours
	}
	// What earlier tests have let go of is closed by the collector, when it comes to it.
	runtime.GC()
	runtime.GC()
	goroutines, files := runtime.NumGoroutine(), descriptors(t)
	f()
	Eventually(t, "all goroutines end", func() bool { return runtime.NumGoroutine() <= goroutines })
	Eventually(t, "all descriptors are closed", func() bool {
		return !slices.ContainsFunc(descriptors(t), func(fd string) bool { return !slices.Contains(files, fd) })
	})
}

func descriptors(t testing.TB) []string {
	t.Helper()
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	list, err := dir.Readdirnames(-1)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(list)
	return list
}
