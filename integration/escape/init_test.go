package escape

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

// Init has the program's own user id: only what is below keeps the two apart.
func TestInitCannotBeTakenOver(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		attempt(t, who, nil, slicesOf(
			all("EPERM", "ptrace:1", "getfd:1:3", "getfd:1:0", "prlimit:1:0:0", "prlimit:1:7:0", "prlimit:1:9:0"),
			all("EPERM", call("process_vm_readv", ":1:0:0:0:0"), call("process_vm_writev", ":1:0:0:0:0"), call("kcmp", ":1:1:0:0:0")),
			all(unseen, "list:/proc/1", "open:w:/proc/1/mem", "open:w:/proc/1/oom_score_adj", "open:r:/proc/1/ns/net", "open:path:/proc/1/cwd"),
		))
	})
}

// The kernel drops a signal from inside for PID 1, but only while PID 1 has no
// handler for it, and Go's runtime has one for nearly each.
func TestNoSignalFromInsideReachesInit(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		var tries []try
		answer := "OK" // and dropped
		if signalsScoped() {
			answer = "EPERM"
		}
		for sig := range 65 {
			tries = append(tries, try{fmt.Sprintf("kill:1:%d", sig), answer}, try{fmt.Sprintf("pidfd:1:%d", sig), answer})
		}
		// Nor can the program slow init down, and with it the report of its own end.
		tries = append(tries, try{"nice:1", "EPERM"}, try{"affinity:1", "EPERM"})
		// The last line comes out, and the verdict is the program's own.
		attempt(t, who, nil, append(tries, try{"readlink:/proc/self", "OK"}))
		o := testkit.Sh(t, who, "for s in TERM QUIT INT HUP SEGV ABRT BUS FPE ILL TRAP USR1 USR2 PIPE ALRM STOP TSTP CONT XCPU 34 35 64 KILL; do kill -$s 1; done; exit 42")
		if o.Exit != 42 || o.Result.Outcome != result.Exited {
			t.Errorf("exit %d, outcome %q, %s", o.Exit, o.Result.Outcome, o.Result.Error)
		}
	})
}

// kill -1 hits every process that the program may signal: its own.
func TestKillAllHitsOnlyTheProgram(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		neighbour := hold(t, testkit.Opts{Who: who}, "exit 5")
		for _, sig := range []int{9, 15, 11, 6, 64} {
			o := testkit.Sh(t, who, fmt.Sprintf("sleep 1000 & trap '' TERM; kill -%d -1; wait; exit 4", sig))
			// kill(-1) does not hit its caller, so the shell waits for its child, which is dead.
			if o.Exit != 4 || o.Result.Outcome != result.Exited {
				t.Errorf("kill -%d -1: exit %d, outcome %q, %s", sig, o.Exit, o.Result.Outcome, o.Result.Error)
			}
		}
		neighbour.release()
		if o := neighbour.Wait(); o.Exit != 5 {
			t.Errorf("the neighbour ended with %d, outcome %q", o.Exit, o.Result.Outcome)
		}
	})
}

// The host's binary runs as PID 1 inside, so a program that gets hold of it for
// writing owns the host's next run (CVE-2019-5736). The binary here belongs to
// the very id that the program has.
func TestHostBinaryCannotBeWritten(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		own, before := ownedBinary(t, who)
		swap := func(cmd *exec.Cmd) { cmd.Path = own }
		dir := testkit.Dir(t)
		for name, text := range map[string]string{
			"self.sh":   "#!/proc/self/exe\n",
			"one.sh":    "#!/proc/1/exe\n",
			"self2.sh":  "#!/proc/self/exe run\n",
			"thread.sh": "#!/proc/thread-self/exe version\n",
		} {
			write(t, dir+"/"+name, text)
			if err := os.Chmod(dir+"/"+name, 0o755); err != nil {
				t.Fatal(err)
			}
			o := testkit.Run(t, testkit.Opts{Who: who, Setup: swap}, "-v", dir+":/data", "--", "/data/"+name)
			if o.Result.Outcome != result.Refused || strings.Contains(o.Stdout, "sandglass") {
				t.Errorf("%s ran the host's binary: %s, exit %d, %q", name, o.Result.Outcome, o.Exit, o.Stdout)
			}
		}
		o := must(t, testkit.Run(t, testkit.Opts{Who: who, Setup: swap}, "--", "sh", "-c", searchExe))
		if want := "tried\n"; o.Stdout != want {
			t.Errorf("%q, want %q", o.Stdout, want)
		}
		after, err := os.ReadFile(own)
		if err != nil {
			t.Fatal(err)
		}
		if sha256.Sum256(after) != before {
			t.Fatal("the host's binary was changed")
		}
	})
}

// searchExe looks through every process and thread for a link to a program
// that is not the sandbox's own, and writes to it.
const searchExe = `for p in /proc/[0-9]* /proc/[0-9]*/task/*; do
	l=$(readlink $p/exe 2>/dev/null) || continue
	case $l in /usr/*|/bin/*|/lib*) continue;; esac
	echo "found $l"; { echo x >>$p/exe; } 2>/dev/null && echo WROTE
done; echo tried`

// ownedBinary is a copy of the binary that the identity itself may write.
func ownedBinary(t *testing.T, who testkit.Who) (string, [32]byte) {
	t.Helper()
	text, err := os.ReadFile(testkit.Binary(t))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(testkit.Dir(t), "sandglass")
	if err := os.WriteFile(path, text, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o777); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 && !who.IsRoot() {
		if err := os.Chown(path, who.UID, who.GID); err != nil {
			t.Fatal(err)
		}
	}
	return path, sha256.Sum256(text)
}
