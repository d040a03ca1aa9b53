// Package machine says in one line what figures were taken on.
package machine

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Line is one line on this machine, its kernel and who asks.
func Line() string {
	var u unix.Utsname
	unix.Uname(&u)
	model := "unknown processor"
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range bytes.Lines(info) {
		if k, v, ok := bytes.Cut(line, []byte(":")); ok && string(bytes.TrimSpace(k)) == "model name" {
			model = string(bytes.TrimSpace(v))
			break
		}
	}
	groups := "cgroup v2"
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err != nil {
		groups = "cgroup v1 or hybrid"
	}
	return fmt.Sprintf("%s, %d CPUs, Linux %s %s, %s, uid %d, %s, %s", model, runtime.NumCPU(),
		unix.ByteSliceToString(u.Release[:]), unix.ByteSliceToString(u.Machine[:]), groups,
		os.Geteuid(), runtime.Version(), time.Now().UTC().Format(time.DateOnly))
}

// Load is the load of the last minute, and "?" where the kernel does not say.
func Load() string {
	text, _ := os.ReadFile("/proc/loadavg")
	if load, _, ok := bytes.Cut(text, []byte(" ")); ok {
		return string(load)
	}
	return "?"
}
