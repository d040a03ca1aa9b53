package twohosts

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"sandglass/internal/testkit"
)

//go:embed testdata/machine.sh
var machineScript string

// envMachines turns the comparison of two virtual machines on: make test-vm does.
const envMachines = "SANDGLASS_TWO_MACHINES"

// kernel is the one of the test machines that both are booted with.
const kernel = "build/vm/linux-image-6.12-cloud-amd64"

// machine is one of two virtual machines.
type machine struct {
	name, cpus, memory string
	seen               map[string]dump // by who looked
	err                error
}

// boot boots the machine and reads what its two callers' programs saw.
func (m *machine) boot(t *testing.T, dir, root string) {
	out, err := m.run(dir, root)
	if err != nil {
		m.err = fmt.Errorf("%s: %w\n%.2000s", m.name, err, out)
		return
	}
	m.seen = map[string]dump{}
	for part := range strings.SplitSeq(out, "@@ ") {
		who, text, _ := strings.Cut(part, "\n")
		if who == "root" || who == "user" {
			m.seen[who] = parse(t, text)
		}
	}
	if len(m.seen) != 2 {
		m.err = fmt.Errorf("%s: seen by %d: %.2000s", m.name, len(m.seen), out)
	}
}

func (m *machine) run(dir, root string) (string, error) {
	script := filepath.Join(dir, "machine.sh")
	if err := os.WriteFile(script, []byte("NAME="+m.name+"\n"+machineScript), 0o644); err != nil {
		return "", err
	}
	cmd := exec.Command(filepath.Join(root, "integration/vm/boot.sh"), filepath.Join(root, kernel), script)
	cmd.Env = append(os.Environ(), "LIMIT=600", "CPUS="+m.cpus, "MEMORY="+m.memory, "APPEND=word="+m.name+"-cmdline")
	out, err := cmd.Output()
	return string(out), err
}

// copied puts a program beside the machine's script.
func copied(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, text, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Two machines that differ in all that can be chosen: their names, users and
// volumes, memory and CPUs, command line and time of start. What differs inside
// is in docs/LEAKS.md, and no name of theirs is.
func TestTwoMachines(t *testing.T) {
	if os.Getenv(envMachines) == "" {
		testkit.Skip(t, "two virtual machines", envMachines+" unset: make test-vm sets it")
	}
	testkit.Requires(t, "root", "gcc", "qemu-system-x86_64")
	root := testkit.Root(t)
	machines := []*machine{{name: "antares", cpus: "2", memory: "2G"}, {name: "cassiopeia", cpus: "1", memory: "1G"}}
	var wait sync.WaitGroup
	for _, m := range machines {
		dir := testkit.Dir(t)
		copied(t, testkit.Binary(t), filepath.Join(dir, "sandglass"))
		copied(t, testkit.C(t, dumpSource), filepath.Join(dir, "dump"))
		wait.Go(func() { m.boot(t, dir, root) })
	}
	wait.Wait()
	for _, m := range machines {
		if m.err != nil {
			t.Fatal(m.err)
		}
	}
	list := leaks(t)
	for _, who := range []string{"root", "user"} {
		t.Run(who, func(t *testing.T) {
			report(t, list, machines[0].seen[who], machines[1].seen[who])
			for _, m := range machines {
				m.noNames(t, m.seen[who])
			}
		})
	}
}

// noNames: none of the machine's names shows.
func (m *machine) noNames(t *testing.T, d dump) {
	t.Helper()
	var names []string
	for name, value := range d {
		if strings.Contains(name+value, m.name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		t.Errorf("%s tells of %s: %.300q", name, m.name, d[name])
	}
}
