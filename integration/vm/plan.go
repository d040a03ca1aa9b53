package main

import (
	"path/filepath"
	"slices"
	"strings"
)

// machine is one column of the table.
type machine struct {
	name    string
	kernel  string // Debian's package
	release string // of Debian, where it is not this host's
	arch    string // "" is this host's
	init    string // systemd as PID 1; sh in the initial ramfs, or with hybrid control groups; sh without
	append  string // more words of the kernel's command line
	must    []string
	suites  []suite
	update  bool // of the golden files
	byName  bool // runs only when -only names it: make test-arm64
	nine    bool // it has a share of 9p
	again   bool // what failed, for the second time
}

// suite is one test binary in it.
type suite struct {
	pkg       string
	run, skip string // regular expressions for the tests' names
	user      bool   // as an ordinary user inside a delegated scope, with systemd only
	halved    bool   // of what another machine runs as well, each runs a half: half.go
}

func (m machine) dir() string {
	return filepath.Join(work, strings.Trim(m.release+"-"+m.kernel, "-"))
}

// built is a directory of what is built for the machine's architecture.
func (m machine) built(name string) string {
	return filepath.Join(work, strings.Trim(name+"-"+m.arch, "-"))
}

func (m machine) results() string {
	if m.again {
		return filepath.Join(work, "results", m.name+"-again.json")
	}
	return filepath.Join(work, "results", m.name+".json")
}

// has is what every machine has for certain; a test may not be skipped for the
// want of it.
var has = []string{"userns", "seccomp", "landlock", "idmap", "amd64", "gcc", "python3", "node", "bash", "perl", "ipv6",
	"cgroup", "cgroup2", "cgroup2-memory", "cgroup2-pids", "cgroup2-cpu", "disk", "swap", "tracefs", "golden", "cgroup.kill", "ptmx", "veth"}

// The kernels: Debian stable's, and the newest that its security archive has.
const (
	older = "linux-image-cloud-amd64"
	newer = "linux-image-6.12-cloud-amd64"
)

// whole is Debian's kernel for any machine: the others have no 9p.
const whole = "linux-image-amd64"

// otherArch is what a machine of another architecture has: a small Debian of its
// own in place of this host.
var otherArch = []string{"root", "userns", "seccomp", "landlock", "idmap", "arm64", "python3", "bash", "perl", "ipv6",
	"cgroup", "cgroup2", "cgroup2-memory", "cgroup2-pids", "cgroup2-cpu", "disk", "swap", "tracefs", "cgroup.kill", "ptmx", "veth"}

