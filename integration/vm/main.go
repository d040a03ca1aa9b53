// Command vm runs the project's compiled tests on kernels with cgroup v2: each
// machine of the plan is booted under QEMU's software emulation by boot.sh,
// runs its test binaries unchanged, and powers off. The end is one table of
// which tests ran where; a cell of the plan in which no test passed is a
// failure, whatever the reason.
//
//	go run ./integration/vm [-host FILE] [-only NAME] [-suite PACKAGE] [-run REGEXP] [-whole] [-again] [-update]
//
// It needs root: the machines see this host's / through a read-only mount.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

// work holds kernels, test binaries and results; git does not see it.
const work = "build/vm"

func main() {
	host := flag.String("host", "", "`FILE` with go test -json of this host, for the table")
	only := flag.String("only", "", "`NAMES` of machines, separated by commas; no cell of others is missed")
	suites := flag.String("suite", "", "`PACKAGES`, separated by commas; no cell of others is missed")
	run := flag.String("run", "", "`REGEXP` for the tests' names, in place of the plan's")
	whole := flag.Bool("whole", false, "no suite is halved")
	twice := flag.Bool("again", false, "what fails runs once more, and is named")
	update := flag.Bool("update", false, "write the golden files anew, and run nothing else")
	flag.Parse()
	if *update {
		*suites, *run = "integration/vm", "^Test(Result|Doctor)Table$"
	}
	machines := pick(plan(), *only, *suites, *run)
	for i := range machines {
		machines[i].update = *update
	}
	if len(machines) == 0 {
		fail("nothing of the plan is named so")
	}
	if os.Geteuid() != 0 {
		fail("the test machines need root (hint: sudo make test-vm)")
	}
	begin := time.Now()
	err := build(machines)
	if err == nil && !*whole {
		err = halves(machines)
	}
	if err != nil {
		fail(err.Error())
	}
	built := time.Since(begin)
	running.stopOnSignal()
	columns := runAll(machines)
	if *twice {
		if err := again(machines, columns); err != nil {
			fail(err.Error())
		}
	}
	if *host != "" {
		c, err := readHost(*host)
		if err != nil {
			fail(err.Error())
		}
		columns = append([]*column{c}, columns...)
	}
	fmt.Printf("\nbuilding the tests and kernels: %.0f s\n", built.Seconds())
	if !report(os.Stdout, columns) {
		os.Exit(1)
	}
}

func fail(text string) {
	fmt.Fprintln(os.Stderr, "vm:", text)
	os.Exit(2)
}

// runAll boots as many machines at once as there are CPUs: each emulates its
// two on one.
func runAll(machines []machine) []*column {
	columns := make([]*column, len(machines))
	free := make(chan struct{}, max(runtime.NumCPU(), 1))
	var wait sync.WaitGroup
	var printing sync.Mutex
	for i, m := range machines {
		free <- struct{}{} // in the order of the plan
		wait.Go(func() {
			defer func() { <-free }()
			fmt.Printf("vm: %s: booting %s\n", m.name, m.kernel)
			columns[i] = m.run()
			printing.Lock()
			defer printing.Unlock()
			summarise(m, columns[i])
		})
	}
	wait.Wait()
	return columns
}

// summarise has hack/testsum judge the results: failures with their output, and
// skips of what this machine has for certain.
func summarise(m machine, c *column) {
	fmt.Printf("=== %s (%.0f s)\n", m.name, c.took.Seconds())
	in, err := os.Open(m.results())
	if err != nil {
		c.bad = err.Error()
		return
	}
	defer in.Close()
	cmd := exec.Command(filepath.Join(work, "testsum"), "-skips", "hack/skips.txt")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "SANDGLASS_MUST_RUN="+strings.Join(m.must, ","))
	if err := cmd.Run(); err != nil {
		c.bad = "testsum: " + err.Error()
	}
}
