package launch

import (
	"os"
	"strings"
	"testing"

	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

const noCaps = "0000000000000000"

// asPlanned is a read-back in which all is as it was promised.
func asPlanned() *ReadBack {
	return &ReadBack{
		Status: map[string]string{
			"NoNewPrivs": "1", "Seccomp": "2", "Seccomp_filters": "3", "CapInh": noCaps, "CapPrm": noCaps, "CapEff": noCaps, "CapBnd": noCaps,
			"CapAmb": noCaps, "Uid": "7\t7\t7\t7", "Gid": "8\t8\t8\t8", "Groups": "",
		},
		Namespaces: map[string]string{"user": "user:[1]", "mnt": "mnt:[1]", "pid": "pid:[1]", "net": "net:[1]", "ipc": "ipc:[1]", "uts": "uts:[1]", "cgroup": "cgroup:[1]"},
		filters:    2, threads: 5,
		limits: []byte("Limit                     Soft Limit           Hard Limit           Units     \n" +
			"Max processes             15                   15                   processes \n" +
			"Max open files            1024                 1024                 files     \n"),
		mounts: []byte("1 0 0:1 / / ro,nosuid,nodev,relatime - tmpfs none rw,size=1k\n" +
			"2 1 8:1 /usr /usr ro,nosuid,nodev - ext4 /dev/x rw\n" +
			"3 1 0:2 / /proc rw,nosuid,nodev,noexec - proc none rw,hidepid=ptraceable\n" +
			"4 3 0:1 /n /proc/cmdline ro,nosuid,nodev - tmpfs none rw\n" +
			"5 1 0:3 / /tmp rw,nosuid,nodev - tmpfs none rw,size=64k,nr_inodes=9\n" +
			"6 1 8:1 /a /my\\040data rw,nosuid,nodev - ext4 /dev/x rw\n" +
			"7 6 8:2 / /my\\040data/below rw,nosuid,nodev - ext4 /dev/y rw\n"),
		promised: promise{
			identity: Identity{HostUID: 7, HostGID: 8, Mapped: true},
			rlimits:  []wire.Rlimit{{Resource: unix.RLIMIT_NPROC, Soft: 10, Hard: 10}, {Resource: unix.RLIMIT_NOFILE, Soft: 1024, Hard: 1024}},
			mounts: []wire.Op{
				{Kind: wire.OpRoot}, {Kind: wire.OpBind, Target: "/usr", Recursive: true}, {Kind: wire.OpFreeze, Attr: wire.ReadOnly},
				{Kind: wire.OpProc, Target: "/proc", Data: []byte("hidepid=ptraceable")}, {Kind: wire.OpTmpfs, Target: "/tmp", Size: 64<<10 - 1, Inodes: 9},
				{Kind: wire.OpTree, Target: "/my data", Recursive: true},
			},
		},
	}
}

func TestReadBackCheck(t *testing.T) {
	if err := asPlanned().Check(); err != nil {
		t.Fatal(err)
	}
	killed := asPlanned()
	killed.Status["Seccomp"] = "3" // its filter killed it before we looked
	if err := killed.Check(); err != nil {
		t.Errorf("a program that its filter has killed: %v", err)
	}
	less := asPlanned() // what a program may do to itself before we looked
	less.limits = []byte(strings.ReplaceAll(string(less.limits), "1024", "10  "))
	less.Status["Seccomp_filters"] = "9"
	if err := less.Check(); err != nil {
		t.Errorf("a program that has lowered its own limit: %v", err)
	}
}

// TestReadBackStatus: each field that differs is an error.
func TestReadBackStatus(t *testing.T) {
	for field, right := range asPlanned().Status {
		for _, bad := range []string{"", "0", "1", "2", "4", "0000000000000001", "7\t7\t7\t0", "8\t0\t8\t8", "0\t0\t0\t0"} {
			if bad == right || field == "Seccomp_filters" && bad == "4" {
				continue
			}
			rb := asPlanned()
			rb.Status[field] = bad
			if rb.Check() == nil {
				t.Errorf("%s %q passed", field, bad)
			}
		}
	}
	user := asPlanned()
	user.promised.identity.Mapped = false
	user.Status["Groups"] = "4 24" // an ordinary caller's cannot be dropped
	if err := user.Check(); err != nil {
		t.Errorf("an ordinary caller: %v", err)
	}
}

func TestReadBackNamespaces(t *testing.T) {
	for ns := range asPlanned().Namespaces {
		own, err := os.Readlink("/proc/self/ns/" + ns)
		if err != nil {
			t.Fatal(err)
		}
		rb := asPlanned()
		rb.Namespaces[ns] = own
		if rb.Check() == nil {
			t.Errorf("the host's own %s namespace passed", ns)
		}
		rb = asPlanned()
		delete(rb.Namespaces, ns)
		if err := rb.Check(); (err == nil) != (ns == "cgroup") { // a program that may not be read hides its own
			t.Errorf("no %s namespace: %v", ns, err)
		}
	}
}

// TestReadBackTexts: each change of the limits and of the mounts is an error.
func TestReadBackTexts(t *testing.T) {
	for _, c := range []struct{ old, now, want string }{
		{"15                   15 ", "16                   16 ", "Max processes of the program is 16 and 16, not 15 and 15"},
		{"1024                 1024", "1024                 2048", "Max open files of the program is 1024 and 2048, not 1024 and 1024"},
		{"1024                 1024", "unlimited            unlimited", "Max open files of the program is 18446744073709551615 and 18446744073709551615, not 1024 and 1024"},
		{"Max open files", "Max opened", `the program's limits do not tell "Max open files"`},
		{" / ro,nosuid", " / rw,nosuid", "the mount at / is not read-only"},
		{" / ro,nosuid", " / ro", "the mount at / is not nosuid"},
		{"/usr ro,", "/usr rw,", "the mount at /usr is not read-only"},
		{"cmdline ro", "cmdline rw", "the mount at /proc/cmdline is not read-only"},
		{"data/below rw,nosuid", "data/below rw,nodev", "the mount at /my data/below is not nosuid"},
		{",hidepid=ptraceable", "", "the mount at /proc has not the option hidepid=ptraceable"},
		{"size=64k", "size=65k", "the mount at /tmp has not the option size=64k"},
		{"nr_inodes=9", "nr_inodes=0", "the mount at /tmp has not the option nr_inodes=9"},
		{" /usr ro", " /elsewhere ro", "nothing is mounted at /usr"},
		{" / / ro", " / /x ro", "the sandbox has no root of its own"},
		{"1 0 0:1 / / ro,nosuid,nodev,relatime - tmpfs none rw,size=1k\n", "x\n", `mountinfo of the sandbox: "x\n"`},
	} {
		rb := asPlanned()
		change := func(text []byte) []byte { return []byte(strings.Replace(string(text), c.old, c.now, 1)) }
		before := string(rb.limits) + string(rb.mounts)
		rb.limits, rb.mounts = change(rb.limits), change(rb.mounts)
		if before == string(rb.limits)+string(rb.mounts) {
			t.Fatalf("%q is not there to be changed", c.old)
		}
		if err := rb.Check(); err == nil || err.Error() != c.want {
			t.Errorf("%q for %q: %v, want %s", c.now, c.old, err, c.want)
		}
	}
}

// What lies in a directory of the host's moves with it: that is no failure, and
// makes nothing else writable.
func TestReadBackRenamedPlace(t *testing.T) {
	for _, c := range []struct {
		attr     wire.Attr
		at, want string
	}{
		{0, "/data/renamed rw", ""},
		{wire.ReadOnly, "/data/renamed ro", ""},
		{wire.ReadOnly, "/data/renamed rw", "the mount at /data/renamed is not read-only"},
		{0, "/elsewhere rw", "the mount at /elsewhere is not read-only"},
	} {
		rb := asPlanned()
		rb.promised.mounts = append(rb.promised.mounts,
			wire.Op{Kind: wire.OpTree, Target: "/data", Attr: wire.ReadOnly, Recursive: true}, wire.Op{Kind: wire.OpTree, Target: "/data/sub", Attr: c.attr})
		rb.mounts = append(rb.mounts, "8 1 8:1 /d /data ro,nosuid,nodev - ext4 /dev/x rw\n9 8 8:1 /s "+c.at+",nosuid,nodev - ext4 /dev/x rw\n"...)
		if err := rb.Check(); (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%s with %v: %v, want %q", c.at, c.attr, err, c.want)
		}
	}
}

// A mount of the caller's over a writable place of the scratch: the upper one
// counts, in whichever order the kernel lists them.
func TestReadBackStackedMounts(t *testing.T) {
	const lower, upper = "8 1 0:3 /work /work rw,nosuid,nodev - tmpfs none rw,size=64k\n", "9 8 8:1 /d /work %,nosuid,nodev - ext4 /dev/x rw\n"
	for _, order := range []string{lower + upper, upper + lower} {
		for how, ok := range map[string]bool{"ro": true, "rw": false} {
			rb := asPlanned()
			rb.promised.mounts = append(rb.promised.mounts, wire.Op{Kind: wire.OpInner, Target: "/work"}, wire.Op{Kind: wire.OpTree, Target: "/work", Attr: wire.ReadOnly})
			rb.mounts = append(rb.mounts, strings.Replace(order, "%", how, 1)...)
			if err := rb.Check(); (err == nil) != ok || err != nil && err.Error() != "the mount at /work is not read-only" {
				t.Errorf("%s on top of rw: %v", how, err)
			}
		}
	}
}

func TestReadBackRlimitsAllKnown(t *testing.T) {
	text, err := os.ReadFile("/proc/self/limits")
	if err != nil {
		t.Fatal(err)
	}
	for resource, name := range limitNames {
		if name == "" {
			continue
		}
		var own unix.Rlimit
		if err := unix.Getrlimit(int(resource), &own); err != nil {
			t.Fatal(err)
		}
		if soft, hard, ok := limit(text, name); !ok || soft != own.Cur || hard != own.Max {
			t.Errorf("%s: %d %d %v, want %d %d", name, soft, hard, ok, own.Cur, own.Max)
		}
	}
}
