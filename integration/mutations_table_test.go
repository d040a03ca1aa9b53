package integration

// unpacked is where archives are read.
const unpacked = "pkg/image/unpack"

// mutations are the controls, in the order of docs/THREATMODEL.md, and what it
// means to take each away.
var mutations = []mutation{
	{control: "own host id", fail: []string{"TestRootSandboxHasAnIDOfItsOwn"}, edits: []edit{
		{"pkg/sandbox/hostid.go", "	id.HostUID, id.HostGID, id.Mapped = held.N, held.GID, true\n	r.box.Identity = id", "	id.HostUID, id.HostGID, id.Mapped = hostid.First, hostid.First, true\n	r.box.Identity = id"}}},
	{control: "own host id of a user", fail: []string{"TestUserSandboxesHaveIDsOfTheirOwn"}, edits: []edit{
		{"pkg/hostid/user.go", "	n := min(total(r.uids), total(r.gids))\n", "	n := 1\n	l.fd, _ = unix.Open(\"/dev/null\", unix.O_RDWR, 0)\n"}}},
	{control: "a user's own ids on every thread", fail: []string{"TestUserSandboxesHaveIDsOfTheirOwn"}, edits: []edit{
		{"internal/sys/threads.go", "allThreads(call[0], call[1], call[2], call[3], 0, 0, 0)", "syscall.RawSyscall(call[0], call[1], call[2], call[3])"}}},
	{control: "what the helpers did read back", fail: []string{"TestALyingHelperIsRefused"}, edits: []edit{
		{"pkg/launch/helper.go", "if strings.Join(got, \" \") != strings.Join(want, \" \") {", "if false {"}}},
	{control: "users' ids taken from no other's range", fail: []string{"TestIDsOfOthersAreNotTaken"}, edits: []edit{
		{"pkg/hostid/ranges.go", "for _, o := range append(others, span{First, Count}) {", "for _, o := range append(others[:0], span{First, Count}) {"}}},
	{control: "supplementary groups dropped", fail: []string{"TestRootsSupplementaryGroupsAreDropped"}, edits: []edit{
		{"pkg/launch/spawn.go", `c.Add("groups", unix.SYS_SETGROUPS, 0, 0)`, "_ = c"}}},
	{control: "id mapped mounts map the owner alone", fail: []string{"TestRootsFilesOutOfReach"}, edits: []edit{
		{"pkg/launch/realize.go", "attr.Attr_set |= unix.MOUNT_ATTR_IDMAP", "_ = ns"},
		{"pkg/launch/realize.go", "attr.Userns_fd = uint64(ns)", ""}}},
	{control: "seccomp of the program", fail: []string{
		"TestSystemCallsAreRefused", "TestNoNewNamespaces", "TestForeignCallsAreKilled", "TestTerminalCannotBeTypedInto", "TestKeyringsAreOutOfReach",
		"TestSocketFamilies", "TestNoSetUIDBitsInWritableMounts", "TestInitCannotBeTakenOver", "TestFilesCannotBeHeldBack",
		"TestVolumesAreNotNamed", "TestSocketOptions", "TestFilesTakeNoRequests", "TestPageCacheTellsNothing", "TestMinimalComputes", "TestDebugTracesOnlyOnesOwn"},
		edits: []edit{{"pkg/boxinit/child.go", `c.Seccomp("seccomp", cfg.Seccomp)`, ""}}},
	{control: "seccomp of init", fail: []string{"TestEveryThreadOfInitIsConfined"}, edits: []edit{
		{"pkg/boxinit/steps.go", `		{"seccomp of init", filterSelf},
`, ""}}},
	{control: "init's own filter", pkg: "parity", fail: []string{"TestInitHasAFilterOfItsOwn"}, edits: []edit{
		{"pkg/sandbox/runner.go", "r.box.Config.InitSeccomp = seccomp.ForInit()", "r.box.Config.InitSeccomp = r.plan.Filter.BPF"}}},
	{control: "capabilities of init dropped", fail: []string{"TestEveryThreadOfInitIsConfined"}, edits: []edit{
		{"pkg/boxinit/steps.go", `		{"drop capabilities of init", dropOwnCaps},
`, ""}}},
	{control: "root read-only", fail: []string{"TestRootIsReadOnly", "TestMountAttributes"}, edits: []edit{
		{"pkg/rootfs/item.go", "Kind: wire.OpFreeze, Attr: wire.ReadOnly | wire.NoSuid", "Kind: wire.OpFreeze, Attr: wire.NoSuid"}}},
	{control: "nosuid", fail: []string{"TestMountAttributes"}, edits: []edit{
		{"pkg/rootfs/layers.go", "attr := wire.NoSuid | wire.NoDev\n	p.add", "attr := wire.NoDev\n	p.add"}}},
	{control: "mounts read-only", fail: []string{"TestReadOnlyMountStaysSo"}, edits: []edit{
		{"pkg/rootfs/layers.go", "		if !m.Write {\n			attr |= wire.ReadOnly", "		if false {\n			attr |= wire.ReadOnly"}}},
	{control: "private propagation", fail: []string{"TestMountsPropagateNowhere"}, edits: []edit{
		{"pkg/mount/mounts.go", `unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")`, `unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, "")`}}},
	{control: "host directories left out", fail: []string{"TestHostFilesAreNotThere"}, edits: []edit{
		{"pkg/rootfs/view.go", `[]string{"/usr", "/bin",`, `[]string{"/usr", "/boot", "/bin",`}}},
	{control: "synthetic etc", fail: []string{"TestEtcIsSynthetic"}, edits: []edit{
		{"pkg/rootfs/etc.go", "	p.file(\"/etc/passwd\", Passwd(p.in.UID, p.in.GID))", "	hostPasswd, _ := os.ReadFile(\"/etc/passwd\")\n	p.file(\"/etc/passwd\", string(hostPasswd))"}}},
	{control: "targets resolved without links", fail: []string{"TestMountTargetThatIsALink", "TestMountTargetSwappedWhileStarting"}, edits: []edit{
		{"pkg/mount/files.go", "const beneath = unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS", "const beneath = 0"}}},
	{control: "our places win over an image's", fail: []string{"TestImageCannotReplaceOurPlaces"}, edits: []edit{
		{"pkg/rootfs/view.go", "if !ours[name] {", "if true {"}}},
	{control: "sources pinned", fail: []string{"TestSourceSwappedWhileStarting"}, edits: []edit{
		{"pkg/rootfs/view.go", "how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}", "how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC}"},
		{"pkg/launch/realize.go", "how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}", "how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC}"},
		{"pkg/mount/mounts.go", "how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}", "how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC}"}}},
	{control: "sockets refused as sources", fail: []string{"TestSocketAsMountIsRefused"}, edits: []edit{
		{"pkg/plan/mounts.go", `		return "socket"`, `		return ""`}}},
	{control: "network namespace", fail: []string{"TestNetworkIsLoopbackAlone", "TestUnixSocketsOfTheHostAreOutOfReach"}, edits: []edit{
		{"pkg/launch/spawn.go", "unix.CLONE_NEWPID | unix.CLONE_NEWNET |", "unix.CLONE_NEWPID |"},
		{"pkg/boxinit/steps.go", "if !b.cfg.Loopback {", "if true {"}}},
	{control: "no time stamps of packets", fail: []string{"TestNoTimeStampsOfPackets"}, edits: []edit{
		{"pkg/boxinit/quota.go", "return append(list, timeStamps)", "return list"}}},
	{control: "loopback up", fail: []string{"TestLoopbackWorksInside"}, edits: []edit{
		{"pkg/boxinit/steps.go", "if !b.cfg.Loopback {", "if true {"}}},
	{control: "ipc namespace", fail: []string{"TestHostSharedMemoryIsUnseen", "TestNeighboursAreApart"}, edits: []edit{
		{"pkg/launch/spawn.go", " | unix.CLONE_NEWIPC", ""}}},
	{control: "uts namespace", fail: []string{"TestHostnameAndIPCAreItsOwn"}, edits: []edit{
		{"pkg/launch/spawn.go", " | unix.CLONE_NEWUTS", ""},
		{"pkg/boxinit/steps.go", "if err := unix.Sethostname([]byte(b.cfg.Hostname)); err != nil {", "if err := error(nil); err != nil {"},
		{"pkg/boxinit/steps.go", `return unix.Setdomainname([]byte("(none)"))`, "return nil"}}},
	{control: "cgroup namespace", fail: []string{"TestSysShowsOnlyTheOwnCgroup"}, edits: []edit{
		{"pkg/sandbox/runner.go", "Box: wire.NoFD, CgroupNS: true,", "Box: wire.NoFD, CgroupNS: false,"}}},
	{control: "own cgroup read-only", fail: []string{"TestSysShowsOnlyTheOwnCgroup"}, edits: []edit{
		{"pkg/rootfs/layers.go", "Attr: wire.ReadOnly | wire.NoSuid | wire.NoDev | wire.NoExec,\n		})", "Attr: wire.NoSuid | wire.NoDev | wire.NoExec,\n		})"}}},
	{control: "hidepid", fail: []string{"TestProcessesOfTheHostAreUnseen", "TestInitCannotBeTakenOver"}, edits: []edit{
		{"pkg/rootfs/layers.go", `Data: []byte("hidepid=ptraceable")`, `Data: nil`}}},
	{control: "init not dumpable", fail: []string{"TestProcessesOfTheHostAreUnseen"}, edits: []edit{
		{"pkg/boxinit/steps.go", "return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)", "return unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)"}, noLandlock}},
	{control: "ignored signals, not defaults", fail: []string{"TestInitCatchesNoSignal"}, edits: []edit{
		{"internal/sys/sys.go", "sigDfl, sigIgn = uintptr(0), uintptr(1)", "sigDfl, sigIgn = uintptr(0), uintptr(0)"}}},
	{control: "ignore signals to init", fail: []string{"TestNoSignalFromInsideReachesInit", "TestNoSignalByAsyncIO"}, edits: []edit{
		{"pkg/boxinit/steps.go", `		{"ignore signals to init", ignoreSignals},
`, ""}, noLandlock}},
	{control: "landlock", fail: []string{"TestLandlockIsReported", "TestLandlockAloneStopsASignal"}, edits: []edit{noLandlock}},
	{control: "masked paths of proc", fail: []string{"TestProcIsMasked"}, edits: []edit{
		{"pkg/rootfs/proc.go", "		p.add(wire.Op{Kind: wire.OpMask, Source: nothing, Target: \"/proc/\" + name})\n", ""}}},
	{control: "proc sys read-only", fail: []string{"TestKernelSettingsCannotBeWritten", "TestPathsOfTheKernelsHelpers"}, edits: []edit{
		{"pkg/rootfs/layers.go", `Source: "/proc/sys", Target: "/proc/sys", Attr: wire.ReadOnly`, `Source: "/proc/sys", Target: "/proc/sys", Attr: 0`}}},
	{control: "few devices", fail: []string{"TestDevHoldsOnlyHarmlessNodes"}, edits: []edit{
		{"pkg/rootfs/layers.go", `var deviceNames = []string{"null",`, `var deviceNames = []string{"kmsg", "null",`}}},
	{control: "rlimits", fail: []string{"TestRlimits"}, edits: []edit{
		{"pkg/boxinit/child.go", `c.Rlimit("rlimits", int(r.Resource), r.Soft, r.Hard)`, "_ = r"}}},
	{control: "capabilities of the program", fail: []string{"TestNoCapabilityInAnySet"}, edits: []edit{
		{"pkg/boxinit/child.go", `	c.ClearCaps("capabilities")
`, ""}}},
	{control: "bounding set", fail: []string{"TestNoCapabilityInAnySet"}, edits: []edit{
		{"pkg/boxinit/child.go", "for i := range uintptr(lastCap + 1) {", "for i := range uintptr(0) {"}}},
	{control: "no_new_privs", fail: []string{"TestNoCapabilityInAnySet"}, edits: []edit{
		// The filter then needs a capability, so the capabilities stay as well.
		{"pkg/boxinit/child.go", `	c.Add("no_new_privs", unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
`, ""}, {"pkg/boxinit/child.go", `	c.ClearCaps("capabilities")
`, ""}}},
	{control: "pids limit", fail: []string{"TestForkBombIsStopped"}, edits: []edit{
		{"pkg/plan/limits.go", "MemoryMax: l.Memory, PidsMax: l.Pids,", "MemoryMax: l.Memory, PidsMax: 30000,"},
		{"pkg/boxinit/child.go", `c.Rlimit("rlimits", int(r.Resource), r.Soft, r.Hard)`, "_ = r"}}},
	{control: "memory limit", fail: []string{"TestMemoryOfTheTreeIsStopped"}, edits: []edit{
		{"pkg/plan/limits.go", "MemoryMax: l.Memory,", "MemoryMax: 1 << 30,"},
		{"pkg/launch/watchdog.go", "w.memory(t, l) > w.box.MemoryMax", "w.memory(t, l) < 0"}}},
	{control: "refusal instead of silent degrading", fail: []string{"TestNothingDegradesInSilence"}, edits: []edit{
		{"pkg/sandbox/runner.go", "	allow := map[string]bool{}\n", "	allow := map[string]bool{\"memory\": true, \"cpu\": true, \"pids\": true}\n"}}},
	{control: "environment", fail: []string{"TestCallersEnvironmentIsNotPassed"}, edits: []edit{
		{"pkg/sandbox/runner.go", "Env: p.Program.Env,", "Env: append(os.Environ(), p.Program.Env...),"}}},
	{control: "environment of init", fail: []string{"TestInitsEnvironmentIsOurs"}, edits: []edit{
		{"pkg/launch/spawn.go", `Env:    []string{"GOMAXPROCS=1"},`, "Env:    os.Environ(),"}}},
	{control: "descriptors closed", fail: []string{"TestCallersDescriptorsAreClosed"}, edits: []edit{
		{"pkg/boxinit/child.go", `	c.Add("close descriptors", unix.SYS_CLOSE_RANGE, 3, uintptr(^uint32(0)), how)
`, "	_ = how\n"}, {"pkg/boxinit/steps.go", "return unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)", "return nil"},
		{"pkg/launch/spawn.go", `	c.Add("seal descriptors", unix.SYS_CLOSE_RANGE, boxinit.ControlFD+1, uintptr(^uint32(0)), unix.CLOSE_RANGE_CLOEXEC)
`, ""}}},
	{control: "program not from proc's magic links", fail: []string{"TestHostBinaryCannotBeWritten"}, edits: []edit{
		{"pkg/boxinit/child.go", "if err := refuseOwnExe(b.cfg.Paths); err != nil {", "if err := refuseOwnExe(nil); err != nil {"}, noLandlock}},
	{control: "links not followed by collection", fail: []string{"TestHostileArtefacts"}, edits: []edit{
		{"pkg/artifacts/walk.go", "	case typeSymlink:\n		c.link(pin, a)", "	case typeSymlink:\n		unix.Symlinkat(\"/etc/passwd\", dst, name)"}}},
	{control: "locked files unlocked", pkg: "cli", fail: []string{"TestOutLocked"}, edits: []edit{
		{"pkg/artifacts/pin.go", "st.Mode&bits == bits {", "true {"}}},
	{control: "streams are pipes", fail: []string{"TestStreamsAreNotTheCallersOwn"}, edits: []edit{
		{"pkg/launch/pipes.go", "			*num = b.AddFD(p[1], \"pipe\")\n", "			*num = b.AddFD(p[1], \"pipe\")\n			if f, ok := b.Stdout.(*os.File); ok && i == 1 {\n				n, _ := unix.Dup(int(f.Fd()))\n				*num = b.AddFD(n, \"caller's\")\n			}\n"}}},
	{control: "terminal of the sandbox's own", pkg: "tty", fail: []string{"TestTerminalInside", "TestCallersTerminalIsNotInside"}, edits: []edit{
		{"pkg/launch/pipes.go", "		b.Config.Stdin, b.Config.Stdout, b.Config.Stderr = wire.NoFD, wire.NoFD, wire.NoFD\n",
			"		b.Config.Terminal = false\n		n, _ := unix.Dup(0)\n		host := b.AddFD(n, \"caller's\")\n		b.Config.Stdin, b.Config.Stdout, b.Config.Stderr = host, host, host\n"}}},
	{control: "controlling terminal", pkg: "tty", fail: []string{"TestTerminalInside", "TestKeys", "TestResize"}, edits: []edit{
		{"pkg/boxinit/child.go", `		c.Add("controlling terminal", unix.SYS_IOCTL, 0, unix.TIOCSCTTY, 0)
`, ""}}},
	{control: "terminal given back", pkg: "tty", fail: []string{"TestTerminalIsRestored"}, edits: []edit{
		{"cmd/sandglass/tty.go", "		set(t.in, &t.was)\n", ""}}},
	{control: "terminal has answered", pkg: "tty", fail: []string{"TestAnswersAfterTheEnd", "TestTerminalIsTakenBack"}, edits: []edit{
		{"cmd/sandglass/tty.go", "		t.hush()\n", ""}}},
	{control: "guard of the terminal", pkg: "tty", fail: []string{"TestTerminalIsRestoredAfterSIGKILL"}, edits: []edit{
		{"cmd/sandglass/guard.go", "		set(0, &s.Was)\n", ""}}},
	{control: "terminal does not block", pkg: "tty", fail: []string{"TestFlood", "TestTerminalLetGo"}, edits: []edit{
		{"pkg/launch/tty.go", "	go s.out.run()\n", "	s.out.run()\n"}}},
	{control: "working directory resolved inside", fail: []string{"TestWorkingDirectoryStaysInside"}, edits: []edit{
		{"pkg/boxinit/steps.go", "unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}\n	fd, err", "unix.O_CLOEXEC}\n	fd, err"},
		{"pkg/boxinit/steps.go", "return unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)", "return nil"},
		{"pkg/launch/spawn.go", `	c.Add("seal descriptors", unix.SYS_CLOSE_RANGE, boxinit.ControlFD+1, uintptr(^uint32(0)), unix.CLOSE_RANGE_CLOEXEC)
`, ""}}},
	{control: "names from files alone", fail: []string{"TestNamesDoNotResolve"}, edits: []edit{
		{"pkg/rootfs/etc.go", `p.file("/etc/resolv.conf", resolv)`, `p.file("/etc/resolv.conf", resolv+"nameserver 127.0.0.1\n")`},
		{"pkg/rootfs/etc.go", `p.file("/etc/hosts", etcfiles.Hosts)`, `p.file("/etc/hosts", "127.0.0.1 localhost test.example.org\n")`}}},
	{control: "id of what lives kept", pkg: "pkg/sandbox", fail: []string{"TestIDOfWhatLivesIsKept"}, edits: []edit{
		{"pkg/sandbox/runner.go", "if r.id != nil && !(r.end != nil && r.end.Lives) {", "if r.id != nil {"}}},
	{control: "group removed", pkg: "leftovers", fail: []string{"TestNothingIsLeftAfterAnyEnd"}, edits: []edit{
		{"pkg/sandbox/runner.go", "if err := r.group.Close(); err != nil", "if err := error(nil); err != nil"}}},
	{control: "group swept", pkg: "leftovers", fail: []string{"TestSupervisorKilled", "TestKilledAtEveryCall"}, edits: []edit{
		{"pkg/cgroup/sweep.go", "		case isRun(e.Name()):\n", "		case false && isRun(e.Name()):\n"},
		{"pkg/cgroup/sweep.go", "			if isRun(name) {\n", "			if false && isRun(name) {\n"}}},
	{control: "mounts that have changed read again", pkg: "pkg/launch", fail: []string{"TestMountsThatChangeAreSeen"}, edits: []edit{
		{"pkg/launch/ahead.go", "bytes.Equal(rb.mounts, held)", "bytes.Equal(held, held)"}}},
	{control: "in the mount namespace of its clone", pkg: "pkg/launch", fail: []string{"TestMountsThatChangeAreSeen"}, edits: []edit{
		{"pkg/launch/ahead.go", "	if inode != s.namespaces[\"mnt\"] {\n", "	if false {\n"}}},
	{control: "lock of a live run", pkg: "leftovers", fail: []string{"TestSweepRemovesTheDeadAlone", "TestNothingIsLeftOfManyAtOnce"}, edits: []edit{
		// The runs hold none, and not: the sweep looks at none. That would end the
		// runs of everybody on this host.
		{"pkg/cgroup/dir.go", "			if err = lock(d); err == nil {\n", "			if err = lock(d); err == nil {\n				unix.Flock(d.fd, unix.LOCK_UN)\n"}}},
	{control: "errors of the set-up", pkg: "leftovers", fail: []string{"TestEveryFailedCall"}, edits: []edit{
		{"pkg/boxinit/quota.go", "		if err == unix.ENOENT {\n", "		if err == unix.ENOENT || err == unix.EPERM {\n"}}},
	{control: "death with the supervisor", pkg: "leftovers", fail: []string{"TestSupervisorKilled"}, edits: []edit{
		{"pkg/boxinit/steps.go", `		{"die with the supervisor", dieWithSupervisor},
`, ""}, {"pkg/boxinit/wait.go", "	wire.ReadFrameWithFiles(control, 0, 0)\n	os.Exit(1)", "	wire.ReadFrameWithFiles(control, 0, 0)\n	select {}"}}},
	{control: "mount points only in our own root", pkg: "leftovers", fail: []string{"TestNothingIsMadeInMountedDirectories"}, edits: []edit{
		{"pkg/rootfs/view.go", "Open: true, IDMap: true}, wire.ReadOnly)", "Open: true, IDMap: true}, 0)"}}},
	{control: "SIGPIPE of the supervisor ignored", pkg: "leftovers", fail: []string{"TestNothingIsLeftWhenTheReaderGoes"}, edits: []edit{
		{"cmd/sandglass/signals.go", "	signal.Ignore(syscall.SIGPIPE)\n", ""}}},
	{control: "signals of the caller", pkg: "leftovers", fail: []string{"TestNothingIsLeftAfterASignal"}, edits: []edit{
		{"cmd/sandglass/signals.go", "[]os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}", "[]os.Signal{syscall.SIGINT}"}}},
	{control: "ordinary priority", fail: []string{"TestPriorityOfTheCallerIsNotInherited"}, edits: []edit{
		{"pkg/boxinit/steps.go", `		{"ordinary priority", ordinaryPriority},
`, ""}}},
	{control: "quotas of the user namespace", fail: []string{"TestKernelQuotasOfTheUser"}, edits: []edit{
		{"pkg/boxinit/quota.go", "for _, q := range quotas(b.cfg.CgroupNS) {", "for _, q := range quotas(b.cfg.CgroupNS)[:0] {"}}},
	{control: "rlimits of signals and queues", fail: []string{"TestKernelQuotasOfTheUser"}, edits: []edit{
		{"pkg/plan/limits.go", "	maxSignals = 512\n	maxQueues  = 256 << 10\n", "	maxSignals = 1024\n	maxQueues  = 512 << 10\n"}}},
	{control: "terminals", fail: []string{"TestKernelQuotasOfTheUser"}, edits: []edit{
		{"pkg/rootfs/layers.go", `const ptys = "64"`, `const ptys = "640"`}}},
	{control: "no terminals", fail: []string{"TestNoTerminalWithoutBeingAskedFor"}, edits: []edit{
		{"pkg/rootfs/layers.go", "	if p.in.terminals() {\n		p.terminals()\n	}\n", "	p.in.Pty = true\n	p.terminals()\n"}, {"pkg/rootfs/layers.go", "	if p.in.Pty {\n		p.link(", "	{\n		p.link("},
		{"pkg/rootfs/view.go", "if p.in.terminals() {", "{"}}},
	{control: "devices read-only", fail: []string{"TestDevicesOfTheHostAreNotTouched"}, edits: []edit{
		{"pkg/rootfs/layers.go", "Attr: wire.NoSuid | wire.ReadOnly})", "Attr: wire.NoSuid})"}}},
	{control: "owner of the user namespace", fail: []string{"TestKernelQuotasAreChargedToTheSandbox"}, edits: []edit{
		{"pkg/launch/spawn.go", "	p.Owner = id.owner()\n", ""}}},
	{control: "no handler left in init", fail: []string{"TestInitCatchesNoSignal"}, edits: []edit{
		{"pkg/boxinit/steps.go", "return sys.IgnorePerThread()", "return nil"}}},
	{control: "socket buffers on cgroup v1", pkg: "limits", fail: []string{"TestSocketBuffers"}, edits: []edit{
		{"pkg/cgroup/v1.go", "if c := g.socketsV1(d); c != nil {", "if c := (*cause)(nil); c != nil {"}}},
	{control: "descriptors seen by the watchdog", pkg: "limits", fail: []string{"TestMemoryKinds", "TestMemoryHidden"}, edits: []edit{
		{"pkg/launch/memory.go", "files, open := t.files(&p, seen, l)", "files, open := int64(0), seen != nil"}}},
	{control: "page tables seen by the watchdog", pkg: "limits", fail: []string{"TestMemoryKinds"}, edits: []edit{
		{"pkg/launch/memory.go", "own: v[0] + v[1] + v[3], shared", "own: v[0], shared"}, {"pkg/launch/memory.go", "own: v[0] + v[2] + tables[0], shared", "own: v[0] + 0*tables[0], shared"}}},
	{control: "each thread seen by the watchdog", pkg: "limits", fail: []string{"TestThreadsWithoutTheFirst", "TestThreadsInARelay"}, edits: []edit{
		{"pkg/launch/memory.go", "		for _, task := range p.tasks {\n			if u", "		for _, task := range []int{p.pid} {\n			if u"},
		{"pkg/launch/memory.go", "		if last || len(p.tasks) == 0 {", "		if last || true {"}}},
	{control: "descriptors of each thread seen by the watchdog", pkg: "limits", fail: []string{"TestThreadWithDescriptorsOfItsOwn"}, edits: []edit{
		{"pkg/launch/tree.go", "if looked != 0 && l.same(looked, task, kcmpFiles) {", "if looked != 0 {"}}},
	{control: "what no cgroup is charged for", pkg: "limits", fail: []string{"TestMemoryThatNoCgroupCounts"}, edits: []edit{
		{"pkg/sandbox/runner.go", "b.UnchargedMax = s.Limits.Memory", "b.UnchargedMax = 0"},
		{"pkg/launch/memory.go", "h.kernel = sockets + locks", "h.kernel = 0 * (sockets + locks)"}}},
	{control: "tables of TCP where its count would pass the limit", pkg: "pkg/launch", fail: []string{"TestTCPIsBounded"}, edits: []edit{
		{"pkg/launch/sockstat.go", "return (c.pages+unseen)*", "return 0*(c.pages+unseen)*"}}},
	{control: "sockets that are in no table", pkg: "limits", fail: []string{"TestMemoryThatNoCgroupCounts"}, edits: []edit{
		{"pkg/launch/unlisted.go", "return n*unfinished + ", "return 0*n + 0*"}}},
	{control: "connections that were reset and are in no table", pkg: "limits", fail: []string{"TestMemoryThatNoCgroupCounts"}, edits: []edit{
		{"pkg/launch/unlisted.go", "return max(listed, most)", "return listed + 0*most"}}},
	{control: "all that was sent", pkg: "limits", fail: []string{"TestMemoryThatNoCgroupCounts"}, edits: []edit{
		{"pkg/launch/unlisted.go", "most += n * c.each", "most += n * 0 * c.each"}}},
	{control: "no more than was sent", pkg: "pkg/launch", fail: []string{"TestSentIn"}, edits: []edit{
		{"pkg/launch/unlisted.go", "min(n*received().most(), sentIn(dir))", "min(n*received().most(), max(sentIn(dir), 1<<60))"}}},
	{control: "time that a look itself takes", pkg: "pkg/launch", fail: []string{"TestTooLong", "TestLookAtWork", "TestExactSumHasAThread"}, edits: []edit{
		{"pkg/launch/memory.go", "	l.take()\n", ""},
		{"pkg/launch/patience.go", "if wall >= l.wait || wall >= l.look && own >= l.look/ownShare {", "if wall < 0 {"}}},
	{control: "time that one call of a look takes", pkg: "pkg/launch", fail: []string{"TestOneCallHasAThread"}, edits: []edit{
		{"pkg/launch/memory.go", "	l.during(func() { yes = kcmp(a, b, what) })\n	return yes\n", "	return kcmp(a, b, what)\n"}}},
	{control: "descriptors on their way", pkg: "limits", fail: []string{"TestDescriptorsOnTheirWay"}, edits: []edit{
		{"pkg/plan/limits.go", "own.Max-spareFiles)", "own.Max)"}}},
	{control: "signals of init can be queued", fail: []string{"TestNoSignalToBeQueued"}, edits: []edit{
		{"pkg/boxinit/steps.go", "	err := sys.CanReachThreads()\n", "	err := error(nil)\n"}}},
	{control: "links followed only where no program makes them", fail: []string{"TestPlantedLinkIsNoDestination"}, edits: []edit{
		{"pkg/policy/danger.go", "	_, bad := DangerousWrite(dir, s.Home)\n	return bad\n", "	return true\n"}}},
	{control: "reach by what a directory is", fail: []string{"TestResultsAreOutOfTheProgramsReach"}, edits: []edit{
		{"pkg/hostpath/reach.go", "	if r.Empty() {\n", "	if true {\n"}}},
	{control: "result as a new file", fail: []string{"TestResultIsWrittenAnew"}, edits: []edit{
		{"pkg/hostpath/replace.go", "		if closed != nil {\n", "		if true {\n"}}},
	{control: "image judged", fail: []string{"TestImageThatIsALink"}, edits: []edit{
		{"pkg/plan/paths.go", `real, err := b.judge("image", path, false)`, "real, err := filepath.EvalSymlinks(path)"}}},
	{control: "sources judged without links", fail: []string{"TestPlantedLinkIsNotRead"}, edits: []edit{
		{"pkg/plan/paths.go", "if err := s.CheckSource(real, write); err != nil {", "if err := s.CheckSource(path, write); err != nil {"},
		{"pkg/policy/finish.go", "if e := s.danger(real, false); e != nil {", "if e := s.danger(abs, false); e != nil {"}}},
	{control: "links out of a writable mount", fail: []string{"TestPlantedLinkIsNotRead"}, edits: []edit{
		{"pkg/policy/validate_mounts.go", "		if !m.Write {\n			continue\n", "		if true {\n			continue\n"}}},
	{control: "links to profiles", pkg: "cli", fail: []string{"TestProfileFollowsNoLink"}, edits: []edit{
		{"cmd/sandglass/profile.go", "hostpath.Walk(abs, s.MayFollow)", "filepath.EvalSymlinks(abs)"}}},
	{control: "program by its path is a file", fail: []string{"TestProgramByALinkIsAFile"}, edits: []edit{
		{"pkg/runtimes/finder.go", `if found.Prefix == "" || found.FileOnly ||`, `if true || found.Prefix == "" || found.FileOnly ||`}}},
	{control: "a script brings nothing", fail: []string{"TestScriptBringsNoDirectory"}, edits: []edit{
		{"pkg/plan/runtimes.go", "found, err := b.finder.ForScript(name)", "found, err := b.finder.Find(name)"}}},
	{control: "a virtual environment brings no other", fail: []string{"TestScriptBringsNoDirectory"}, edits: []edit{
		{"pkg/runtimes/venv.go", "err != nil || !f.onPath(real) {", `err != nil || real == "" {`}}},
	{control: "names quoted in lines of ours", fail: []string{"TestNamesDoNotForgeLines"}, edits: []edit{
		{"internal/refusal/quote.go", "func Word(s string) string {\n", "func Word(s string) string {\n	if s != \"\" {\n		return s\n	}\n"}}},
	{control: "process group of its own", fail: []string{"TestProcessGroupOfTheCaller"}, edits: []edit{
		{"pkg/boxinit/child.go", `	c.Add("new session", unix.SYS_SETSID)
`, ""}, {"pkg/launch/spawn.go", `	c.Add("new session", unix.SYS_SETSID)
`, ""}, noLandlock}},
	{control: "no borrowed rights", fail: []string{"TestBorrowedRightsAreRefused"}, edits: []edit{
		{"pkg/sandbox/caller.go", "	switch {\n", "	switch {\n	case true:\n"}}},
	{control: "device nodes looked at", fail: []string{"TestDevicesOfTheHostAreLookedAt"}, edits: []edit{
		{"pkg/rootfs/layers.go", "		err = errNoDevice\n", "		err = nil\n"}}},
	{control: "nothing started on the host", fail: []string{"TestNothingOfTheProgramsRunsOnTheHost"}, edits: []edit{
		{"pkg/runtimes/shims.go", "import (\n", "import (\n	\"os/exec\"\n"},
		{"pkg/runtimes/shims.go", `	return "", skip(quote(path) + " is a script of an unknown kind")`, `	exec.Command(path).Run()
	return "", skip(quote(path) + " is a script of an unknown kind")`}}},
	{control: "sandboxes can be killed", pkg: "doctor", fail: []string{"TestNoKillByPidfd"}, edits: []edit{
		{"pkg/launch/spawn.go", "	if err = reachable(in.pidfd); err != nil {\n", "	if err := reachable(in.pidfd); false {\n"}}},
	{control: "what no flag mends comes first", pkg: "doctor", fail: []string{"TestNothingToBeHad"}, edits: []edit{
		{"pkg/sandbox/runner.go", "	if e := r.init.Failed(); e != nil {\n", "	if e := r.init.Failed(); false {\n"}}},
	{control: "proc of this PID namespace", pkg: "doctor", fail: []string{"TestForeignProc"}, edits: []edit{
		{"pkg/sandbox/sandbox.go", "	if err := causes.Proc(); err != nil {\n", "	if err := causes.Proc(); false {\n"}}},
	{control: "weaker means said", pkg: "limits", fail: []string{"TestWeakerPids"}, edits: []edit{
		{"pkg/sandbox/fill.go", "l.Weaker = result.Weaker(name)", "l.Weaker = \"\""}}},
	{control: "CPU time of the dead seen by the watchdog", pkg: "limits", fail: []string{"TestCPUTimeWays"}, edits: []edit{
		{"pkg/launch/tree.go", "		sum += n.own + n.waited\n", "		sum += n.own\n"}}},
	{control: "CPU limit", pkg: "limits", fail: []string{"TestNeighbourKeepsItsShare"}, edits: []edit{
		{"pkg/plan/limits.go", "CPUQuotaUS: l.MilliCPU * cpuPeriodUS / 1000, CPUPeriodUS: cpuPeriodUS,", ""}}},
	{control: "crowds made nice", pkg: "limits", fail: []string{"TestCrowdIsNice"}, edits: []edit{
		{"pkg/sandbox/runner.go", "		b.FreeCPUs = ", "		b.FreeCPUs = 0 * "}}},
	{control: "scratch", pkg: "limits", fail: []string{"TestWritableMountsAreBounded"}, edits: []edit{
		{"pkg/mount/mounts.go", `opts = append(opts, option{"nr_inodes", decimal(o.Inodes)})`, "_ = opts"}}},
	{control: "file size limit", pkg: "limits", fail: []string{"TestFileSizeWays"}, edits: []edit{
		{"pkg/plan/limits.go", "		rlimit(unix.RLIMIT_FSIZE, l.MaxFileSize()),\n", ""}}},
	{control: "output counted", pkg: "limits", fail: []string{"TestOutputWays"}, edits: []edit{
		{"pkg/launch/output.go", "	p.count.Bytes += n\n", ""}}},
	{control: "flood dropped uncopied", pkg: "limits", fail: []string{"TestOutputFloodOfPages"}, edits: []edit{
		{"pkg/launch/output.go", "os.OpenFile(os.DevNull, os.O_WRONLY, 0); err == nil", "os.OpenFile(os.DevNull, os.O_WRONLY, 0); err != nil"}}},
	{control: "stuck reader given up", pkg: "limits", fail: []string{"TestReaderIsStuck"}, edits: []edit{
		{"pkg/launch/output.go", "		if left <= 0 {", "		if false {"}}},
	{control: "stuck reader of the result given up", pkg: "limits", fail: []string{"TestReaderOfTheResultIsStuck"}, edits: []edit{
		{"internal/deliver/deliver.go", "		case <-w.timer.C:\n", "		case <-make(chan int):\n"}}},
	{control: "result written as it is made", pkg: "limits", fail: []string{"TestResultCostsNoMemory"}, edits: []edit{
		{"pkg/result/encode.go", "most := int64(64 << 10) ", "r.Stdout.Kept += 512 << 20; most := int64(512 << 20) "}}},
	{control: "room waited for", pkg: "limits", fail: []string{"TestReaderOfANonBlockingPipe"}, edits: []edit{
		{"internal/deliver/deliver.go", "!errors.Is(err, unix.EAGAIN)", "true"}}},
	{control: "io limit", pkg: "limits", fail: []string{"TestIOThrottles"}, edits: []edit{
		{"pkg/plan/limits.go", "for _, io := range l.IO {", "for _, io := range l.IO[:0] {"}}},
	{control: "open files", pkg: "limits", fail: []string{"TestOpenFilesOfTheTree"}, edits: []edit{
		{"pkg/plan/limits.go", "		openFiles(l.OpenFiles),\n", "		rlimit(unix.RLIMIT_NOFILE, 1024),\n"}}},
	{control: "rest of proc masked", pkg: "twohosts", fail: []string{"TestTwoHosts"}, edits: []edit{
		{"pkg/rootfs/proc.go", "	p.add(wire.Op{Kind: wire.OpRest,", "	_ = (wire.Op{Kind: wire.OpRest,"}}},
	{control: "own umask", pkg: "twohosts", fail: []string{"TestTwoHosts"}, edits: []edit{
		{"pkg/boxinit/child.go", `	c.Add("umask", unix.SYS_UMASK, 0o022)
`, ""}}},
	{control: "CPU time of what waits", pkg: "image", fail: []string{"TestWarmImageOfNoUse"}, edits: []edit{
		{"pkg/launch/hold.go", "	return most\n", "	return time.Hour\n"}}},
	{control: "patience with output that is not taken", pkg: "pkg/sessionclient", fail: []string{"TestOutputNotTaken"}, edits: []edit{
		{"pkg/sessionclient/replies.go", "if time.Since(since) >= c.held && c.others() {", "if time.Since(since) < 0 {"}}},
	{control: "a window for each run's output", pkg: "pkg/session", fail: []string{"TestWindow", "TestWindowOfPieces", "TestWrongWindows"}, edits: []edit{
		{"pkg/session/window.go", "	if !must && (int64(n)", "	if false && (int64(n)"}}},
	{control: "windows of the Go client", pkg: "pkg/sessionclient", fail: []string{"TestWindow"}, edits: []edit{
		{"pkg/sessionclient/window.go", "	if !stream || !slices", "	if true || !slices"}}},
	{control: "own personality", fail: []string{"TestAddressesAreChosenAtRandom"}, edits: []edit{
		{"pkg/boxinit/child.go", `	c.Add("personality", unix.SYS_PERSONALITY, perLinux)
`, ""}}},
	{control: "init's personality", fail: []string{"TestPersonalityOfInit"}, edits: []edit{
		{"pkg/launch/spawn.go", `	c.Add("personality", unix.SYS_PERSONALITY, perLinux)
`, ""}}},
	{control: "cpuset joined", pkg: "twohosts", fail: []string{"TestNamesOfTheHost"}, edits: []edit{
		{"pkg/cgroup/cpuset.go", "	if c := d.set(\"cpuset.sched_load_balance\", \"0\"); c != nil {", "	if true {\n		d.tasks = -1\n		return nil\n	}\n	if c := d.set(\"cpuset.sched_load_balance\", \"0\"); c != nil {"},
		{"pkg/cgroup/v1.go", "		if d.tasks, err = openAt(d.fd, \"tasks\", unix.O_WRONLY); err != nil {", "		if ctrl == cpuset {\n		} else if d.tasks, err = openAt(d.fd, \"tasks\", unix.O_WRONLY); err != nil {"}}},
	{control: "init's own clock", pkg: "limits", fail: []string{"TestTimeoutOfAStoppedSupervisor"}, edits: []edit{
		{"pkg/boxinit/wait.go", "		if left <= 0 {\n			os.Exit(1)\n", "		if left <= 0 {\n			left = time.Hour\n"}}},
	{control: "end heard before any cause of ours", pkg: "pkg/launch", fail: []string{"TestHear"}, edits: []edit{
		{"pkg/launch/late.go", "	if s.started.IsZero() || !s.dead() {\n", "	if true {\n"}}},
	{control: "an end after its time", pkg: "limits", fail: []string{"TestEndAfterItsTime"}, edits: []edit{
		{"pkg/launch/verdict.go", "	case s.itself() && s.overdue(s.exitedAt):\n", "	case false:\n"}}},
	{control: "start heard before the set-up's end", pkg: "pkg/launch", fail: []string{"TestHearInTheLoop"}, edits: []edit{
		{"pkg/launch/late.go", "		if s.meet(); s.started", "		if s.started"}}},
	{control: "flood told whatever ended it", pkg: "pkg/launch", fail: []string{"TestHear", "TestVerdict"}, edits: []edit{
		{"pkg/launch/verdict.go", "	case s.box.OutputKill && (e.", "	case s.box.OutputKill && s.cause == \"\" && (e."}}},
	{control: "stop signals of the terminal ignored", pkg: "limits", fail: []string{"TestStopSignalsOfTheTerminal"}, edits: []edit{
		{"cmd/sandglass/signals.go", "	signal.Ignore(syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU)\n", ""}}},
	{control: "size of the sandbox in proc", pkg: "twohosts", fail: []string{"TestSizes"}, edits: []edit{
		{"pkg/rootfs/proc.go", "		p.add(wire.Op{Kind: wire.OpMask, Source: facade", "		_ = (wire.Op{Kind: wire.OpMask, Source: facade"}}},
	{control: "cpu affinity", pkg: "twohosts", fail: []string{"TestSizes"}, edits: []edit{
		{"pkg/sandbox/runner.go", "	r.cpus = cpus.Take(cpus.Count(r.spec.Limits.MilliCPU), os.Getpid()+int(serial.Load()))\n", "	r.cpus = &cpus.Set{}\n"}}},
	{control: "answers are the profile's", fail: []string{"TestExplainedRunRefusesTheSame", "TestLearningRefusesTheSame"}, edits: []edit{
		{"pkg/denials/watch.go", "	sys.RefuseNotification(w.listener, n.ID, errno)\n", "	sys.ContinueNotification(w.listener, n.ID)\n"}}},
	{control: "refusals ask", fail: []string{"TestDenialsAreTold"}, edits: []edit{
		{"pkg/denials/filter.go", "return k&actionMask == retErrno && k&errnoMask != 0", "return false"}}},
	{control: "names of programs are plain text", fail: []string{"TestDenialsAreHarmlessText"}, edits: []edit{
		{"pkg/denials/watch.go", "	return clean(b[:k-1]) // without its newline", "	return string(b[:k-1])"}}},
	{control: "names that are not listed are not asked for", pkg: "egress", fail: []string{"TestNamesCarryNothingOut", "TestNamesInside", "TestNoOtherHost"}, edits: []edit{
		{"pkg/egress/resolver/server.go", "if !ok || !s.List.AllowsAnyPort(name) {", "if !ok {"}}},
	{control: "port of the name", pkg: "egress", fail: []string{"TestNoOtherHost"}, edits: []edit{
		{"pkg/egress/relay/conn.go", "if c.s.cfg.List.AllowsName(name, port) {", "if true {"}}},
	{control: "address of the list", pkg: "egress", fail: []string{"TestNoOtherHost", "TestLoopbackOfTheHost"}, edits: []edit{
		{"pkg/egress/relay/conn.go", "		if c.s.cfg.List.AllowsAddr(addr, port) {", "		if true {"},
		{"pkg/egress/relay/dial.go", "	if c.s.cfg.List.AllowsAddr(a, c.dest.Port()) {", "	if true {"}}},
	{control: "bound of names below wildcards", pkg: "egress", fail: []string{"TestNamesCarryNothingOut"}, edits: []edit{
		{"pkg/egress/resolver/bounds.go", "maxBelow = 100 ", "maxBelow = 1 << 20 "},
		{"pkg/egress/resolver/bounds.go", "maxData  = 2048", "maxData  = 1 << 20"}}},
	{control: "addresses that are public", pkg: "egress", fail: []string{"TestPrivateAddressesAreNotDialled"}, edits: []edit{
		{"pkg/egress/relay/dial.go", "	if bad := reach.Refused(a); bad != \"\" {", "	if bad := reach.Refused(a); false {"}}},
	{control: "addresses of other hosts", pkg: "egress", fail: []string{"TestPrivateAddressesAreNotDialled"}, edits: []edit{
		{"pkg/egress/relay/dial.go", "	return route.Refused(a)\n", "	_ = route.Refused\n	return \"\"\n"}}},
	{control: "reset from a killed supervisor", pkg: "egress", fail: []string{"TestKilledSupervisor"}, edits: []edit{
		{"pkg/egress/relay/conn.go", "	out.SetLinger(0)\n", ""}}},
	{control: "server name in the hello", pkg: "egress", fail: []string{"TestServerName", "TestServerNameByPort"}, edits: []edit{
		{"pkg/egress/relay/greeting.go", "if done && !strings.EqualFold(name, c.name) {", "if false && !strings.EqualFold(name, c.name) {"}}},
	{control: "pace of questions", pkg: "egress", fail: []string{"TestFloodOfNames"}, edits: []edit{
		{"pkg/egress/resolver/bounds.go", "perWindow = 100\n", "perWindow = 1 << 30\n"}}},
	{control: "connections at once", pkg: "egress", fail: []string{"TestConnectionsAtOnce", "TestFloodOfConnections"}, edits: []edit{
		{"pkg/egress/relay/relay.go", "make(chan struct{}, cfg.Limits.Open)", "make(chan struct{}, 1<<16)"}}},
	{control: "connections in all", pkg: "egress", fail: []string{"TestConnectionsInAll"}, edits: []edit{
		{"pkg/egress/relay/relay.go", "	if s.total++; s.total == s.cfg.Limits.Total {", "	if s.total++; false {"},
		{"pkg/egress/relay/relay.go", "	if s.total >= s.cfg.Limits.Total {", "	if false {"}}},
	{control: "attempts counted", pkg: "egress", fail: []string{"TestAttemptsCount"}, edits: []edit{
		{"pkg/egress/relay/dial.go", "race(ctx, order, c.s.count, ", "race(ctx, order, func() bool { return true }, "}}},
	{control: "bytes of the run", pkg: "egress", fail: []string{"TestBytesUp", "TestBytesDown"}, edits: []edit{
		{"pkg/egress/relay/budget.go", "		got := min(int64(n), left)\n", "		got := int64(n)\n"}}},
	{control: "rate", pkg: "egress", fail: []string{"TestRate"}, edits: []edit{
		{"pkg/egress/relay/budget.go", "	d := b.reserve(n, time.Now())\n", "	d := min(b.reserve(n, time.Now()), 0)\n"}}},
	{control: "idle connections cut", pkg: "egress", fail: []string{"TestIdle"}, edits: []edit{
		{"pkg/egress/relay/conn.go", "		c.cut(result.Idle, nil)\n", ""}}},
	{control: "image paths upwards", pkg: unpacked, fail: []string{"TestHostileEntries"}, edits: []edit{
		{"pkg/image/tree/tree.go", "		case p == \"..\":\n			return", "		case false:\n			return"}}},
	{control: "image hard links within the archive", pkg: unpacked, fail: []string{"TestHostileEntries", "TestLayersOverEachOther"}, edits: []edit{
		{"pkg/image/tree/tree.go", "	if old == nil {\n		return refusal", "	if old == nil && len(parts) > 0 {\n		return t.Put(name, Node{Kind: Link, Target: target})\n	}\n	if old == nil {\n		return refusal"}}},
	{control: "image links followed in the tree", pkg: unpacked, fail: []string{"TestHostileEntries"}, edits: []edit{
		{"pkg/image/tree/tree.go", "			if strings.HasPrefix(next.Target, \"/\") {\n				at = at[:1]\n			}\n", ""}}},
	{control: "image whiteouts of lower layers alone", pkg: unpacked, fail: []string{"TestLayersOverEachOther"}, edits: []edit{
		{"pkg/image/tree/tree.go", "	if n.layer < t.layer && len(n.children) == 0 {", "	if len(n.children) == 0 {"}}},
	{control: "image refused leaves nothing", pkg: "image", fail: []string{"TestRefusedImportLeavesNothing"}, edits: []edit{
		{"pkg/image/store/work.go", "		err = removeAll(w.temp, w.name)\n	}\n", "	}\n"}}},
	{control: "image that is stopped is taken away", pkg: "image", fail: []string{"TestStoppedAtEveryStep", "TestBuildIsStopped"}, edits: []edit{
		{"pkg/image/store/stop.go", "		s.work.vanish()\n", ""}}},
	{control: "programs of a build end with it", pkg: "image", fail: []string{"TestBuildIsStopped"}, edits: []edit{
		{"pkg/image/child/child.go", "{ _ = unix.Kill(-pid, unix.SIGTERM) }", "{}"}, {"pkg/image/child/child.go", "{ _ = unix.Kill(-pid, unix.SIGKILL) }", "{}"},
		{"pkg/image/child/guard.go", "		ending.Store(true)\n		killChildren()\n	}()", "	}()"}}},
	{control: "who is deaf to a build's signal ends with it", pkg: "pkg/image/child", fail: []string{"TestStopLeavesNobody"}, edits: []edit{
		{"pkg/image/child/child.go", "{ask, byGuard, kill}", "{ask, kill}"}}},
	{control: "downloads leave room on the disk", pkg: "image", fail: []string{"TestDownloadsLeaveRoom"}, edits: []edit{
		{"pkg/image/apt/watch.go", "	if err := store.Room(fd, \"a build\"); err != nil {", "	if err := store.Room(fd, \"a build\"); false {"}}},
	{control: "image leaves room on the disk", pkg: "image", fail: []string{"TestImportLeavesRoom"}, edits: []edit{
		{"pkg/image/store/room.go", "	if more < 0 {", "	if more < -1<<60 {"}}},
	{control: "image files counted", pkg: unpacked, fail: []string{"TestBombs"}, edits: []edit{
		{"pkg/image/tree/tree.go", "if t.nodes++; t.nodes > t.bounds.Nodes {", "if t.nodes++; false {"}}},
	{control: "image names counted", pkg: unpacked, fail: []string{"TestHostileEntries", "TestHostileImages"}, edits: []edit{
		{"pkg/image/unpack/files.go", "text/tree.PerNode > u.limits.Files {", "false {"},
		{"pkg/image/tree/tree.go", "t.text/PerNode > t.bounds.Nodes {", "false {"}}},
	{control: "image lookups counted", pkg: unpacked, fail: []string{"TestHostileEntries"}, edits: []edit{
		{"pkg/image/tree/tree.go", "		if steps > maxSteps {", "		if false {"}}},
	{control: "image bytes counted before they are read", pkg: unpacked, fail: []string{"TestBombs", "TestFolder"}, edits: []edit{
		{"pkg/image/unpack/layer.go", "	if err := u.bounds(u.content, 0); err != nil {", "	if err := u.bounds(0, 0); err != nil {"}}},
	{control: "image compared with the size of its archive", pkg: unpacked, fail: []string{"TestBombs"}, edits: []edit{
		{"pkg/image/unpack/stream.go", "if bytes > ratioFloor+extra/8 && bytes/u.limits.Ratio > u.packed {", "if false {"}}},
	{control: "image settings bounded", pkg: unpacked, fail: []string{"TestHostileImages"}, edits: []edit{
		{"pkg/image/unpack/files.go", "	if p.Size() > u.limits.Config {", "	if false {"}}},
	{control: "image values counted", pkg: unpacked, fail: []string{"TestHostileImages"}, edits: []edit{
		{"pkg/image/unpack/files.go", "; values > maxValues {", "; values < 0 {"}}},
	{control: "image padding bounded", pkg: unpacked, fail: []string{"TestCutOffAndAppended"}, edits: []edit{
		{"pkg/image/unpack/stream.go", "		if m.zeros > maxPadding {", "		if m.zeros > maxPadding<<10 {"}}},
	{control: "image digests of documents", pkg: unpacked, fail: []string{"TestHostileImages"}, edits: []edit{
		{"pkg/image/unpack/files.go", "if digest != \"\" && image.Digest(text) != digest {", "if false {"}}},
	{control: "image digests of layers", pkg: "image", fail: []string{"TestRefusedImportLeavesNothing"}, edits: []edit{
		{"pkg/image/unpack/layer.go", "if want.Digest != \"\" && got.Digest != want.Digest {", "if false {"}}},
	{control: "image archives whole", pkg: unpacked, fail: []string{"TestCutOffAndAppended"}, edits: []edit{
		{"pkg/image/unpack/stream.go", "	if m.zeros < 1024 {", "	if false {"}}},
	{control: "image archives end at their end", pkg: unpacked, fail: []string{"TestCutOffAndAppended"}, edits: []edit{
		{"pkg/image/unpack/stream.go", "		if m.zeros < int64(n) {", "		if m.zeros < int64(n)-1<<40 {"}}},
	{control: "image modes without power", pkg: "image", fail: []string{"TestImageKeepsEveryRule"}, edits: []edit{
		{"pkg/image/tree/tree.go", "	mode := n.Mode & 0o777\n", "	mode := n.Mode & 0o7777\n"}}},
	{control: "names of an imported image", pkg: "image", fail: []string{"TestImageKeepsEveryRule"}, edits: []edit{
		{"pkg/rootfs/etc.go", "} else if p.in.Imported || p.in.Network {", "} else if p.in.Network {"}}},
	{control: "image store out of reach", pkg: "image", fail: []string{"TestStoreIsNeverWritable"}, edits: []edit{
		{"pkg/plan/image.go", "if err := b.storeOutOfReach(s); err != nil {", "if err := error(nil); err != nil {"}}},
	{control: "image kept while it is run", pkg: "image", fail: []string{"TestImageInUse"}, edits: []edit{
		{"pkg/plan/image.go", "	b.plan.keep(img.Lock)\n", "	img.Close()\n"}}},
	{control: "image store of this user alone", pkg: "pkg/image/store", fail: []string{"TestForeignStore"}, edits: []edit{
		{"pkg/image/store.go", "	case int(st.Uid) != os.Geteuid():", "	case false:"},
		{"pkg/image/store.go", "	case st.Mode&0o022 != 0:", "	case false:"}}},
	{control: "image store in nobody else's directory", pkg: "image", fail: []string{"TestForeignPathToTheStore"}, edits: []edit{
		{"pkg/image/store.go", "		if !safe(dir) {", "		if false {"}}},
	{control: "image store by nobody else's link", pkg: "image", fail: []string{"TestForeignPathToTheStore"}, edits: []edit{
		{"pkg/image/store.go", "hostpath.Walk(at, safe)", "filepath.EvalSymlinks(at)"},
		{"pkg/image/store.go", "	\"path\"\n", "	\"path\"\n	\"path/filepath\"\n"}}},
	{control: "image work of the living kept", pkg: "pkg/image/store", fail: []string{"TestKilledAndLiveImports"}, edits: []edit{
		{"pkg/image/store/work.go", "		if image.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) == nil {", "		if true {"}}},
	{control: "image removed names first", pkg: "image", fail: []string{"TestKilledAtEveryStep"}, edits: []edit{
		{"pkg/image/store/remove.go", "	// First the names: whoever kills this leaves none that means nothing.\n", "	gone, err := detach(s, id)\n	if err != nil {\n		return \"\", err\n	}\n"},
		{"pkg/image/store/remove.go", "	gone, err := detach(s, id)\n	if err != nil {\n		return \"\", err\n	}\n	l.Close()", "	l.Close()"}}},
	{control: "image names that cannot be read kept", pkg: "pkg/image/store", fail: []string{"TestNamesThatMeanNothing"}, edits: []edit{
		{"pkg/image/store/remove.go", "case err != nil && err != image.ErrNone && err != image.ErrDigest:", "case false:"},
		{"pkg/image/store/remove.go", "case err != nil && err != unix.ENOENT && err != image.ErrDigest && err != image.ErrNone:", "case false:"}}},
	{control: "image files compared with the list", pkg: "pkg/image/store", fail: []string{"TestVerify"}, edits: []edit{
		{"pkg/image/store/verify.go", "		} else if sum != n.Sum {", "		} else if sum == \"\" {"}}},
	{control: "image content read before it is shared", pkg: "pkg/image/store", fail: []string{"TestImportRepairs"}, edits: []edit{
		{"pkg/image/store/work.go", "good = err == nil && got == sum", "good = err == nil && got != \"\" && sum != \"\""}}},
	{control: "image that is damaged made anew", pkg: "pkg/image/store", fail: []string{"TestImportRepairs"}, edits: []edit{
		{"pkg/image/store/appear.go", "err != nil || len(problems) > 0 {", "err != nil || len(problems) < 0 {"}}},
	{control: "image that is damaged not exported", pkg: "pkg/image/store", fail: []string{"TestExportOfDamaged"}, edits: []edit{
		{"pkg/image/store/export.go", "hex.EncodeToString(sum.Sum(nil)) != n.Sum) {", "len(n.Sum) == 0) {"}}},
	{control: "image list compared with its digest", pkg: "pkg/image/store", fail: []string{"TestVerify"}, edits: []edit{
		{"pkg/image/store/verify.go", "if err != nil || image.DigestPrefix+sum != img.Tree {", "if err != nil || sum == \"\" {"}}},
	{control: "image settings compared with their digest", pkg: "pkg/image/store", fail: []string{"TestChangedSettings"}, edits: []edit{
		{"pkg/image/image.go", "	if Digest(text) != i.ID {", "	if false {"}}},
	{control: "image of a request", pkg: "image", fail: []string{"TestImageInASession"}, edits: []edit{
		{"pkg/policy/session.go", "		if err := d.host.namedImage(&p); err != nil {\n			return err\n		}\n", ""}}},
	{control: "helper that others could change", pkg: "image", fail: []string{"TestVerbFindsItsBinary"}, edits: []edit{
		{"pkg/hostpath/program.go", "st.Mode&0o022 != 0 || !owned", "false && !owned"}}},
	{control: "lists of packages signed", pkg: "image", fail: []string{"TestPackagesThatAreNotWhatWasSigned"}, edits: []edit{
		{"pkg/image/apt/apt.go", "`Acquire::AllowInsecureRepositories \"false\";`", "`Acquire::AllowInsecureRepositories \"true\";`"},
		{"pkg/image/apt/apt.go", "`APT::Get::AllowUnauthenticated \"false\";`", "`APT::Get::AllowUnauthenticated \"true\";`"}}},
	{control: "packages by their digests", pkg: "image", fail: []string{"TestChangedDownload"}, edits: []edit{
		{"pkg/image/apt/packages.go", "hex.EncodeToString(h.Sum(nil)) != p.Sum {", "hex.EncodeToString(h.Sum(nil)) == p.Sum+\"x\" {"}}},
	{control: "sources that nobody checks", pkg: "pkg/image/apt", fail: []string{"TestUncheckedSources"}, edits: []edit{
		{"pkg/image/apt/source.go", "m != \"\" {", "m != \"\" && false {"}}},
	{control: "names of packages", pkg: "image", fail: []string{"TestHostileRecipes"}, edits: []edit{
		{"pkg/image/recipe/words.go", "if len(s) < 2 || len(s) > 128", "if false && len(s) > 128"},
		{"pkg/image/recipe/words.go", "|| strings.HasSuffix(s, \"-\") {", "&& false {"}}},
	{control: "words of a mirror", pkg: "image", fail: []string{"TestHostileRecipes"}, edits: []edit{
		{"pkg/image/apt/source.go", "if !goodURL.MatchString(s.URL) {", "if s.URL == \"\" {"}}},
	{control: "manifest of all files", pkg: "image", fail: []string{"TestBuiltOfPackages"}, edits: []edit{
		{"pkg/image/build/build.go", "		if n.Kind != tree.File {\n", "		if n.Kind != tree.File || n.Size < 10 {\n"}}},
	{control: "bytecode beside its module", pkg: "pkg/image/build", fail: []string{"TestBytecode"}, edits: []edit{
		{"pkg/image/build/bytecode.go", "		if !ours || source == nil", "		if !ours && false || source == nil"}}},
	{control: "private files of the host", pkg: "pkg/image/build", fail: []string{"TestHostLeavesPrivateFiles"}, edits: []edit{
		{"pkg/image/build/host.go", "|| !h.private && st.Mode().Perm()&0o004 == 0 {", "{"}}},
	{control: "length of a request", pkg: "session", fail: []string{"TestHostileLines"}, edits: []edit{
		{"internal/lines/lines.go", "tooLong = tooLong || len(l.buf)+len(part) > l.most; tooLong", "tooLong = false; tooLong"}}},
	{control: "characters of a request", pkg: "session", fail: []string{"TestHostileLines"}, edits: []edit{
		{"pkg/session/decode.go", "if r = utf16.DecodeRune(r, low); r == utf8.RuneError {", "if r = utf16.DecodeRune(r, low); r == utf8.RuneError && low < 0 {"}}},
	{control: "reader of replies watched", pkg: "session", fail: []string{"TestEnds"}, edits: []edit{
		{"internal/deliver/deliver.go", "{{Fd: int32(fd)}}", "{{Fd: -1}}"}}},
	{control: "cancel of a run", pkg: "session", fail: []string{"TestQueueAndCancel"}, edits: []edit{
		{"pkg/session/queue.go", "		r.stop()\n", ""}}},
	{control: "names of files below /work", pkg: "session", fail: []string{"TestFilesThatAreRefused"}, edits: []edit{
		{"pkg/policy/validate_files.go", "		case e == \"..\":\n", "		case false:\n"}}},
	{control: "a session without a network stays so", pkg: "session", fail: []string{"TestHostsThatAreRefused"}, edits: []edit{
		{"pkg/policy/session.go", "		if v, ok := old.given[name]; ok {", "		if v, ok := old.given[name]; ok && false {"}}},
	{control: "lists of requests apart", pkg: "session", fail: []string{"TestHostsOfRuns"}, edits: []edit{
		{"pkg/policy/session.go", "	err := d.host.complete(&p, func() error {\n", "	d.base.Spec.Hosts = p.Spec.Hosts\n	err := d.host.complete(&p, func() error {\n"}}},
	{control: "ceilings of a model", pkg: "mcp", fail: []string{"TestModelMayNotWiden"}, edits: []edit{
		{"cmd/sandglass-mcp/grant.go", "if name := beyond(&have, &o.most); name != \"\" {", "if name := beyond(&have, &o.most); name == \"none\" {"}}},
	{control: "hosts that are offered", pkg: "mcp", fail: []string{"TestModelMayNotWiden"}, edits: []edit{
		{"cmd/sandglass-mcp/about.go", "		hosts.Items.Enum = append(hosts.Items.Enum, h)\n", "		_, _ = hosts, h\n"},
		{"cmd/sandglass-mcp/grant.go", "if !slices.Contains(o.offered, h) {", "if !slices.Contains(o.offered, h) && h == \"\" {"}}},
	{control: "no limit of 0", pkg: "mcp", fail: []string{"TestWordsForModels"}, edits: []edit{
		{"cmd/sandglass-mcp/grant.go", "	if !(v > 0) {\n", "	if v == 0 {\n		return policy.Option{Name: f.flag, Values: []string{f.in(&o.base.Limits) + f.unit}}, nil\n	}\n	if !(v > 0) {\n"}}},
	{control: "a model learns no path of the host's", pkg: "cmd/sandglass-mcp", fail: []string{"TestAbout"}, edits: []edit{
		{"cmd/sandglass-mcp/about.go", "named(m.Target)", "named(m.Source)"}}},
	{control: "bearer token", pkg: "mcp", fail: []string{"TestWhoMayCall"}, edits: []edit{
		{"cmd/sandglass-mcp/http.go", "	case !g.knows(r):\n", "	case false:\n"}}},
	{control: "name of the server", pkg: "mcp", fail: []string{"TestWhoMayCall"}, edits: []edit{
		{"cmd/sandglass-mcp/http.go", "	case !g.meant(r):\n", "	case false:\n"}}},
	{control: "origin of a page", pkg: "mcp", fail: []string{"TestWhoMayCall"}, edits: []edit{
		{"cmd/sandglass-mcp/http.go", "	case !g.from(r):\n", "	case false:\n"}}},
	{control: "client that hangs up", pkg: "mcp", fail: []string{"TestHangUp"}, edits: []edit{
		{"cmd/sandglass-mcp/calls.go", "stop := context.AfterFunc(from, cancel)", "stop := func() bool { return from.Err() != nil }"}}},
	{control: "line that is no message", pkg: "mcp", fail: []string{"TestHostileLines"}, edits: []edit{
		{"cmd/sandglass-mcp/wire.go", "\"the line is not JSON\")\n			continue\n", "\"the line is not JSON\")\n			w.why = errors.New(\"no message\")\n			return\n"}}},
	{control: "number of a server's sessions", pkg: "mcp", fail: []string{"TestBoundsOfClients"}, edits: []edit{
		{"cmd/sandglass-mcp/sessions.go", "	if len(order)+len(s.begins) >= maxSessions {\n", "	if len(order) < 0 {\n"}}},
	{control: "the idlest session gives way", pkg: "mcp", fail: []string{"TestBoundsOfClients"}, edits: []edit{
		{"cmd/sandglass-mcp/sessions.go", "		case least == nil, least", "		case least == nil, out == \"\" && least"}}},
	{control: "sessions that are being begun", pkg: "cmd/sandglass-mcp", fail: []string{"TestSessionsBegunAtOnce"}, edits: []edit{
		{"cmd/sandglass-mcp/sessions.go", "	s.begins[call] = \"\"\n", ""}}},
	{control: "who knows the token is no stranger", pkg: "cmd/sandglass-mcp", fail: []string{"TestStrangersWhileABodyComes"}, edits: []edit{
		{"cmd/sandglass-mcp/http.go", "	admit(r)\n", ""}}},
	{control: "requests that came are looked at", pkg: "cmd/sandglass-mcp", fail: []string{"TestRequestsThatCame"}, edits: []edit{
		{"cmd/sandglass-mcp/places.go", "return c.asks && (!c.reading || unread(c.Conn))", "return c.asks && c.busy && unread(c.Conn)"}}},
	{control: "body of a refused request", pkg: "cmd/sandglass-mcp", fail: []string{"TestBodyOfARefusedRequest"}, edits: []edit{
		{"cmd/sandglass-mcp/http.go", "SetReadDeadline(time.Now().Add(refusedTime))", "SetReadDeadline(time.Now().Add(1000 * refusedTime))"}}},
	{control: "ids come back as they are", pkg: "mcp", fail: []string{"TestHostileLines", "TestWhoMayCall", "TestBatches"}, edits: []edit{
		{"cmd/sandglass-mcp/ids.go", "!sameID(text, r.ID) {", "!sameID(text, r.ID) && text == nil {"}}},
	{control: "no batches in newer protocols", pkg: "mcp", fail: []string{"TestHostileLines"}, edits: []edit{
		{"cmd/sandglass-mcp/batch.go", "return w.version != \"\" && w.version < noBatches", "return true"}}},
	{control: "files of the host judged", pkg: "session", fail: []string{"TestFilesThatAreRefused"}, edits: []edit{
		{"pkg/plan/file.go", "real, err := b.judge(\"file\", f.Source, false)", "real, err := filepath.EvalSymlinks(f.Source)"}}},
	{control: "the program's start waits for the release", pkg: "session", fail: []string{"TestWarmBeforeItsRelease"}, edits: []edit{
		{"pkg/boxinit/child.go", "		b.waiting, b.pid, b.pidfd, err = sys.StartWaiting(p)\n		return err\n", "		b.waiting, b.pid, b.pidfd, err = sys.StartWaiting(p)\n		b.waiting.Exec([]string{\"/usr/bin/sleep\"}, []string{\"sleep\", \"9\"}, nil)\n		return err\n"}}},
	{control: "the way to write ends before the execve", pkg: "session", fail: []string{"TestWarmBeforeItsRelease"}, edits: []edit{
		{"pkg/boxinit/release.go", "	b.later.Close()\n	b.cfg.Paths", "	b.cfg.Paths"}}},
	{control: "init keeps no way to write to the root", pkg: "session", fail: []string{"TestWarmBeforeItsRelease"}, edits: []edit{
		{"pkg/boxinit/steps.go", "	b.later.Close()\n	report(b.control, &wire.Report{Type: wire.TypeText}, b.later.Text)\n", "	report(b.control, &wire.Report{Type: wire.TypeText}, b.later.Text)\n"}}},
	{control: "the same policy", pkg: "session", fail: []string{"TestWarmIsTheSamePolicy"}, edits: []edit{
		{"pkg/pool/pool.go", "if !some || s.Frame() != p.frame {", "if !some {"},
		{"pkg/sandbox/held.go", " || h.frame != a.frame {", " {"}}},
	{control: "mounts of the host as they were", pkg: "session", fail: []string{"TestWarmHostHasChanged"}, edits: []edit{
		{"pkg/rootfs/host.go", "now != h.table && h.mounts != now.About(h.sources)", "now == nil"}}},
	{control: "names of the host as they were", pkg: "session", fail: []string{"TestWarmHostHasChanged"}, edits: []edit{
		{"pkg/rootfs/host.go", "err != nil || !slices.EqualFunc(h.ops, ops, sameOp)", "err != nil || len(ops) == 0"}}},
	{control: "a change is not settled at once", pkg: "pkg/rootfs", fail: []string{"TestStamps"}, edits: []edit{
		{"pkg/rootfs/host.go", "			list[i].unsettled = now ", "			_ = now "}}},
	{control: "what fits no run gives way", pkg: "pkg/pool", fail: []string{"TestStaleGivesWay"}, edits: []edit{
		{"pkg/pool/fill.go", "m.stale || time.Since(m.born)", "time.Since(m.born)"}}},
	{control: "who asks the host holds up no other run", pkg: "pkg/pool", fail: []string{"TestHostThatDoesNotAnswer"}, edits: []edit{
		{"pkg/pool/pool.go", "(best < 0 || p.members[best].lang == \"\" && m.lang != \"\") && m.Fits(a)", "(best < 0 || p.members[best].lang == \"\" && m.lang != \"\") && m.Fits(a) && p.fresh(m)"}}},
	{control: "what is stale serves no run", pkg: "pkg/pool", fail: []string{"TestStaleGivesWay"}, edits: []edit{
		{"pkg/pool/pool.go", "if m.stale = !p.fresh(m); m.stale {", "if m.stale {"}}},
	{control: "what cannot be planned now is no reason to close", pkg: "pkg/pool", fail: []string{"TestRenew"}, edits: []edit{
		{"pkg/pool/fill.go", "			p.doubtful(s.Lang)\n", "			p.drop(func(m *member) bool { return m.lang == s.Lang })\n			p.doubtful(s.Lang)\n"}}},
	{control: "no text for what was killed", pkg: "session", fail: []string{"TestWarmMemberIsDying"}, edits: []edit{
		{"pkg/launch/hold.go", "	return doomed(s.waits.proc)", "	return false"}}},
	{control: "no text for what has a fatal signal", pkg: "pkg/launch", fail: []string{"TestDoomed", "TestSentenced"}, edits: []edit{
		{"pkg/launch/doomed.go", "	return waits&^(lives|harmless) != 0\n", "	return waits&(1<<8) != 0\n"}}},
	{control: "no text for what a thread was sent", pkg: "pkg/launch", fail: []string{"TestDoomedByAThread"}, edits: []edit{
		{"pkg/launch/doomed.go", "	for _, t := range tasks {\n", "	for _, t := range tasks[:1] {\n"}}},
	{control: "a text that can have been read begins a run", pkg: "session", fail: []string{"TestWarmTextIsTaken"}, edits: []edit{
		{"pkg/launch/release.go", "		s.abort(err)\n		return nil\n", "		return err\n"},
		{"pkg/launch/release.go", "	if err != nil {\n		return err\n	}\n	if ns :=", "	if err != nil || s.ends() {\n		return errGone\n	}\n	if ns :="}}},
	{control: "no time of the program's before its execve", pkg: "session", fail: []string{"TestWarmClockBeginsAtTheExec"}, edits: []edit{
		{"pkg/launch/release.go", "	s.timer.Reset(setupTime)\n	return nil\n", "	s.timer.Reset(s.box.Timeout)\n	return nil\n"}}},
	{control: "no more time for who is heard of late", pkg: "pkg/launch", fail: []string{"TestLeft"}, edits: []edit{
		{"pkg/launch/run.go", "s.timer.Reset(s.left(time.Now()))", "s.timer.Reset(s.box.Timeout)"}}},
	{control: "what executed nothing is run elsewhere", pkg: "session", fail: []string{"TestWarmDiesBeforeTheExec"}, edits: []edit{
		{"pkg/launch/run.go", "	s.waits.begun(s.cause != \"\" || s.failed != nil || s.end.Stats.OOMKills > 0)\n", "	s.waits.begun(true)\n"}}},
	{control: "CPU time until the release", pkg: "session", fail: []string{"TestWarmLimitsBeginAtTheRelease"}, edits: []edit{
		{"pkg/launch/release.go", "		w.leaveOut(s.pid, released)\n", "		w.base = time.Hour\n"}}},
	{control: "CPU time of who ends at the release", pkg: "session", fail: []string{"TestWarmCPUTimeOfWhoVanishes"}, edits: []edit{
		{"pkg/launch/watchdog.go", "	w.spent = w.tree(initPID)\n	w.base, _ = w.spent.cpu(l)\n", "	w.base, _ = w.tree(initPID).cpu(l)\n"}}},
	{control: "sockets of before the release", pkg: "session", fail: []string{"TestWarmSocketsOfBefore"}, edits: []edit{
		{"pkg/launch/release.go", "		s.keepBaseline(w)\n", ""}}},
	{control: "looks at what waits", pkg: "session", fail: []string{"TestWarmIsWatchedWhileItWaits"}, edits: []edit{
		{"pkg/launch/still.go", "		if !s.holds() {", "		if s.init < 0 {"}}},
	{control: "swapped-out pages seen by the watchdog", pkg: "pkg/launch", fail: []string{"TestSwappedOut"}, edits: []edit{
		{"pkg/launch/memory.go", "own: v[0] + v[1] + v[3]", "own: v[0] + v[1]"}}},
	{control: "a result after the last process", pkg: "pkg/cgroup", fail: []string{"TestCloseKills"}, edits: []edit{
		{"pkg/cgroup/kill.go", "		return err == nil && text == \"\", err\n", "		return err == nil || text == \"\", err\n"},
		{"pkg/cgroup/kill.go", "		return field(s, \"populated\") == 0, err\n", "		return field(s, \"populated\") >= 0, err\n"}}},
}
