package result

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
)

// samples are one result for each outcome, with every field used somewhere.
func samples() map[string]*Result {
	full := &Result{
		Schema: 1, Outcome: Exited, ExitCode: 3, WallMS: 12, SetupMS: 4, CPUMS: 9, MemoryPeakBytes: 1 << 20,
		PidsPeak: 2, OOMKills: 0,
		Limits: map[string]Limit{
			"memory":  {Value: 256 << 20, Unit: Bytes, EnforcedBy: ByCgroup2},
			"timeout": {Value: 10000, Unit: Milliseconds, EnforcedBy: ByClock},
			"io":      {Value: 0, Unit: BytesPerSec, EnforcedBy: ByNone, Weaker: Weaker("io")},
		},
		Layers: []Layer{
			{Name: "seccomp", Requested: true, State: Enforced, ReadBack: map[string]string{"Seccomp": "2"}},
			{Name: "landlock", State: Absent},
		},
		PolicySHA256: strings.Repeat("0f", 32),
		Denied:       []Denial{{Kind: "syscall", What: "ptrace", Count: 2}},
		Artifacts: []Artifact{
			{Path: "a.txt", Type: "file", Size: 3, Mode: "0644", SHA256: strings.Repeat("ab", 32)},
			{Path: "l", Type: "symlink", Target: "/etc/passwd", Skipped: "links are not made"},
		},
	}
	full.Stdout.SetCaptured([]byte("hello\n"))
	full.Stderr.SetCaptured([]byte{0xff, 0})
	full.Artifacts[0].PathBase64 = "Yf8="
	full.Unmapped = []string{"/srv/a", "/srv/b \x1b"}
	all := map[string]*Result{"full": full}
	for _, o := range []Outcome{Exited, Signaled, Timeout, CPUTime, Memory, Output, Canceled, Refused, Failed} {
		r := &Result{Outcome: o}
		r.SetExit(0, map[Outcome]int{Signaled: 11, Canceled: 15}[o])
		all[string(o)] = r
	}
	all["refused"].Error, all["refused"].Hints = "no program", []string{"sandglass run script.py"}
	return all
}

func TestJSONOfAnEmptyResult(t *testing.T) {
	b, err := (&Result{Outcome: Failed, ExitCode: 125, Error: "x <y>"}).JSON()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"schema":1,"outcome":"failed","exit_code":125,"error":"x <y>","warm":false,"wall_ms":0,"setup_ms":0,"cpu_ms":0,` +
		`"memory_peak_bytes":0,"pids_peak":0,"oom_kills":0,"stdout":{"bytes":0,"kept":0,"truncated":false},` +
		`"stderr":{"bytes":0,"kept":0,"truncated":false},"limits":{},"layers":[],"policy_sha256":"","denied":[],"artifacts":[]}` + "\n"
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
}

func TestJSONRoundTrip(t *testing.T) {
	r := samples()["full"]
	b, err := r.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var back Result
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(*r, back) {
		t.Errorf("got  %+v\nwant %+v", back, *r)
	}
}

func TestJSONLeavesTheResultAlone(t *testing.T) {
	r := &Result{Outcome: Exited}
	if _, err := r.JSON(); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(*r, Result{Outcome: Exited}) {
		t.Errorf("changed to %+v", *r)
	}
}

// No byte that the program chose reaches a terminal as a control.
func TestJSONDoesNotSteerATerminal(t *testing.T) {
	text := "\x1b[2J\x07\x7f\u009b31m\u202eabc\u2066\u200f\u061c\u2028é漢\n"
	r := &Result{Outcome: Exited}
	r.Stdout.SetCaptured([]byte(text))
	b, err := r.JSON()
	if err != nil {
		t.Fatal(err)
	}
	want := `"text":"\u001b[2J\u0007\u007f\u009b31m\u202eabc\u2066\u200f\u061c\u2028é漢\n"`
	if !strings.Contains(string(b), want) {
		t.Errorf("got %s, want %s in it", b, want)
	}
	var back Result
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if back.Stdout.Text != text {
		t.Errorf("read back %q, want %q", back.Stdout.Text, text)
	}
}

func TestSetCaptured(t *testing.T) {
	for _, c := range []struct {
		in   string
		want Stream
	}{
		{"", Stream{}},
		{"a\nß", Stream{Kept: 4, Text: "a\nß"}},
		{"\x00", Stream{Kept: 1, Text: "\x00"}},
		{"\xff\xfe", Stream{Kept: 2, Base64: "//4="}},
		{"cut \xe6\xbc", Stream{Kept: 6, Base64: "Y3V0IOa8"}},
		{"\xed\xa0\x80", Stream{Kept: 3, Base64: "7aCA"}}, // a lone surrogate
	} {
		s := Stream{Text: "old", Base64: "b2xk"}
		s.SetCaptured([]byte(c.in))
		if s != c.want {
			t.Errorf("%q: got %+v, want %+v", c.in, s, c.want)
		}
		if back, err := s.Captured(); err != nil || string(back) != c.in {
			t.Errorf("%q: read back %q, %v", c.in, back, err)
		}
	}
}

func TestCapturedRefusesBadBase64(t *testing.T) {
	s := Stream{Base64: "?"}
	if _, err := s.Captured(); err == nil {
		t.Error("no error")
	}
}

func TestExitCodeFor(t *testing.T) {
	for _, c := range []struct {
		o            Outcome
		code, signal int
		want         int
	}{
		{Exited, 0, 0, 0}, {Exited, 7, 0, 7}, {Exited, 255, 0, 255}, {Exited, 124, 0, 124}, {Exited, 256, 0, 0}, {Exited, -1, 0, 255},
		{Exited, 126, 0, 126}, {Exited, 127, 0, 127},
		{Signaled, 0, 9, 137}, {Signaled, 0, 11, 139}, {Signaled, 3, 64, 192},
		{Timeout, 0, 9, 124}, {CPUTime, 0, 9, 124}, {Memory, 1, 9, 137}, {Output, 0, 9, 153},
		{Canceled, 0, 2, 130}, {Canceled, 0, 15, 143}, {Canceled, 9, 0, 130},
		{Refused, 0, 0, 125}, {Refused, 126, 0, 126}, {Refused, 127, 0, 127}, {Refused, 1, 0, 125},
		{Failed, 0, 0, 125}, {Failed, 0, 9, 125}, {Outcome("new"), 0, 0, 125}, {Outcome(""), 0, 0, 125},
	} {
		if got := ExitCodeFor(c.o, c.code, c.signal); got != c.want {
			t.Errorf("%s code %d signal %d: got %d, want %d", c.o, c.code, c.signal, got, c.want)
		}
	}
}

func FuzzCaptured(f *testing.F) {
	for _, s := range []string{"", "text", "\xff", "\u009b\u202e", "\x00\x7f", `\u0000`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		r := &Result{Outcome: Exited, WallMS: math.MaxInt64}
		r.Stdout.SetCaptured(in)
		b, err := r.JSON()
		if err != nil {
			t.Fatal(err)
		}
		if i := strings.IndexFunc(strings.TrimSuffix(string(b), "\n"), func(r rune) bool { return r < ' ' || steers(r) }); i >= 0 {
			t.Fatalf("control at %d of %q", i, b)
		}
		var back Result
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		if out, err := back.Stdout.Captured(); err != nil || string(out) != string(in) {
			t.Fatalf("got %q, %v, want %q", out, err, in)
		}
	})
}
