package testkit

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sandglass/pkg/hostid"
)

// Snapshot is what a run could leave on the host. On a host where others work
// too it is only exact inside Quiet.
type Snapshot struct {
	Processes []string // PID and command line
	Cgroups   []string // every directory that sandglass makes
	Mounts    []string // lines of mountinfo
	Files     []string // of the directories where things are left
	IPC       []string // System V objects
	Net       []string // network devices
	Keys      []string // host ids of sandboxes that have keys or keyrings
}

// TakeSnapshot looks at the host. dirs are looked at besides the usual places.
func TakeSnapshot(t testing.TB, dirs ...string) Snapshot {
	t.Helper()
	s, err := Look(dirs...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Look is TakeSnapshot for what is no test.
func Look(dirs ...string) (Snapshot, error) {
	s := Snapshot{Processes: Processes(""), Cgroups: Cgroups()}
	var errs []error
	lines := func(path string) []string {
		text, err := os.ReadFile(path)
		errs = append(errs, err)
		return strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	}
	s.Mounts = lines("/proc/self/mountinfo")
	for _, name := range []string{"msg", "sem", "shm"} {
		s.IPC = append(s.IPC, ipcObjects(name, lines("/proc/sysvipc/"+name))...)
	}
	for _, line := range lines("/proc/self/net/dev") {
		if name, _, ok := strings.Cut(line, ":"); ok {
			s.Net = append(s.Net, strings.TrimSpace(name))
		}
	}
	for _, d := range append([]string{"/tmp", "/var/tmp", "/run", "/dev/shm", "/dev/mqueue"}, dirs...) {
		s.Files = append(s.Files, files(d)...)
	}
	s.Keys = keys()
	return s, errors.Join(errs...)
}

// keys lists the ids of hostid's range in /proc/key-users: the kernel keeps an
// account for whoever has a key, thread and session keyrings included. Other
// users' keys come and go for other reasons. A kernel may have no keys.
func keys() (list []string) {
	text, _ := os.ReadFile("/proc/key-users")
	for line := range strings.Lines(string(text)) {
		id, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		if n, err := strconv.Atoi(id); err == nil && n >= hostid.First && n < hostid.First+hostid.Count {
			list = append(list, id)
		}
	}
	return list
}

// Left lists what is in now and was not in s.
func (s Snapshot) Left(now Snapshot) []string {
	var left []string
	for _, c := range [...]struct {
		kind        string
		before, now []string
	}{
		{"process", s.Processes, now.Processes}, {"cgroup", s.Cgroups, now.Cgroups}, {"mount", s.Mounts, now.Mounts},
		{"file", s.Files, now.Files}, {"ipc", s.IPC, now.IPC}, {"net", s.Net, now.Net}, {"keys", s.Keys, now.Keys},
	} {
		for _, x := range c.now {
			if !slices.Contains(c.before, x) {
				left = append(left, c.kind+": "+x)
			}
		}
	}
	return left
}

// Processes lists the processes with marker in their command line, this one
// and the dead left out, as "PID command line".
func Processes(marker string) []string {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var list []string
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		cmdline, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if err != nil || Dead(pid) {
			continue
		}
		text := strings.TrimSpace(strings.ReplaceAll(string(cmdline), "\x00", " "))
		if strings.Contains(text, marker) {
			list = append(list, e.Name()+" "+text)
		}
	}
	return list
}

// Children are the processes that a process of the host has. A thread of it that
// ends meanwhile has none any more.
func Children(t testing.TB, pid int) (list []int) {
	t.Helper()
	dir := "/proc/" + strconv.Itoa(pid) + "/task/"
	tasks, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		text, _ := os.ReadFile(dir + task.Name() + "/children")
		for f := range strings.FieldsSeq(string(text)) {
			n, err := strconv.Atoi(f)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, n)
		}
	}
	return list
}

// Dead says whether a process has ended, and at most is not waited for yet.
func Dead(pid int) bool {
	s := state("/proc/" + strconv.Itoa(pid) + "/stat")
	return s == 0 || s == 'Z' || s == 'X'
}

// state is the letter in a stat of /proc, 0 where there is no such process or thread.
func state(path string) byte {
	stat, _ := os.ReadFile(path)
	_, after, _ := bytes.Cut(stat[max(bytes.LastIndexByte(stat, ')'), 0):], []byte(") "))
	if len(after) == 0 {
		return 0
	}
	return after[0]
}

// ipcObjects are the key and id of each object, without its figures.
func ipcObjects(name string, lines []string) []string {
	var list []string
	for i, line := range lines {
		if f := strings.Fields(line); i > 0 && len(f) > 1 {
			list = append(list, name+" "+f[0]+" "+f[1])
		}
	}
	return list
}

// files lists a tree without following links; one that is not there is empty.
func files(dir string) []string {
	var list []string
	filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			list = append(list, path)
		}
		return nil
	})
	return list
}