// Left out, by name:
const (
	needsGo = "Fault|Mutant" // they build a changed command, which only the host can
	// Hundreds of runs, most of them under a tracer: the host does them in a minute.
	calls = "EveryFailedCall|KilledAtEveryCall|AfterManyInARow|OfManyAtOnce|NamespacesAreGivenBack"
	// Thousands of runs, or one for each signal: the host does them in seconds.
	races = "^(Test(Source|MountTarget|Image)SwappedWhileStarting|TestFloodOfRefusals)$"
	// Floods, and ways around what sandglass itself holds.
	floods = "^Test(OutputFlood|OutputFloodOfPages|OutputWays|KillAll|CPUTimeWays|DiskWays|OwnEndings|ResultCostsNoMemory|TimeoutOfMany)$|Reader"
	// Ways around what one kernel holds as the other does: the newer one is enough.
	ways = "^Test(CPUTimeOfChildren|IOThrottles|MemoryThatNoCgroupCounts|TimeoutOfAStoppedSupervisor)$"
	many = "Many$"
	// Programs: what they do depends on no kernel.
	programs = "^Test(Tools|OldAndNewLibraries|WhoNeedsENOSYS|JVMHeap|Java|Python|FontCacheIsInHome|BLASThreads|Node|Scripts|Compilers|GoNeedsItsFlags|Graphics|ChromiumOwnSandbox|PostgreSQL)$|" +
		"^TestPrograms$/./^user$|" + // whose sandboxes have no group of v2 here
		"^TestPrograms$/^A19" // matplotlib
	// A hundred runs of one caller: the older kernel does them.
	caller = "^TestNothingIsLeftInTheCaller$"
	// What check makes of answers, and not what the kernel says.
	judge = "^TestEveryAnswerCounts$"
	// Where sandglass itself waits, and what it asks a terminal.
	patient = "^Test(ReaderThatDoesNotRead|Flood|NoQuestions|TerminalThatDoesNotAnswer|StreamsThatAreNone|Paste|API)$"
	// A list of hosts, as far as the kernel has a part in it: which name is allowed,
	// and how often, is what the relay reads.
	listed = "^Test(OwnResolver|NoOtherHost|NoListNoNetwork|SourcesAndDevices|PrivateAddressesAreNotDialled|ListedPrivateAddress|" +
		"HalfClose|BytesUp|BytesDown|ConnectionsAtOnce|TwoAtOnce|LoopbackOfTheHost|NothingIsLeft|StoppedSupervisor)$"
	// What is made of a profile, a script's first line or a sum, and not what the kernel does.
	texts = "^Test(LearnedProfileRunsTheProgram|LearningAddsToNothingWider|MinimalComputes|NothingOfTheProgramsRunsOnTheHost)$"
	// Crowds of loops, which the emulator has one CPU for: nice values are older than any of these kernels.
	crowds = "^TestCalm"
	// README's commands, with all of check in them, twice, the demo, with gcc and an
	// image, four times, and a limit of ten seconds: the host does them.
	readme = "^Test(README|Demo|RuleExamplesStopALoop)$"
	// Doctor's hosts that are poor by their control groups, or another way with
	// them: what a filter does depends on no kernel, and each host costs seconds.
	poorHosts = "^Test(DockerProfile|NoClone3|ReadOnlyCgroup)$"
	// What sessions keep ready, where a verdict or an end is read in files of cgroup
	// v2; an ordinary user's sandboxes have none here.
	warm = "^TestWarm(Command|BeforeItsRelease|ResultIsLast|LimitsBeginAtTheRelease|Ends|MemberDies|DiesBeforeTheExec|ClockBeginsAtTheExec)$/^root$"
	// They write through a mount of a tmpfs as root, which is refused by name
	// before Linux 6.3: see TestTmpfsIDMap of integration/v2.
	tmpfsIDMap = "^TestNothingIsMadeInMountedDirectories$"
)

