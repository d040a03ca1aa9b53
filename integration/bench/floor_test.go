package main

import (
	"slices"
	"testing"
)

// TestFloorOps: the floor makes each directory once and before what is in it, the
// mounts of the table in their order, and what the plan puts into scratch not at all.
func TestFloorOps(t *testing.T) {
	const plan = `{"mounts": [
		{"op": "root", "target": "/"}, {"op": "link", "target": "/bin", "source": "usr/bin"},
		{"op": "dir", "target": "/home/sandbox"}, {"op": "dir", "target": "/work"}, {"op": "file", "target": "/etc/passwd"},
		{"op": "dir", "target": "/tmp"}, {"op": "dir", "target": "/proc"}, {"op": "dir", "target": "/tmp/proc"},
		{"op": "file", "target": "/tmp/proc/nothing"}, {"op": "bind", "target": "/usr", "source": "/usr"}]}`
	const table = "1 0 0:1 / / ro - tmpfs t rw\n2 1 0:2 / /usr ro - ext4 d rw\n3 1 0:3 / /proc rw - proc proc rw\n" +
		"4 3 0:3 /sys /proc/sys ro - proc proc rw\n5 3 0:1 /x /proc/version ro - tmpfs t rw\n6 3 0:1 /x /proc/self/fd ro - tmpfs t rw\n" +
		"7 1 0:4 / /tmp rw - tmpfs t rw\n8 1 0:4 /work /work rw - tmpfs t rw\n9 7 0:4 /tmp /tmp rw - tmpfs t rw\n"
	ops, err := floorOps([]byte(plan), table)
	want := []floorOp{
		{"LINK", "/bin", "usr/bin"}, {"DIR", "/home", ""}, {"DIR", "/home/sandbox", ""}, {"DIR", "/work", ""}, {"DIR", "/etc", ""},
		{"FILE", "/etc/passwd", ""}, {"DIR", "/tmp", ""}, {"DIR", "/proc", ""}, {"DIR", "/usr", ""}, {"BIND", "/usr", "/usr"}, {"FREEZE", "/", ""},
		{"PROC", "/proc", ""}, {"INNER", "/proc/sys", "/proc/sys"}, {"MASK", "/proc/version", ""}, {"MASKDIR", "/proc/self/fd", ""},
		{"TMPFS", "/tmp", ""}, {"DIR", "/tmp/work", ""}, {"INNER", "/work", "/tmp/work"}, {"DIR", "/tmp/tmp", ""}, {"INNER", "/tmp", "/tmp/tmp"},
	}
	if err != nil || !slices.Equal(ops, want) {
		t.Errorf("%v\n%v\nwant\n%v", err, ops, want)
	}
	const c = "enum kind { DIR, FILE_, LINK, BIND, FREEZE, PROC, INNER, MASK, MASKDIR, TMPFS };\n" +
		"static const struct op { enum kind kind; const char *to, *from; } ops[] = {\n" +
		"\t{FILE_, \"etc/passwd\", \"\"},\n\t{FREEZE, \".\", \"\"},\n\t{INNER, \"tmp\", \"tmp/tmp\"},\n\t{BIND, \"usr\", \"/usr\"},\n};\n"
	if got := floorTable([]floorOp{want[5], want[10], want[19], want[9]}); got != c {
		t.Errorf("%s\nwant\n%s", got, c)
	}
}
