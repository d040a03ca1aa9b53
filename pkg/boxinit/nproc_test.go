package boxinit

import (
	"testing"

	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

func TestRoomForInit(t *testing.T) {
	if ownThreads() == 0 {
		t.Fatal("no thread of its own")
	}
	limits := []wire.Rlimit{{Resource: unix.RLIMIT_CORE}, {Resource: unix.RLIMIT_NPROC, Soft: 64, Hard: 64}}
	before := ownThreads()
	roomForInit(&wire.Config{Rlimits: limits})
	// The runtime may have made a thread meanwhile; it never ends one here.
	got := limits[1]
	if got.Soft < 64+before || got.Soft > 64+ownThreads() || got.Hard != got.Soft {
		t.Errorf("%+v with %d to %d threads", got, before, ownThreads())
	}
	if limits[0] != (wire.Rlimit{Resource: unix.RLIMIT_CORE}) {
		t.Errorf("another limit changed: %+v", limits[0])
	}
	huge := []wire.Rlimit{{Resource: unix.RLIMIT_NPROC, Soft: 1 << 62, Hard: 1 << 62}}
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &own); err != nil {
		t.Fatal(err)
	}
	roomForInit(&wire.Config{Rlimits: huge, Box: wire.NoFD})
	if huge[0].Hard > max(own.Max, 1<<62) && own.Max != unix.RLIM_INFINITY {
		t.Errorf("above the caller's own hard limit %d: %+v", own.Max, huge[0])
	}
}