// plan is what must run where. Emulation is 5 to 15 times slower than the host,
// so what depends on no kernel runs on one of them, and of the hostile programs
// that any kernel must hold each runs a half; the machine with systemd is for what an ordinary user is given there.
func plan() []machine {
	kernel := func(limits, leftovers string) []suite {
		return []suite{
			{pkg: "integration/v2"},
			{pkg: "integration/witness"},
			{pkg: "integration/vm"},
			{pkg: "pkg/cgroup"},
			{pkg: "pkg/launch", skip: crowds},
			{pkg: "pkg/boxinit"},
			{pkg: "pkg/mount"},
			{pkg: "pkg/hostid"},
			{pkg: "pkg/seccomp", halved: true},
			{pkg: "pkg/sandbox"},
			{pkg: "internal/sys", skip: many},
			{pkg: "integration/escape", skip: races + "|" + texts, halved: true},
			{pkg: "integration/egress", run: listed, halved: true},
			{pkg: "integration/limits", skip: limits, halved: true},
			{pkg: "integration/leftovers", skip: leftovers, halved: true},
		}
	}
	root := append([]string{"root"}, has...)
	return append([]machine{
		{name: "kernel-6.1", kernel: older, must: root, suites: append(kernel(floods+"|"+ways, needsGo+"|"+calls+"|ClockThatJumps|"+tmpfsIDMap),
			suite{pkg: "integration/parity"}, suite{pkg: "integration/cli", skip: readme}, suite{pkg: "integration/doctor", run: poorHosts})},
		{name: "kernel-6.12", kernel: newer, must: append([]string{"own-machine", "apparmor"}, root...), suites: append(kernel(floods, needsGo+"|"+calls+"|"+caller),
			suite{pkg: "integration/hosts", skip: "^Test(OldKernel|InitialRamfs|Containers|WithoutPids)$"},
			suite{pkg: "integration/session", run: warm},
			suite{pkg: "integration/compat", skip: programs}, suite{pkg: "integration/tty", skip: patient}, suite{pkg: "pkg/check", skip: judge})},
		{name: "systemd-6.12", kernel: newer, init: "systemd", must: append([]string{"systemd", "user-1000", "delegated", "machine", "dpkg"}, has...), suites: []suite{
			{pkg: "integration/vm", user: true},
			{pkg: "pkg/cgroup", user: true},
			{pkg: "integration/limits", user: true, skip: floods + "|" + ways},
			{pkg: "integration/packages", run: "^TestInstalled$"},
			{pkg: "integration/v2", run: "^Test(Delegation|HostsInUnits)$"}, // the last: the first of them changes what is delegated
		}},
		{name: "containers-6.12", kernel: newer, must: append([]string{"own-machine", "podman"}, root...), suites: []suite{
			// One controller is taken from v2 before any group has it. Runc's containers are the host's to test.
			{pkg: "integration/hosts", run: "^Test(WithoutPids|Containers)$/^podman"}}},
		{name: "no-memory-6.1", kernel: older, append: "cgroup_disable=memory", must: []string{"root", "cgroup2-pids", "without-memory", "golden"},
			suites: []suite{{pkg: "integration/v2", run: "^TestMissingController$"}, {pkg: "integration/vm", run: "^TestDoctorTable$"}}},
		{name: "initramfs-6.12", kernel: newer, init: "ramfs", must: []string{"root", "own-machine", "initramfs"}, suites: []suite{
			{pkg: "integration/hosts", run: "^TestInitialRamfs$"}}},
		{name: "hybrid-6.1", kernel: whole, init: "hybrid", nine: true, must: []string{"root", "own-machine", "hybrid", "9p", "golden"}, suites: []suite{
			{pkg: "integration/hosts", run: "^Test(Hybrid|Split)$"},
			{pkg: "integration/doctor", run: "^Test(Sources|HomeAndTmp)$/^9p$"},
			{pkg: "integration/vm", run: "^Test(Doctor|Result)Table$"}}},
		{name: "kernel-5.10", kernel: older, release: "bullseye", must: []string{"root", "own-machine", "kernel-5.10"}, suites: []suite{
			{pkg: "integration/hosts", run: "^TestOldKernel$"}}},
	}, arm64()...)
}

// arm64 are the machines of the other architecture: one for each run, and one for
// everything, by name.
func arm64() []machine {
	core := []suite{
		{pkg: "pkg/check", run: "^TestEveryControlHolds$"},
		{pkg: "pkg/seccomp"},
		{pkg: "internal/sys", skip: many},
		{pkg: "pkg/boxinit"},
		{pkg: "pkg/mount"},
	}
	of := func(name string, byName bool, suites []suite) machine {
		return machine{name: name, byName: byName, kernel: "linux-image-cloud-arm64", release: "trixie", arch: "arm64", must: otherArch, suites: suites}
	}
	return []machine{of("arm64-core", false, core), of("arm64", true, slices.Concat(core, []suite{
		{pkg: "pkg/cgroup"},
		{pkg: "pkg/launch"},
		{pkg: "pkg/sandbox", skip: "^Example"}, // with limits for a machine that is not emulated
	}))}
}

// pick takes a part of the plan, for work on it.
func pick(machines []machine, only, suites, run string) []machine {
	var picked []machine
	for _, m := range machines {
		if only == "" && m.byName {
			continue
		}
		if only != "" && !slices.Contains(strings.Split(only, ","), m.name) {
			continue
		}
		if suites != "" {
			m.suites = slices.DeleteFunc(m.suites, func(s suite) bool { return !slices.Contains(strings.Split(suites, ","), s.pkg) })
		}
		if run != "" {
			for i := range m.suites {
				m.suites[i].run, m.suites[i].halved = run, false
			}
		}
		if len(m.suites) > 0 {
			picked = append(picked, m)
		}
	}
	return picked
}
