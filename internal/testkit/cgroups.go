package testkit

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
)

// Cgroups lists the directories of sandglass's own below /sys/fs/cgroup.
func Cgroups() []string {
	var list []string
	filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // a group that went away while we walked
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), "sandglass") {
			list = append(list, path)
		}
		return nil
	})
	sort.Strings(list)
	return list
}

// CgroupsOf lists those of the live supervisor with this PID.
func CgroupsOf(pid int) []string {
	return slices.DeleteFunc(Cgroups(), func(path string) bool { return madeBy(path) != pid })
}

// CgroupsLeft lists the groups that supervisors with these PIDs have left, all
// of which have ended. A live one can have the same PID by now, or have it in
// another PID namespace, as the runs inside Quiet do: its groups go when it
// ends, so a group that is left is one that stays.
func CgroupsLeft(t testing.TB, pids ...int) []string {
	t.Helper()
	var left []string
	for _, path := range Cgroups() {
		if slices.Contains(pids, madeBy(path)) && !goes(path) {
			left = append(left, path)
		}
	}
	return left
}

// LeftBy takes another snapshot and lists what is in it and was not in s. Of control
// groups, which others make too, those count that supervisors with these PIDs left.
func (s Snapshot) LeftBy(t testing.TB, supervisors []int, dirs ...string) []string {
	t.Helper()
	now := TakeSnapshot(t, dirs...)
	now.Cgroups = nil
	// The accounts of keys are the whole host's: one of a sandbox of others' goes with it.
	left := slices.DeleteFunc(s.Left(now), func(x string) bool {
		id, key := strings.CutPrefix(x, "keys: ")
		return key && inTime(func() bool { return !slices.Contains(keys(), id) })
	})
	for _, path := range CgroupsLeft(t, supervisors...) {
		left = append(left, "cgroup: "+path)
	}
	return left
}

// goes waits for a file to go away.
func goes(path string) bool {
	return inTime(func() bool {
		_, err := os.Lstat(path)
		return err != nil
	})
}

// madeBy is the PID in a group's name, -1 for a group of no run.
func madeBy(path string) int {
	of, ok := strings.CutPrefix(filepath.Base(path), "sandglass-")
	first, _, more := strings.Cut(of, "-")
	pid, err := strconv.Atoi(first)
	if !ok || !more || err != nil {
		return -1
	}
	return pid
}
