package main

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// figures are what the caller, this process, takes of the host.
type figures struct {
	rss, heap   int64 // bytes; heap is what is in use after a collection
	peak        int64 // of a session: the highest RSS
	groups      int   // of a session: its control groups
	descriptors int
	threads     int
}

// growth is how much the heap may grow from the first leg to the last: a leak
// of a kilobyte for each run is more than that in a minute.
const growth = 1 << 20

// measure collects the garbage first, so that only what is held counts.
func measure() *figures {
	runtime.GC()
	runtime.GC() // what has a finalizer goes with the second
	f := quick()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	f.heap = int64(m.HeapAlloc)
	return f
}

// quick is measure without the heap.
func quick() *figures {
	text, _ := os.ReadFile("/proc/self/status")
	entries, _ := os.ReadDir("/proc/self/fd")
	return &figures{rss: number(string(text), "VmRSS:") << 10, threads: int(number(string(text), "Threads:")), descriptors: len(entries)}
}

// watch samples until the function that it returns is called for the peaks.
// That of RSS is the kernel's own.
func watch() func() *figures {
	var mu sync.Mutex
	peak := &figures{}
	tick := time.NewTicker(100 * time.Millisecond)
	go func() {
		for range tick.C {
			f := quick()
			mu.Lock()
			peak.threads, peak.descriptors = max(peak.threads, f.threads), max(peak.descriptors, f.descriptors)
			mu.Unlock()
		}
	}()
	return func() *figures {
		tick.Stop()
		mu.Lock()
		defer mu.Unlock()
		text, _ := os.ReadFile("/proc/self/status")
		peak.rss = number(string(text), "VmHWM:") << 10
		return peak
	}
}

// number is the first number of the line that begins with key, 0 for none.
func number(text, key string) int64 {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == key {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n
		}
	}
	return 0
}
