package tty

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"

	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// person is somebody at a terminal, with a run in it.
type person struct {
	*testkit.Terminal
	t      *testing.T
	run    *testkit.Process
	before unix.Termios
}

// sit starts sandglass run with these arguments on a new terminal.
func sit(t *testing.T, who testkit.Who, args ...string) *person {
	t.Helper()
	x := testkit.NewTerminal(t)
	p := &person{Terminal: x, t: t, before: x.Settings()}
	p.run = x.Start(testkit.Opts{Who: who}, args...)
	return p
}

// ends waits for the end and checks how it came, and that the terminal is as it
// was before.
func (p *person) ends(outcome result.Outcome, exit int) testkit.Output {
	p.t.Helper()
	o := p.run.Wait()
	if o.Exit != exit || o.Result.Outcome != outcome {
		p.t.Errorf("exit %d, %q, want %d, %q\nshown: %q", o.Exit, o.Result.Outcome, exit, outcome, p.Shown())
	}
	p.restored()
	return o
}

func (p *person) restored() {
	p.t.Helper()
	if now := p.Settings(); now != p.before {
		p.t.Errorf("the terminal is not as it was:\n%+v, before\n%+v", now, p.before)
	}
}

// cat waits until cat is what runs: a shell that is about to start it may lose
// the signal of a key.
func (p *person) cat() {
	p.t.Helper()
	p.Type("there?\r")
	p.Expect("there?\r\nthere?\r\n")
}

// foreground is the name of the program that the terminal of a run's sandbox is
// given to, "" for none that can be seen.
func foreground(supervisor int) string {
	list := []int{supervisor}
	for len(list) > 0 {
		pid := strconv.Itoa(list[0])
		list = list[1:]
		// state, parent, group, session, terminal (136:0), group in front
		if f := stat(pid); len(f) > 5 && f[4] == "34816" && pid != strconv.Itoa(supervisor) {
			comm, _ := os.ReadFile("/proc/" + f[5] + "/comm")
			return strings.TrimSpace(string(comm))
		}
		tasks, _ := os.ReadDir("/proc/" + pid + "/task")
		for _, task := range tasks {
			text, _ := os.ReadFile("/proc/" + pid + "/task/" + task.Name() + "/children")
			for _, child := range strings.Fields(string(text)) {
				n, _ := strconv.Atoi(child)
				list = append(list, n)
			}
		}
	}
	return ""
}

// stat are the fields of /proc/PID/stat from the state on.
func stat(pid string) []string {
	text, _ := os.ReadFile("/proc/" + pid + "/stat")
	return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
}
