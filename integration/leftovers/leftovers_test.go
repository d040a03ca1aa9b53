package leftovers

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

// trace is the tracer's main, nil where there is none; see tracer_amd64_test.go.
// envTrace makes the test binary a tracer. Its value is what to do.
var trace func(orders string)

const envTrace = "SANDGLASS_TEST_TRACE"

func TestMain(m *testing.M) {
	if text := os.Getenv(envTrace); text != "" && trace != nil {
		trace(text)
	}
	if stage := os.Getenv(envRoom); stage != "" {
		makeNamespaces(stage)
	}
	testkit.Main(m)
}

// busy is a program that leaves as much behind as it can: daemons in sessions
// of their own, stopped and deaf children, files, IPC objects, sockets.
const busy = `(setsid sleep 1000 >/dev/null 2>&1 &) ; (trap '' TERM INT HUP QUIT; setsid sh -c 'sleep 1001; :' &) >/dev/null 2>&1
sleep 1002 & kill -STOP $!; ipcmk -M 4096 -Q -S 1 >/dev/null 2>&1; mkdir -p /tmp/d; echo x >/tmp/d/f; echo x >/dev/shm/f; mkfifo /tmp/p; `

// look takes a snapshot without the cgroups, which others make too; those of
// our own supervisors are looked for by name.
func look(t *testing.T, dirs ...string) testkit.Snapshot {
	s := testkit.TakeSnapshot(t, dirs...)
	s.Cgroups = nil
	return s
}

// nothing fails the test for everything that was not there before.
func nothing(t *testing.T, before testkit.Snapshot, supervisor int, dirs ...string) {
	t.Helper()
	for _, x := range before.LeftBy(t, []int{supervisor}, dirs...) {
		t.Errorf("left behind: %s", x)
	}
}

// both runs a test as root and as an ordinary user inside Quiet.
func both(t *testing.T, test func(t *testing.T, who testkit.Who)) {
	if testkit.Quiet(t) {
		testkit.Each(t, test)
	}
}

func TestNothingIsLeftAfterAnyEnd(t *testing.T) {
	both(t, func(t *testing.T, who testkit.Who) {
		work := testkit.Dir(t)
		before := look(t, work)
		for _, c := range []struct {
			name    string
			args    []string
			exit    int
			outcome result.Outcome
		}{
			{"normal", []string{"--", "sh", "-c", busy + "exit 0"}, 0, result.Exited},
			{"exit code", []string{"--", "sh", "-c", busy + "exit 3"}, 3, result.Exited},
			{"signal", []string{"--", "sh", "-c", busy + "kill -9 $$"}, 137, result.Signaled},
			{"timeout", []string{"--timeout", "1s", "--", "sh", "-c", busy + "sleep 1000"}, 124, result.Timeout},
			{"stopped at the limit", []string{"--timeout", "1s", "--", "sh", "-c", busy + "kill -STOP $$"}, 124, result.Timeout},
			{"memory", []string{"-m", "32m", "--", "sh", "-c", busy + "head -c 100000000 /dev/zero | tail -c 99999999"}, 137, result.Memory},
			{"output", []string{"--on-output-limit", "kill", "--output-limit", "10k", "--", "sh", "-c", busy + "yes"}, 153, result.Output},
			{"not found", []string{"--", "/no/such/program"}, 127, result.Refused},
			{"not executable", []string{"--", "/etc/passwd"}, 126, result.Refused},
			{"no such directory", []string{"-w", "/no/such/dir", "--", "true"}, 125, ""},
			{"no such source", []string{"-v", "/no/such/source:/data", "--", "true"}, 125, result.Refused},
			{"dangerous source", []string{"-v", "/etc:/data", "--", "true"}, 125, ""},
			{"bad flag", []string{"--no-such-flag", "--", "true"}, 125, ""},
			{"privileged", []string{"--privileged", "--", "true"}, 125, ""},
			{"no program", nil, 125, ""},
			{"refused for the host's lack", []string{"--cgroup-parent", "/no/such/group", "--", "true"}, 125, ""},
		} {
			o := testkit.Run(t, testkit.Opts{Who: who, Dir: work}, c.args...)
			if c.name == "refused for the host's lack" && !who.Limited() && o.Exit == 0 {
				continue // with --allow-degraded it is weaker instead
			}
			if o.Exit != c.exit || c.outcome != "" && o.Result.Outcome != c.outcome {
				t.Errorf("%s: exit %d, outcome %q, want %d, %q\n%s", c.name, o.Exit, o.Result.Outcome, c.exit, c.outcome, o.Stderr)
			}
			nothing(t, before, o.PID, work)
			if t.Failed() {
				t.Fatalf("after: %s", c.name)
			}
		}
	})
}

func TestNothingIsLeftAfterASignal(t *testing.T) {
	both(t, func(t *testing.T, who testkit.Who) {
		before := look(t)
		for sig, exit := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129, syscall.SIGQUIT: 131} {
			p := testkit.Start(t, testkit.Opts{Who: who}, "--timeout", "300s", "--", "sh", "-c", busy+"echo ready; sleep 1000")
			p.WaitLine("ready")
			p.Signal(sig)
			o := p.Wait()
			if o.Exit != exit || o.Result.Outcome != result.Canceled {
				t.Errorf("%v: exit %d, outcome %q, want %d, canceled", sig, o.Exit, o.Result.Outcome, exit)
			}
			nothing(t, before, o.PID)
		}
	})
}

