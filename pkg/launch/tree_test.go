package launch

import (
	"os"
	"os/exec"
	"slices"
	"testing"
)

// TestTree: grandchildren are found, and the process itself is not among them.
func TestTree(t *testing.T) {
	cmd := exec.Command("sh", "-c", "cat & echo; cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer in.Close()
	if _, err := out.Read(make([]byte, 1)); err != nil { // the shell has forked
		t.Fatal(err)
	}
	self := &tree{init: os.Getpid()}
	found := self.processes()
	if !slices.Contains(found, cmd.Process.Pid) || slices.Contains(found, os.Getpid()) {
		t.Errorf("found %v, the child is %d", found, cmd.Process.Pid)
	}
	below := &tree{init: cmd.Process.Pid}
	if len(below.processes()) == 0 {
		t.Error("the grandchild was not found")
	}
	quick := self.memory(1 << 62)
	exact := self.memory(0)
	// The kernel's counters behind the quick sum may be behind by some pages.
	if exact <= 0 || quick+1<<20 < exact {
		t.Errorf("memory %d, exactly %d", quick, exact)
	}
}

func TestStatTicksOdd(t *testing.T) {
	if got := statTicks(1<<30, 11, 14); got != 0 {
		t.Errorf("a process that is not there used %d", got)
	}
}
