package v2

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"

	"golang.org/x/sys/unix"
)

const spin = "while :; do :; done & while :; do :; done & "

// The kernel's own figures, from outside: throttled again and again, and in no
// period more CPU than the quota.
func TestCPUIsThrottled(t *testing.T) {
	testkit.Requires(t, "root", "cgroup2")
	l := hold(t, spin, "", "--cpus", "0.2", "--timeout", "100s")
	if got := read(t, l.box, "cpu.max"); got != "20000 100000" {
		t.Errorf("cpu.max %q", got)
	}
	testkit.Eventually(t, "twenty periods are throttled", func() bool { return count(t, "nr_throttled", l.box, "cpu.stat") >= 20 })
	used := count(t, "usage_usec", l.box, "cpu.stat")
	periods := count(t, "nr_periods", l.box, "cpu.stat")
	// What a period takes too much is taken from the next, and on a machine whose CPUs
	// the host holds up that is any length of time. Without the limit it is five times
	// as much at least.
	if most := 20_000 * periods * 3 / 2; used > most {
		t.Errorf("%d µs in %d periods of 20000", used, periods)
	}
	if n := count(t, "throttled_usec", l.box, "cpu.stat"); n == 0 {
		t.Error("throttled for no time")
	}
	l.Kill()
}

// The same with all CPUs is never throttled, so the test above shows the limit
// and not the machine.
func TestCPUIsFree(t *testing.T) {
	testkit.Requires(t, "root", "cgroup2")
	l := hold(t, spin, "", "--cpus", "2", "--timeout", "100s")
	testkit.Eventually(t, "half a second is used", func() bool { return count(t, "usage_usec", l.box, "cpu.stat") >= 500_000 })
	if n := count(t, "nr_throttled", l.box, "cpu.stat"); n != 0 {
		t.Errorf("throttled in %d periods", n)
	}
	l.Kill()
}

// The box counts the program's tasks, init's threads count in its own group,
// which has no limit.
func TestInitIsNotCounted(t *testing.T) {
	testkit.Requires(t, "root", "cgroup2")
	l := hold(t, "sleep 600 & ", "", "--pids-limit", "3")
	testkit.Eventually(t, "sh, sleep and cat count, and nobody else", func() bool { return read(t, l.box, "pids.current") == "3" })
	if got := read(t, l.box, "pids.max"); got != "3" {
		t.Errorf("pids.max of the box is %s", got)
	}
	n, err := strconv.Atoi(read(t, l.init, "pids.current"))
	if err != nil || n < 2 {
		t.Errorf("pids.current of init's group is %d, want its threads (%v)", n, err)
	}
	if got := read(t, l.init, "pids.max"); got != "max" {
		t.Errorf("pids.max of init's group is %s", got)
	}
	l.Kill()
}

// disk is the whole disk behind a directory.
func disk(t *testing.T, dir string) (node, number string) {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		t.Fatal(err)
	}
	number = fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev))
	sys, err := filepath.EvalSymlinks("/sys/dev/block/" + number)
	if err != nil || exists(sys+"/partition") {
		testkit.Skip(t, "a disk", "device "+number+" behind "+dir)
	}
	return "/dev/" + filepath.Base(sys), number
}

// Four megabytes past the page cache, at one a second, by the bytes that the
// kernel counted for the box.
func TestDiskWritesAreThrottled(t *testing.T) {
	testkit.Requires(t, "root", "cgroup2")
	dir, err := os.MkdirTemp("/var/tmp", "sandglass-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	node, number := disk(t, dir)
	const dd = "dd if=/dev/zero of=/data/x bs=64k count=64 oflag=direct 2>/dev/null && "
	rate := func(flag string) (wall, wrote int64) {
		l := hold(t, dd, "", "-v", dir+":/data:rw", "--timeout", "200s", "--device-write-bps", node+":"+flag)
		for f := range strings.FieldsSeq(lineOf(read(t, l.box, "io.stat"), number)) {
			if v, ok := strings.CutPrefix(f, "wbytes="); ok {
				wrote, _ = strconv.ParseInt(v, 10, 64)
			}
		}
		l.release()
		o := l.Wait()
		ended(t, o, result.Exited, 0)
		if by := o.Result.Limits["io"].EnforcedBy; by != result.ByCgroup2 {
			t.Errorf("io is held by %s", by)
		}
		return o.Result.WallMS, wrote
	}
	slow, wrote := rate("1m")
	if wrote < 4<<20 {
		t.Errorf("io.stat counts %d bytes written", wrote)
	}
	if perSecond := wrote * 1000 / slow; perSecond > 5<<18 { // 1.25 MiB: the first slice is free
		t.Errorf("%d bytes a second at a limit of %d", perSecond, 1<<20)
	}
	if quick, _ := rate("1g"); quick >= slow {
		t.Errorf("without a limit to speak of %d ms, with one %d ms", quick, slow)
	}
}

func lineOf(text, first string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, first+" ") {
			return line
		}
	}
	return ""
}
