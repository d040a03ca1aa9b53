package escape

import (
	"encoding/json"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

// lookAround tells what a program sees of its text and may do to it.
const lookAround = `import os, stat
for p in "/code", __file__, "/", "/work":
    s = os.stat(p)
    print(p, oct(s.st_mode), s.st_uid == os.getuid(), s.st_uid, s.st_gid)
print(sorted(os.listdir("/code")), len(open(__file__).read()))
for act in "open('/code/x', 'w')", "open(__file__, 'a')", "os.unlink(__file__)", "os.rename(__file__, '/code/y')", "os.chmod('/code', 0o777)", "os.mkfifo('/code/z')":
    try:
        eval(act)
        print(act, "done")
    except OSError as e: print(act, e.strerror)
`

// TestWarmWithAnIDOfItsOwn: an ordinary user's sandboxes that wait have ids of their
// own as well, each another one, and the program sees and may do what it would in
// one that was made for it.
func TestWarmWithAnIDOfItsOwn(t *testing.T) {
	testkit.Requires(t, "python3")
	a := span(t, 8)
	flags := append(a.who.Flags(), "--host-id", "own", "-m", "64m")
	cold := testkit.Run(t, a.opts(t), append(append([]string{}, flags...), "--lang", "python", "-c", lookAround)...)
	if cold.Exit != 0 || !strings.Contains(cold.Stdout, "Read-only file system") {
		t.Fatalf("exit %d: %s%s", cold.Exit, cold.Stdout, cold.Stderr)
	}

	code, err := json.Marshal(lookAround)
	if err != nil {
		t.Fatal(err)
	}
	s := testkit.OpenSession(t, a.opts(t), "ready", append(flags, "--warm", "python=2", "--max-running", "1")...)
	ids := map[int]bool{}
	for range 2 {
		r := s.Ask(`"lang":"python","code":` + string(code))
		if r.Type != "result" || !r.Result.Warm || r.Result.Stdout.Text != cold.Stdout || r.Result.HostID == nil || !r.Result.HostID.Own {
			t.Fatalf("%s %s warm %v, %+v\n%s\nwant\n%s", r.Type, r.Error, r.Result.Warm, r.Result.HostID, r.Result.Stdout.Text, cold.Stdout)
		}
		ids[r.Result.HostID.UID] = true
	}
	if len(ids) != 2 {
		t.Errorf("the ids are %v", ids)
	}
	s.End()
}
