package learn

import (
	"runtime"
	"testing"

	"sandglass/pkg/seccomp/profile"
	"sandglass/pkg/seccomp/sysnum"
	profiles "sandglass/seccomp-profiles"
)

func observe(t *testing.T, l *Log, refused bool, name string, args ...uint64) {
	t.Helper()
	nr, ok := sysnum.Number(runtime.GOARCH, name)
	if !ok {
		t.Fatalf("no call %s here", name)
	}
	var a [6]uint64
	copy(a[:], args)
	l.Observe(nr, a, refused)
}

func decided(t *testing.T, p *profile.Profile, name string, args ...uint64) string {
	t.Helper()
	nr, _ := sysnum.Number(runtime.GOARCH, name)
	var a [6]uint64
	copy(a[:], args)
	return p.Decide(runtime.GOARCH, nr, a).String()
}

// TestWhatIsLearned: what was used is allowed, socket, clone and ioctl by what was
// asked for; what was refused stays refused as it was; the rest is the default.
func TestWhatIsLearned(t *testing.T) {
	l, err := New()
	if err != nil {
		t.Fatal(err)
	}
	observe(t, l, false, "read", 7, 8, 9)
	observe(t, l, false, "socket", 1<<32|2, 1|0x80000, 6)
	observe(t, l, true, "socket", 38, 5, 0)
	observe(t, l, false, "ioctl", 1, 0x5401)
	observe(t, l, false, "mmap", 0, 4096, 3, 0x22)
	observe(t, l, true, "ptrace", 0)
	observe(t, l, true, "clone", 0x10000011)
	l.Observe(0xfffe, [6]uint64{}, true)
	p, err := l.Profile()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args []uint64
		want string
	}{
		{"read", []uint64{1, 2, 3}, "allow"},
		{"pread64", nil, "errno 38"},
		{"exit_group", nil, "allow"},
		{"socket", []uint64{2, 0x80001, 6}, "allow"},
		{"socket", []uint64{2, 1, 6}, "errno 97"},
		{"socket", []uint64{10, 0x80001, 6}, "errno 97"},
		{"ioctl", []uint64{5, 1<<32 | 0x5401}, "allow"},
		{"ioctl", []uint64{5, 0x5412}, "errno 25"},
		{"mmap", []uint64{0, 1, 0, 0x2}, "allow"},
		{"mmap", []uint64{0, 1, 0, 0x40000}, "errno 12"},
		{"ptrace", nil, "errno 1"},
		{"clone", []uint64{17}, "errno 1"},
		{"unshare", nil, "errno 38"},
	} {
		if got := decided(t, p, c.name, c.args...); got != c.want {
			t.Errorf("%s%#x: %s, want %s", c.name, c.args, got, c.want)
		}
	}
	if len(p.Arches) != 1 || p.Arches[0] != runtime.GOARCH {
		t.Errorf("for %v", p.Arches)
	}
}

// TestTooManyKinds: who asks for more than is kept gets what the default allows.
func TestTooManyKinds(t *testing.T) {
	l, err := New()
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(maxKinds + 10) {
		observe(t, l, false, "ioctl", 0, 0x8000+i)
	}
	p, err := l.Profile()
	if err != nil {
		t.Fatal(err)
	}
	for request, want := range map[uint64]string{0x5401: "allow", 0x5412: decided(t, l.base, "ioctl", 0, 0x5412), 0x8000: decided(t, l.base, "ioctl", 0, 0x8000)} {
		if got := decided(t, p, "ioctl", 0, request); got != want || request != 0x5401 && got == "allow" {
			t.Errorf("ioctl %#x: %s, want %s", request, got, want)
		}
	}
}

// TestWithin notices a profile that allows more.
func TestWithin(t *testing.T) {
	parse := func(name string) *profile.Profile {
		p, err := profile.Parse([]byte(profiles.Source(name)))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if !within(parse("minimal"), parse("default")) {
		t.Error("minimal is not within default")
	}
	if within(parse("debug"), parse("default")) {
		t.Error("debug is within default")
	}
	l, err := New()
	if err != nil {
		t.Fatal(err)
	}
	observe(t, l, false, "ptrace", 0) // a bug of whoever observes
	l.calls["clone"] = &seen{used: true, kinds: map[[6]uint64]bool{{0x10000011}: true}}
	if _, err := l.Profile(); err != errWider {
		t.Errorf("got %v, want %v", err, errWider)
	}
}
