package cgroup

import "testing"

// The CPU limit holds until the kill and not for the dying, whose end would take
// as long as their quota lets it.
func TestKillLiftsTheCPULimit(t *testing.T) {
	needGroups(t)
	needRoot(t)
	g := create(t, Limits{CPUQuotaUS: 1000})
	file, before, after := "cpu.cfs_quota_us", "1000\n", "-1\n"
	if g.v2 {
		file, before, after = "cpu.max", "1000 100000\n", "max 100000\n"
	}
	if got := textAt(g.at(CPU), file); got != before {
		t.Fatalf("%s is %q, want %q", file, got, before)
	}
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	if got := textAt(g.at(CPU), file); got != after {
		t.Errorf("%s is %q after the kill, want %q", file, got, after)
	}
}
