package cgroup

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sandglass/internal/refusal"
)

func itoa(n int) string { return strconv.Itoa(n) }

// checkRefusal wants exactly what, and hint as a part of one of the hints.
func checkRefusal(t *testing.T, err error, what, hint string) {
	t.Helper()
	var r *refusal.Error
	if !errors.As(err, &r) {
		t.Fatalf("%v (%T), want a refusal", err, err)
	}
	if r.What != what {
		t.Errorf("what: %q\nwant: %q", r.What, what)
	}
	if r.Exit != 125 {
		t.Errorf("exit %d", r.Exit)
	}
	if hint != "" && !strings.Contains(strings.Join(r.Hints, "\n"), hint) {
		t.Errorf("no hint has %q: %q", hint, r.Hints)
	}
}

func TestLimitsAreChecked(t *testing.T) {
	io := func(l ...IOLimit) Limits { return Limits{IO: l} }
	for _, c := range []struct {
		l    Limits
		what string // "" is valid
	}{
		{Limits{}, ""},
		{Limits{MemoryMax: 4096, PidsMax: 1, CPUQuotaUS: 1000, CPUPeriodUS: 1000}, ""},
		{Limits{MemoryMax: 4095}, "memory limit of 4095 bytes is not between one page (4096) and 9223372036854710272"},
		{Limits{MemoryMax: -1}, "memory limit of -1 bytes is not between one page (4096) and 9223372036854710272"},
		{Limits{MemoryMax: math.MaxInt64}, "memory limit of 9223372036854775807 bytes is not between one page (4096) and 9223372036854710272"},
		{Limits{PidsMax: -1}, "pids limit of -1 is not between 1 and 4194304"},
		{Limits{PidsMax: 4194305}, "pids limit of 4194305 is not between 1 and 4194304"},
		{Limits{CPUQuotaUS: 999}, "cpu quota of 999 µs in 100000 µs is not between 1000 and 17592186044415"},
		{Limits{CPUQuotaUS: -1}, "cpu quota of -1 µs in 100000 µs is not between 1000 and 17592186044415"},
		{Limits{CPUQuotaUS: math.MaxInt64}, "cpu quota of 9223372036854775807 µs in 100000 µs is not between 1000 and 17592186044415"},
		{Limits{CPUQuotaUS: 5000, CPUPeriodUS: 999}, "cpu period of 999 µs is not between 1000 and 1000000"},
		{Limits{CPUQuotaUS: 5000, CPUPeriodUS: 1000001}, "cpu period of 1000001 µs is not between 1000 and 1000000"},
		{io(IOLimit{Major: 8, ReadBPS: -1}), "io limit of device 8:0 is negative"},
		{io(IOLimit{Major: 8}), "io limit of device 8:0 limits nothing"},
		{io(IOLimit{Major: 8, WriteIOPS: 1 << 32}), "io limit of device 8:0 is above 4294967295 operations a second"},
		{io(IOLimit{Major: 8, Minor: 1, ReadBPS: 1}, IOLimit{Major: 8, Minor: 1, WriteBPS: 1}), "two io limits for device 8:1"},
	} {
		if unix.Getpagesize() != 4096 && c.l.MemoryMax != 0 {
			continue
		}
		err := c.l.validate()
		if c.what == "" {
			if err != nil {
				t.Errorf("%+v: %v", c.l, err)
			}
			continue
		}
		checkRefusal(t, err, c.what, "")
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, c := range []struct {
		o    Options
		what string
	}{
		{Options{ID: "a-Z_9"}, ""},
		{Options{ID: "a", Parent: "/"}, ""},
		{Options{ID: "a", Parent: "/user.slice/a b"}, ""},
		{Options{ID: "a", Allow: map[string]bool{Memory: true, CPU: true, Pids: true, IO: true, "disk": false}}, ""},
		{Options{}, `cgroup id "" is not 1 to 64 letters, digits, '_' or '-'`},
		{Options{ID: "../x"}, `cgroup id "../x" is not 1 to 64 letters, digits, '_' or '-'`},
		{Options{ID: "a.b"}, `cgroup id "a.b" is not 1 to 64 letters, digits, '_' or '-'`},
		{Options{ID: "supervisor"}, `cgroup id "supervisor" is not 1 to 64 letters, digits, '_' or '-'`},
		{Options{ID: "a", HostUID: -1}, "host uid -1 is negative"},
		{Options{ID: "a", Allow: map[string]bool{"disk": true}}, `--allow-degraded: unknown limit "disk"`},
		{Options{ID: "a", Parent: "x"}, `--cgroup-parent "x" is not a clean absolute path below the cgroup mount`},
		{Options{ID: "a", Parent: "/a/../b"}, `--cgroup-parent "/a/../b" is not a clean absolute path below the cgroup mount`},
		{Options{ID: "a", Parent: "/a/"}, `--cgroup-parent "/a/" is not a clean absolute path below the cgroup mount`},
		{Options{ID: "a", Parent: "/a/./b"}, `--cgroup-parent "/a/./b" is not a clean absolute path below the cgroup mount`},
		{Options{ID: "a", Parent: "/a\x00"}, `--cgroup-parent "/a\x00" is not a clean absolute path below the cgroup mount`},
	} {
		err := c.o.validate()
		if c.what == "" {
			if err != nil {
				t.Errorf("%+v: %v", c.o, err)
			}
			continue
		}
		checkRefusal(t, err, c.what, "")
	}
}

func TestField(t *testing.T) {
	text := "low 0\noom_kill 3\noom 7\nbad x\n"
	for key, want := range map[string]int64{"low": 0, "oom": 7, "oom_kill": 3, "bad": -1, "none": -1, "": -1} {
		if got := field(text, key); got != want {
			t.Errorf("field(%q) = %d, want %d", key, got, want)
		}
	}
	if n := number("max\n"); n != -1 {
		t.Errorf("number(max) = %d", n)
	}
}
