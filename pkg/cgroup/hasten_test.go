package cgroup

import "testing"

// The CPU limit and share hold until the kill and not for the dying, whose end
// would take as long as these let it.
func TestKillLiftsTheCPULimit(t *testing.T) {
	needGroups(t)
	needRoot(t)
	g := create(t, Limits{CPUQuotaUS: 1000})
	type value struct {
		dir                 int
		file, before, after string
	}
	values := []value{
		{g.at(CPU), "cpu.cfs_quota_us", "1000\n", "-1\n"},
		{g.at(CPU), "cpu.shares", "1024\n", "10240\n"},
	}
	if g.v2 {
		values = []value{
			{g.box.fd, "cpu.max", "1000 100000\n", "max 100000\n"},
			{g.run.fd, "cpu.weight", "100\n", "1000\n"},
		}
	}
	for _, v := range values {
		if got := textAt(v.dir, v.file); got != v.before {
			t.Errorf("%s is %q, want %q", v.file, got, v.before)
		}
	}
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		if got := textAt(v.dir, v.file); got != v.after {
			t.Errorf("%s is %q after the kill, want %q", v.file, got, v.after)
		}
	}
}
