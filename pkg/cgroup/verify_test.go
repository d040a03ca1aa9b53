package cgroup

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// TestVerify: a group is as it was asked for, and each file that somebody has
// changed is found.
func TestVerify(t *testing.T) {
	needRoot(t)
	limits := Limits{MemoryMax: 64<<20 + 100, PidsMax: 17, CPUQuotaUS: 30_000, CPUPeriodUS: 100_000}
	g, err := Create(Options{ID: NewID(), HostUID: os.Geteuid()}, limits)
	if err != nil {
		t.Skipf("SKIP(want the memory limit: %v)", err)
	}
	defer g.Close()
	if err := g.Verify(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		limit, v1, v2, value string
	}{
		{Pids, "pids.max", "pids.max", "18"},
		{CPU, "cpu.cfs_quota_us", "cpu.max", "40000"},
		{CPU, "cpu.cfs_period_us", "cpu.max", "110000"},
		// On v1 the two together are not below the one.
		{Memory, "memory.limit_in_bytes", "memory.max", "33554432"},
		{Memory, "", "memory.oom.group", "0"},
		{Memory, "", "memory.swap.max", "4096"},
	} {
		file, dir := c.v1, g.at(c.limit)
		if g.v2 {
			file = c.v2
		}
		if file == "" {
			continue
		}
		before, err := readAt(dir, file)
		if err != nil {
			continue // a kernel that counts no swap
		}
		if err := writeAt(dir, file, c.value); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if err := g.Verify(); err == nil || !strings.HasPrefix(err.Error(), c.limit+" limit: "+file+" is ") {
			t.Errorf("%s is %s: %v", file, c.value, err)
		}
		if err := writeAt(dir, file, strings.TrimSpace(before)); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if err := g.Verify(); err != nil {
			t.Errorf("%s as before: %v", file, err)
		}
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if err := g.Verify(); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestHolds(t *testing.T) {
	v1 := &Group{opt: Options{ID: "1-2-abc"}, v1: []dir{{names: []string{"memory"}, fd: -1}, {names: []string{"cpu", "cpuacct"}, fd: -1}}}
	v2 := &Group{opt: Options{ID: "1-2-abc"}, v2: true, box: dir{fd: 1}}
	for _, c := range []struct {
		g    *Group
		text string
		ok   bool
	}{
		{v1, "2:memory:/own/sandglass-1-2-abc\n3:cpu,cpuacct:/sandglass-1-2-abc\n1:pids:/\n0::/\n", true},
		{v1, "2:memory:/own\n3:cpu,cpuacct:/sandglass-1-2-abc\n", false},
		{v1, "2:memory:/sandglass-1-2-abc\n3:cpu,cpuacct:/sandglass-1-2-abcd\n", false},
		{v1, "2:memory:/sandglass-1-2-abc\n", false},
		{v2, "0::/sandglass/sandglass-1-2-abc/box\n", true},
		{v2, "0::/../sandglass-1-2-abc/box\n", true},
		{v2, "0::/sandglass/sandglass-1-2-abc/init\n", false},
		{v2, "0::/\n", false},
		{v2, "", false},
		{&Group{v2: true, box: noDir}, "0::/\n", true}, // no group at all, allowed by name
	} {
		if err := c.g.Holds(c.text); (err == nil) != c.ok || err != nil && !errors.Is(err, errElsewhere) {
			t.Errorf("%q: %v", c.text, err)
		}
	}
}

// A kill that comes while the read-back looks changes pids.max and the CPU
// limit: that is no run with weaker limits.
func TestVerifyOfTheDying(t *testing.T) {
	needRoot(t)
	g, err := Create(Options{ID: NewID(), HostUID: os.Geteuid()}, Limits{PidsMax: 17, CPUQuotaUS: 30_000, CPUPeriodUS: 100_000})
	if err != nil {
		t.Skipf("SKIP(want the process limit: %v)", err)
	}
	defer g.Close()
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := g.Verify(); err != nil {
		t.Error(err)
	}
}
