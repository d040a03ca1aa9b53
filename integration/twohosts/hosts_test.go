package twohosts

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

//go:embed testdata/host.sh
var hostScript string

// host is one of the two: its name is in all that it holds, and caller is what
// the one who starts sandglass there is, in words of a shell.
type host struct{ name, caller string }

// The two differ in the length of their names too, which changes the number of
// their mounts, and in all that a process inherits.
var (
	first  = host{"aldebaran", "umask 022"}
	second = host{"betelgeuse-the-second", "umask 077; ulimit -t 3333; ulimit -d 9999999; echo 111 >/proc/self/oom_score_adj; renice -n 3 $$ >/dev/null; " +
		"ionice -c 3 -p $$; echo 0x7f >/proc/self/coredump_filter; exec 7</etc/passwd 8>/dev/null"}
)

// runOn runs the dumping program in a sandbox of a caller of that host.
func runOn(t *testing.T, h host, who testkit.Who, flags ...string) dump {
	t.Helper()
	dir := testkit.Dir(t)
	script := filepath.Join(dir, "host.sh")
	if err := os.WriteFile(script, []byte(hostScript), 0o755); err != nil {
		t.Fatal(err)
	}
	program := testkit.C(t, dumpSource)
	setup := func(cmd *exec.Cmd) {
		drop := ":"
		if !who.IsRoot() {
			id := strconv.Itoa(who.UID)
			drop = "exec setpriv --reuid " + id + " --regid " + id + " --clear-groups \"$@\""
		}
		args := []string{"unshare", "--mount", "--uts", "--propagation", "private", "sh", script, h.name, dir,
			"sh", "-c", h.caller + "; " + drop + "; exec \"$@\"", h.name + "-process"}
		cmd.Path, cmd.Args = "/usr/bin/unshare", append(args, cmd.Args...)
		cmd.SysProcAttr = nil // root makes the host; the caller comes after it
	}
	args := append([]string{"--output-limit", "64m", "-v", program + ":/task/dump:ro"}, flags...)
	env := []string{"SECRET=" + h.name + "-environment", "HOME=/home/" + h.name + "-user"}
	o := testkit.Run(t, testkit.Opts{Who: who, Env: env, Setup: setup}, append(args, "--", "/task/dump")...)
	if o.Exit != 0 {
		t.Fatalf("exit %d\nstderr: %s", o.Exit, o.Stderr)
	}
	return parse(t, o.Stdout)
}

// Each way in which two hosts, or two callers, differ and that the program can
// tell stands in docs/LEAKS.md.
func TestTwoHosts(t *testing.T) {
	testkit.Requires(t, "root", "gcc")
	list := leaks(t)
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		report(t, list, runOn(t, first, who), runOn(t, second, who))
	})
}

// Nothing of the host shows by name. What is mounted for the caller shows where
// it comes from, as docs/LEAKS.md says, and there alone.
func TestNamesOfTheHost(t *testing.T) {
	testkit.Requires(t, "root", "gcc")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir := filepath.Join(testkit.Dir(t), second.name+"-source")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		d := runOn(t, second, who, "-v", dir+":/data:ro")
		if len(d) < 1000 {
			t.Fatalf("the program saw %d things", len(d))
		}
		shows := map[string][]string{}
		for name, value := range d {
			if group := groupName.FindString(value); group != "" {
				t.Errorf("%s shows %q, a group's name with the supervisor's PID", name, group)
			}
			for _, kind := range []string{"host", "domain", "path", "volume", "user", "machine", "key", "mount", "environment", "process", "source"} {
				if strings.Contains(value, second.name+"-"+kind) || strings.Contains(name, second.name+"-"+kind) {
					shows[kind] = append(shows[kind], name)
				}
			}
		}
		for kind, names := range shows {
			names = slices.DeleteFunc(names, func(n string) bool { return mayShow(kind, n) })
			if len(names) > 0 {
				slices.Sort(names)
				t.Errorf("the host's %s shows in %q", kind, names)
			}
		}
		// The test can see: what is known to show does.
		if len(shows["source"]) == 0 || len(shows["volume"]) == 0 {
			t.Errorf("neither the source of a mount nor a volume was found: %v", shows)
		}
	})
}

// groupName is how a run's cgroups are called on the host.
var groupName = regexp.MustCompile(`sandglass-[0-9]+-[0-9]+-`)

// mayShow is for the two kinds that mountinfo cannot be kept from telling.
func mayShow(kind, name string) bool {
	mounts := strings.HasPrefix(name, "/proc/self/mounts:") || strings.HasPrefix(name, "/proc/self/mountstats:")
	switch kind {
	case "source":
		return name == "mountinfo:/data.root"
	case "volume":
		return mounts || strings.HasPrefix(name, "mountinfo:/etc/") && strings.HasSuffix(name, ".source")
	}
	return false
}
