package escape

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"sandglass/internal/sys"
	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

// signalsScoped says whether this kernel's Landlock keeps signals inside (ABI 6).
func signalsScoped() bool { return sys.LandlockABI() >= 6 }

// The result says which version holds, or that there is none.
func TestLandlockIsReported(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := must(t, testkit.Sh(t, who, "true"))
		for _, l := range o.Result.Layers {
			if l.Name != "landlock" {
				continue
			}
			abi := sys.LandlockABI()
			if abi < 2 {
				if l.State != result.Absent || len(l.ReadBack) != 0 {
					t.Errorf("ABI %d: %+v, want absent", abi, l)
				}
				return
			}
			if l.State != result.Enforced || l.ReadBack["abi"] != strconv.Itoa(abi) {
				t.Errorf("%+v, want enforced with ABI %d", l, abi)
			}
			return
		}
		t.Error("no layer landlock")
	})
}

// writableRoot is sandglass with its root left writable, on purpose.
var writableRoot = testkit.Edit{
	File: "pkg/rootfs/item.go", Old: "Kind: wire.OpFreeze, Attr: wire.ReadOnly | wire.NoSuid", New: "Kind: wire.OpFreeze, Attr: wire.NoSuid",
}

// Landlock alone stops a write where the mount was left writable. Without both
// the write works, so that what stopped it was Landlock.
func TestLandlockAloneStopsAWrite(t *testing.T) {
	testkit.Requires(t, "root", "landlock")
	// The supervisor reads the mounts back, and would refuse the run.
	unread := testkit.Edit{File: "pkg/launch/check.go", Old: ", rb.checkMounts}", New: "}"}
	without := testkit.Edit{File: "pkg/boxinit/landlock.go", Old: "const leastABI = 2", New: "const leastABI = 1000"}
	const script = "mkdir /new; echo $?; ln -s x /link; echo $?; mv /etc/hosts /etc/guests; echo $?; echo x > /tmp/x && mv /tmp/x /work/y && echo moved"
	for _, c := range []struct {
		name  string
		edits []testkit.Edit
		want  string
	}{
		{"alone", []testkit.Edit{writableRoot, unread}, "1\n1\n1\nmoved\n"},
		{"neither", []testkit.Edit{writableRoot, unread, without}, "0\n0\n0\nmoved\n"},
	} {
		out, err := exec.Command(testkit.Mutant(t, c.edits...), "run", "--", "sh", "-c", script).Output()
		if err != nil || string(out) != c.want {
			t.Errorf("%s: %q, %v, want %q", c.name, out, err, c.want)
		}
	}
}

// Landlock alone keeps a signal from init, were it ever to listen to one.
func TestLandlockAloneStopsASignal(t *testing.T) {
	if !signalsScoped() {
		testkit.Skip(t, "Landlock ABI 6", strconv.Itoa(sys.LandlockABI()))
	}
	o := testkit.Sh(t, testkit.AsRoot(t), "kill -0 1; kill -TERM 1")
	if n := strings.Count(o.Stderr, "Operation not permitted"); n != 2 {
		t.Errorf("stderr %q, want two refusals", o.Stderr)
	}
}
