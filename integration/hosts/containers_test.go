package hosts

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/internal/testkit/agree"
	"sandglass/pkg/doctor"
)

// What is refused in outer containers, in the form of words.
const (
	readOnlyGroup = "LIMITS: the cgroup mount is read-only"
	othersGroup   = "LIMITS: no control group of one's own"
	readOnlySys   = "init: open /proc/sys/user: /proc/sys is read-only on this host, so the caller's inotify instances and watches could not be kept from the program"
	noSetFCap     = "user namespaces cannot be made or mapped: map ids: operation not permitted; root lacks CAP_SETFCAP"
	noLocks       = "no host id for the sandbox: mkdir /run/sandglass: read-only file system"
)

// outer is an outer container of some kind, and what is refused in it one after the
// other, as each refusal's hint is heeded.
type outer struct {
	name    string
	root    bool // who starts it
	start   func(t *testing.T, who testkit.Who) engine
	refused []string
}

// outers are podman's and runc's containers, without options and with all that can
// be given. Rootless ones have no control group of their own here.
var outers = []outer{
	{"podman", true, byPodman(), []string{readOnlySys + "; " + readOnlyGroup}},
	{"podman", false, byPodman(), []string{readOnlySys + "; " + readOnlyGroup, othersGroup}},
	{"podman --privileged", true, byPodman("--privileged"), nil},
	{"podman --privileged", false, byPodman("--privileged"), []string{othersGroup}},
	{"runc", true, byRunc(nil), []string{noSetFCap, readOnlySys + "; " + readOnlyGroup}},
	{"runc", false, byRunc(nil), []string{noSetFCap, readOnlySys + "; " + readOnlyGroup, othersGroup}},
	{"runc, all capabilities", true, byRunc(allCaps), []string{noLocks, readOnlyGroup}},
	{"runc, all capabilities", false, byRunc(allCaps), []string{readOnlySys + "; " + readOnlyGroup, othersGroup}},
}

func byPodman(flags ...string) func(*testing.T, testkit.Who) engine {
	return func(t *testing.T, who testkit.Who) engine { return newPodman(t, who, flags...) }
}

func byRunc(change func(map[string]any)) func(*testing.T, testkit.Who) engine {
	return func(t *testing.T, who testkit.Who) engine { return newRunc(t, who, change) }
}

// words is a refusal without what differs between the versions of control groups
// and with whose they are: other tests hold these to the letter.
func words(said string) string {
	const limits = `(?:memory|memory, pids, cpu) limits?: `
	said = regexp.MustCompile(limits+`the cgroup mount is read-only: .*: read-only file system`).ReplaceAllString(said, readOnlyGroup)
	return regexp.MustCompile(limits+`(?:no control group of your own: mkdir .*: permission denied|own cgroup \S+ is not delegated to uid 0 \(.*\))`).ReplaceAllString(said, othersGroup)
}

// TestContainers: what a container is refused is one line, doctor says the same, and
// its hints lead to one in which a run works, and in which it is isolated; none is
// --privileged.
func TestContainers(t *testing.T) {
	for _, o := range outers {
		name, who := o.name+", rootless", testkit.AsUser
		if o.root {
			name, who = o.name+", rootful", testkit.AsRoot
		}
		t.Run(name, func(t *testing.T) {
			testkit.Requires(t, "root")
			e, byName := o.start(t, who(t)), false
			for i, want := range o.refused {
				said := asked(t, e, i == 0)
				what, hints, _ := strings.Cut(said, "\n")
				if got := words(strings.TrimPrefix(what, "sandglass: error: ")); got != want {
					t.Fatalf("refused: %s\nwant %s\n%s", got, want, hints)
				}
				byName = want == othersGroup
				heedAll(t, e, hints, byName)
			}
			if o.name == "podman" && byName { // what is left is as with --privileged, and a start costs seconds
				return
			}
			isolated(t, e, byName)
		})
	}
}

// asked is a refusal in the container. Doctor is asked in the same one, for a start
// costs seconds; it leaves out what flags mend where there is more than that.
func asked(t *testing.T, e engine, ask bool) string {
	t.Helper()
	script := `sandglass run --timeout 100s -- echo ran 2>&1; echo "@ $?"`
	if ask {
		script += `; sandglass doctor --json; echo "@ $?"; sandglass run --timeout 100s --allow-degraded memory,cpu,pids -- echo ran 2>&1; echo "@ $?"`
	}
	out := e.run(t, "sh", "-c", script)
	end := regexp.MustCompile(`(?m)^@ (\d+)\n`)
	parts, codes := end.Split(out.Stdout, -1), end.FindAllStringSubmatch(out.Stdout, -1)
	if out.Exit != 0 || !strings.HasPrefix(out.Stdout, parts[0]+"@ 125\n") || !strings.HasPrefix(parts[0], "sandglass: error: ") {
		t.Fatalf("exit %d, %q, %q", out.Exit, out.Stdout, out.Stderr)
	}
	if !ask {
		return parts[0]
	}
	exit, _ := strconv.Atoi(codes[1][1])
	r, bare := agree.Parse(t, testkit.Output{Stdout: parts[1], Exit: exit}), parts[0]
	switch {
	case r.Run.State == doctor.DoesNot && r.Run.Flags != "":
		bare = parts[2]
	case r.Run.State == doctor.Less && parts[2] != "ran\n":
		t.Errorf("with %s: %s", r.Run.Flags, parts[2])
	}
	agree.Words(t, bare, r)
	return parts[0]
}

// heedAll does what the hints say of the outer container: all of them that can be
// done by whoever starts it. What a limit's group needs may be somebody else's to give.
func heedAll(t *testing.T, e engine, hints string, byName bool) {
	t.Helper()
	heeded, last := false, ""
	for line := range strings.Lines(hints) {
		last = strings.TrimPrefix(strings.TrimSpace(line), "hint: ")
		if strings.Contains(last, "systemd-run") || strings.Contains(last, "docker") || strings.Contains(last, "--privileged") {
			t.Errorf("a hint of another host's: %s", last)
		}
		heeded = e.heed(t, last) || heeded
	}
	if byName && last != "--allow-degraded memory,pids,cpu" || !byName && !heeded {
		t.Errorf("the hints lead nowhere:\n%s", hints)
	}
}

// isolated runs a program in the container that looks for what is not its own.
func isolated(t *testing.T, e engine, byName bool) {
	t.Helper()
	args := []string{"sandglass", "run", "--timeout", "100s"}
	if byName {
		args = append(args, "--allow-degraded", "memory,pids,cpu")
	}
	o := e.run(t, append(args, "--", "sh", "-c", `id -u; grep -E "^(CapBnd|CapEff|NoNewPrivs|Seccomp):" /proc/self/status; cat /secret; env; echo end`)...)
	lines := strings.Split(o.Stdout, "\n")
	want := []string{"65534", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"}
	if o.Exit != 0 || len(lines) < len(want) || !slices.Equal(lines[:len(want)], want) || !strings.HasSuffix(o.Stdout, "\nend\n") ||
		strings.Contains(o.Stdout, secret) || o.Stderr != "cat: can't open '/secret': No such file or directory\n" {
		t.Errorf("exit %d\n%s%s", o.Exit, o.Stdout, o.Stderr)
	}
}
