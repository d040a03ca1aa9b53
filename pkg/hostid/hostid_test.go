package hostid

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
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
	if a.N == b.N || a.N < First || b.N >= First+half {
		t.Errorf("ids %d and %d", a.N, b.N)
	}
	n := a.N
	a.Release()
	c, err := Take(n - First)
	if err != nil {
		t.Fatal(err)
	}
	if c.N != n {
		t.Errorf("the released id %d was not free: got %d", n, c.N)
	}
	c.Release()
	b.Release()
}

// TestWrap: the search goes on at the first id after the last.
func TestWrap(t *testing.T) {
	requireRoot(t)
	a, err := Take(half - 1)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Release()
	b, err := Take(half - 1)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Release()
	if a.N == First+half-1 && b.N >= First+half-1 {
		t.Errorf("after %d came %d", a.N, b.N)
	}
	if b.N < First || b.N >= First+half {
		t.Errorf("id %d is outside of the range", b.N)
	}
}

// TestOwnFile: where the kernel's file cannot be opened the ids come from the
// other half of the range.
func TestOwnFile(t *testing.T) {
	requireRoot(t)
	fd, err := openOwn()
	if err != nil {
		t.Fatal(err)
	}
	l := locks{fd, First + half}
	defer unix.Close(fd)
	if err := l.set(First+half, unix.F_WRLCK); err != nil {
		t.Error(err)
	}
	id, err := Take(0)
	if err != nil {
		t.Fatal(err)
	}
	defer id.Release()
	if id.N >= First+half {
		t.Errorf("id %d is of the other half", id.N)
	}
	os.Remove(Dir + "/" + ownFile)
	os.Remove(Dir)
}

// TestKilled: the id of a living holder in another process is never given, a
// killed one's is free at once.
func TestKilled(t *testing.T) {
	requireRoot(t)
	if n := os.Getenv("HOSTID_HOLDER"); n != "" {
		seed, _ := strconv.Atoi(n)
		id, err := Take(seed)
		if err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString(strconv.Itoa(id.N) + "\n")
		os.Stdin.Read(make([]byte, 1)) // not select{}, which Go ends as a deadlock
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestKilled$")
	cmd.Env = append(os.Environ(), "HOSTID_HOLDER=30000")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	held, err := strconv.Atoi(line[:len(line)-1])
	if err != nil {
		t.Fatal(err)
	}
	other, err := Take(held - First)
	if err != nil {
		t.Fatal(err)
	}
	if other.N == held {
		t.Errorf("the living holder's id %d was given twice", held)
	}
	other.Release()
	cmd.Process.Kill()
	cmd.Wait()
	again, err := Take(held - First)
	if err != nil {
		t.Fatal(err)
	}
	if again.N != held {
		t.Errorf("the killed holder's id %d is not free: got %d", held, again.N)
	}
	again.Release()
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
		if got, err := maps(path); got != want || err != nil {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if _, err := maps(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a map that cannot be read is no answer")
	}
}

// A lock for reading is in the way of ours: whoever may read the file could hold
// all ids.
func TestNobodyElseMayOpenTheLocks(t *testing.T) {
	for _, path := range []string{File, Dir} {
		st, err := os.Stat(path)
		if os.IsNotExist(err) && path == Dir {
			continue // made where it is needed
		}
		if err != nil {
			t.Fatal(err)
		}
		if st.Mode().Perm()&0o077 != 0 || st.Sys().(*syscall.Stat_t).Uid != 0 {
			t.Errorf("%s has mode %v, want root's alone", path, st.Mode())
		}
	}
}
