package hostid

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

func requireRoot(t *testing.T) {
	t.Helper()
	if !Available() {
		t.Skip("SKIP(want root with CAP_SYS_ADMIN, CAP_SETUID, CAP_SETGID, have none)")
	}
}

// TestUnique: an id that is held is not given twice, and is free again after.
func TestUnique(t *testing.T) {
	requireRoot(t)
	const seed = 4711
	a, err := Take(seed)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Take(seed)
	if err != nil {
		t.Fatal(err)
	}
	if a.N == b.N || a.N < First || b.N >= First+Count {
		t.Errorf("ids %d and %d", a.N, b.N)
	}
	n := a.N
	a.Release()
	if _, err := os.Stat(filepath.Join(Dir, strconv.Itoa(n))); !os.IsNotExist(err) {
		t.Errorf("the file of a released id: %v", err)
	}
	b.Release()
}

// TestSweep: a killed holder's id is swept, a living one's never.
func TestSweep(t *testing.T) {
	requireRoot(t)
	if n := os.Getenv("HOSTID_HOLDER"); n != "" {
		seed, _ := strconv.Atoi(n)
		id, err := Take(seed)
		if err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString(strconv.Itoa(id.N) + "\n")
		select {}
	}
	living, err := Take(20000)
	if err != nil {
		t.Fatal(err)
	}
	defer living.Release()
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestSweep$")
	cmd.Env = append(os.Environ(), "HOSTID_HOLDER=30000")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(Dir, line[:len(line)-1])
	Sweep()
	if _, err := os.Stat(file); err != nil {
		t.Errorf("a living holder's id was swept: %v", err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	Sweep()
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("a killed holder's id is still there: %v", err)
	}
	if _, err := os.Stat(filepath.Join(Dir, strconv.Itoa(living.N))); err != nil {
		t.Errorf("a living holder's id was swept: %v", err)
	}
}

func TestMaps(t *testing.T) {
	for text, want := range map[string]bool{
		"         0          0 4294967295\n":         true,
		"         0     100000      65536\n":         false,
		"0 1000 1\n1 100000 65536\n":                 false,
		"0 1000 1\n1879048192 5 65536\n":             true,
		"0 1000 1\n1879048192 5 65535\n":             false,
		"garbage\n":                                  false,
		"":                                           false,
		"99999999999999999999 0 99999999999999999\n": false,
	} {
		path := filepath.Join(t.TempDir(), "map")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := maps(path); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