// The reader of our output goes away, as in "sandglass run … | head".
func TestNothingIsLeftWhenTheReaderGoes(t *testing.T) {
	both(t, func(t *testing.T, who testkit.Who) {
		before := look(t)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		p := testkit.Start(t, testkit.Opts{Who: who, Stdout: w}, "--", "sh", "-c", busy+"yes")
		w.Close()
		if _, err := io.ReadFull(r, make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		r.Close()
		// The program meets the broken pipe, not the time limit.
		if o := p.Wait(); o.Result.Outcome == result.Timeout || !o.HasResult {
			t.Errorf("exit %d, outcome %q", o.Exit, o.Result.Outcome)
		}
		nothing(t, before, p.PID())
	})
}

// Nobody cleans up when the supervisor is killed: the kernel must end every
// process, and the next run sweeps the rest.
func TestSupervisorKilled(t *testing.T) {
	both(t, func(t *testing.T, who testkit.Who) {
		must := func(o testkit.Output) testkit.Output {
			if o.Exit != 0 {
				t.Fatalf("exit %d: %s", o.Exit, o.Stderr)
			}
			return o
		}
		work := testkit.Dir(t)
		before := look(t, work)
		var killed []int
		for range 3 {
			p := testkit.Start(t, testkit.Opts{Who: who, Dir: work}, "--timeout", "300s", "--", "sh", "-c", busy+"echo ready; sleep 1000")
			p.WaitLine("ready")
			p.Kill()
			p.Wait()
			killed = append(killed, p.PID())
			gone(t, before, work)
		}
		must(testkit.Run(t, testkit.Opts{Who: who}, "--", "true"))
		for _, pid := range killed {
			nothing(t, before, pid, work)
		}
	})
}

// The same at any moment of the start: the number of looks before the kill
// grows until the program runs.
func TestSupervisorKilledWhileStarting(t *testing.T) {
	both(t, func(t *testing.T, who testkit.Who) {
		work := testkit.Dir(t)
		before := look(t, work)
		var killed []int
		for looks := range 60 {
			p := testkit.Start(t, testkit.Opts{Who: who, Dir: work}, "--", "sh", "-c", busy+"sleep 1000")
			for range looks * 2 {
				os.ReadFile(filepath.Join("/proc", "self", "stat")) // a little time passes, and no more than that
			}
			p.Kill()
			p.Wait()
			killed = append(killed, p.PID())
			gone(t, before, work)
		}
		if o := testkit.Run(t, testkit.Opts{Who: who}, "--", "true"); o.Exit != 0 {
			t.Fatalf("exit %d: %s", o.Exit, o.Stderr)
		}
		for _, pid := range killed {
			nothing(t, before, pid, work)
		}
	})
}

// gone waits until every process of the sandbox has ended. It has no event: the
// parent that could be told is the one that was killed.
func gone(t *testing.T, before testkit.Snapshot, work string) {
	t.Helper()
	testkit.Eventually(t, "every process of the killed supervisor's sandbox ends", func() bool {
		for _, x := range before.Left(look(t, work)) {
			if strings.HasPrefix(x, "process: ") {
				return false
			}
		}
		return true
	})
}

// The caller's own directories and images are as they were: no mount point, no
// marker. What an image lacks is made in the sandbox's own root, or refused.
func TestNothingIsMadeInMountedDirectories(t *testing.T) {
	both(t, func(t *testing.T, who testkit.Who) {
		work := testkit.Dir(t)
		for _, d := range []string{"rw", "ro", "img", "img/opt2", "img/usr"} {
			if err := os.Mkdir(work+"/"+d, 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(work+"/"+d, 0o777); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(work+"/img/opt2/file", []byte("the image's\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(work+"/ro/file", []byte("ours\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Link(testkit.Binary(t), work+"/img/prog"); err != nil {
			text, err := os.ReadFile(testkit.Binary(t))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(work+"/img/prog", text, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		before := look(t, work)
		run := func(exit int, args ...string) {
			t.Helper()
			o := testkit.Run(t, testkit.Opts{Who: who, Dir: work + "/rw"}, args...)
			if o.Exit != exit {
				t.Errorf("%q: exit %d, want %d: %s", args, o.Exit, exit, o.Stderr)
			}
			nothing(t, before, o.PID, work)
		}
		for _, target := range []string{"/data", "/work/data", "/tmp/data", "/home/sandbox/x/y"} {
			run(125, "-v", work+"/rw:"+target+":rw", "-v", work+"/ro:"+target+"/below", "--", "true")
			run(0, "-v", work+"/rw:"+target+":rw", "-w", target, "--", "true")
		}
		for _, target := range []string{"/opt2/new", "/opt2/new/deep", "/usr/new"} {
			run(125, "-v", work+"/ro:"+target, work+"/img", "/prog", "version")
			run(125, "-v", work+"/ro/file:"+target, work+"/img", "/prog", "version")
		}
		run(0, "-v", work+"/ro:/new/deep", work+"/img", "/prog", "version")
		run(0, "-v", work+"/ro:/opt2", work+"/img", "/prog", "version")
		run(0, "-v", work+"/ro/file:/opt2/file", work+"/img", "/prog", "version")
		run(125, "-w", "/opt2/new", work+"/img", "/prog", "version")
		if text, err := os.ReadFile(work + "/img/opt2/file"); err != nil || string(text) != "the image's\n" {
			t.Errorf("the image's file is %q, %v", text, err)
		}
	})
}
