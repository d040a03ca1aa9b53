package cgroup

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// No kernel at hand is so old, so a directory of plain files stands for a group
// without what came later.
func oldGroup(t *testing.T, files map[string]string) (dir string, fd int) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return dir, fd
}

// Before 5.19 there is no memory.peak: the highest value that was seen stands
// for it, and says so. Before 6.1 there is no pids.peak: it is unknown.
func TestStatsOfAnOldKernel(t *testing.T) {
	dir, fd := oldGroup(t, map[string]string{"memory.current": "31457280\n", "pids.current": "3\n"})
	g := &Group{v2: true, box: asDir(dir, fd), usage: -1}
	look := func() Stats {
		s, err := g.Stats()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	look()
	if err := os.WriteFile(filepath.Join(dir, "memory.current"), []byte("4096\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s := look(); s.MemoryPeak != 30<<20 || !s.MemoryPeakSampled || s.MemoryCurrent != 4096 || s.PidsPeak != -1 || s.PidsCurrent != 3 {
		t.Errorf("without memory.peak: %+v", s)
	}
	if err := os.WriteFile(filepath.Join(dir, "memory.peak"), []byte("41943040\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s := look(); s.MemoryPeak != 40<<20 || s.MemoryPeakSampled {
		t.Errorf("with memory.peak: %+v", s)
	}
}

func asDir(path string, fd int) dir {
	d := noDir
	d.path, d.fd = path, fd
	return d
}

// Before 5.14 there is no cgroup.kill: the processes are killed one by one, and
// no more can be made meanwhile.
func TestKillOnAnOldKernel(t *testing.T) {
	var children []*exec.Cmd
	var procs string
	for range 3 {
		c := exec.Command("sleep", "600")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		children = append(children, c)
		procs += strconv.Itoa(c.Process.Pid) + "\n"
	}
	dir, fd := oldGroup(t, map[string]string{"cgroup.procs": procs, "pids.max": "64\n"})
	if err := kill(fd); err != nil {
		t.Error(err)
	}
	for _, c := range children {
		if sig := killedBy(c.Wait()); sig != unix.SIGKILL {
			t.Errorf("ended by %v", sig)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "pids.max")); err != nil || string(text)[:1] != "0" {
		t.Errorf("pids.max %q, %v", text, err)
	}
}
