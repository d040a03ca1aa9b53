package escape

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/hostid"
)

// hostUID is the one id that all four of a process are.
func hostUID(t *testing.T, pid int, field string) int {
	t.Helper()
	ids := strings.Fields(status(t, pid, field))
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("%s of %d: %v, want one id", field, pid, ids)
		}
	}
	n, err := strconv.Atoi(ids[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Two sandboxes of one root could signal and trace each other, and root's
// files would be theirs, if they shared an id with each other or with root.
func TestRootSandboxHasAnIDOfItsOwn(t *testing.T) {
	who := testkit.AsRoot(t)
	a, b := hold(t, testkit.Opts{Who: who}, "true"), hold(t, testkit.Opts{Who: who}, "true")
	for _, field := range []string{"Uid", "Gid"} {
		ids := []int{hostUID(t, a.program, field), hostUID(t, a.init, field), hostUID(t, b.program, field), hostUID(t, b.init, field)}
		if ids[0] != ids[1] || ids[2] != ids[3] || ids[0] == ids[2] {
			t.Errorf("%s: %v, want a, a, b, b", field, ids)
		}
		for _, id := range ids {
			if id < hostid.First || id >= hostid.First+hostid.Count {
				t.Errorf("%s %d is not in the range of sandbox ids", field, id)
			}
		}
	}
}

func TestUserSandboxHasTheCallersID(t *testing.T) {
	who := testkit.AsUser(t)
	l := hold(t, testkit.Opts{Who: who}, "true")
	if got := hostUID(t, l.program, "Uid"); got != who.UID {
		t.Errorf("host uid %d, want %d", got, who.UID)
	}
}

// Group root, disk, docker or adm of the caller's would open the host's files
// and sockets to whatever reaches them.
func TestRootsSupplementaryGroupsAreDropped(t *testing.T) {
	who := testkit.AsRoot(t)
	who.Groups = []uint32{0, 4, 6}
	l := hold(t, testkit.Opts{Who: who}, "true")
	for _, pid := range []int{l.init, l.program} {
		if got := status(t, pid, "Groups"); got != "" {
			t.Errorf("groups of %d: %q, want none", pid, got)
		}
	}
}

func TestIdentityInside(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := must(t, testkit.Sh(t, who, "id -u; id -g; id -G; awk '{print $1, $3}' /proc/self/uid_map /proc/self/gid_map"))
		if want := "65534\n65534\n65534\n65534 1\n65534 1\n"; o.Stdout != want {
			t.Errorf("%q, want %q", o.Stdout, want)
		}
		attempt(t, who, nil, []try{
			{"setuid:0", "EINVAL"}, {"setuid:1000", "EINVAL"}, {"setgroups:0", "EPERM"}, {"chown:/opt/test/prog", "EROFS"}, {"chown:/dev/null", "EROFS"}, {"chown:/tmp", "EINVAL"},
			{"write:/proc/self/uid_map:0 0 1", "EPERM"}, {"write:/proc/self/setgroups:allow", "EACCES"},
		})
	})
}

// A root-only file of a root caller is neither readable by name nor through a
// mount that shows the directory around it as somebody else's.
func TestRootsFilesOutOfReach(t *testing.T) {
	who := testkit.AsRoot(t)
	dir := testkit.Dir(t)
	write(t, dir+"/theirs", "secret")
	if err := os.Chown(dir+"/theirs", 12345, 12345); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir+"/theirs", 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, dir+"/mine", "mine\n")
	if err := os.Chmod(dir+"/mine", 0o600); err != nil {
		t.Fatal(err)
	}
	got := attempt(t, who, []string{"-v", dir + ":/data"}, []try{{"read:/data/theirs", "EACCES"}, {"read:/data/mine", "OK"}})
	if got != "mine\n" {
		t.Errorf("output %q, want the file of root's own", got)
	}
}

// Each namespace asked for anew gives back capabilities over fresh kernel
// objects: the first step of most kernel exploits.
func TestNoNewNamespaces(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		var ops []string
		for _, flag := range []string{"10000000", "20000", "2000000", "4000000", "8000000", "20000000", "40000000"} {
			ops = append(ops, "unshare:"+flag, "clone:"+flag)
		}
		ops = append(ops, "unshare:80", "unshare:10020000", "clone:10020000")
		for _, ns := range []string{"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"} {
			ops = append(ops, "setns:/proc/self/ns/"+ns)
		}
		attempt(t, who, nil, append(all("EPERM", ops...), try{call("clone3", ""), "ENOSYS"}))
	})
}
