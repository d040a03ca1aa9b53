package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"io"
	"os"
	"reflect"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func sample() *Config {
	return &Config{
		Hostname: "sandglass",
		Mounts: []Op{
			{Kind: OpRoot, FD: NoFD, Mode: 0o755, Size: 1 << 20, Inodes: 64},
			{Kind: OpBind, Source: "/usr", Target: "/usr", FD: NoFD, Attr: ReadOnly | NoSuid, Recursive: true, Dev: 254, Ino: 1 << 40},
			{Kind: OpFile, Target: "/etc/hosts", FD: NoFD, Mode: 0o644, Data: []byte("127.0.0.1\tlocalhost\n\x00\xff")},
			{Kind: OpCopy, Target: "/work/in", FD: 5, Mode: 0o644, Size: 7, Offset: 1 << 20},
			{Kind: OpPivot, FD: NoFD},
		},
		Loopback: true, Routes: []Route{{Addr: []byte{198, 18, 0, 0}, Bits: 15}, {Addr: make([]byte, 16), Bits: 64, Optional: true}},
		Ports: []uint16{53, 443}, Box: NoFD, Tasks: []int32{7, 300}, CgroupNS: true,
		Rlimits: []Rlimit{{Resource: 4, Soft: 0, Hard: 1<<64 - 1}}, SmallPages: true,
		Seccomp: []byte{6, 0, 0, 0, 0, 0, 0, 0}, InitSeccomp: []byte{1}, Listener: true,
		Stdin: 4, Stdout: 5, Stderr: 6, Terminal: true, Rows: 24, Cols: 1<<16 - 1,
		Paths: []string{"/usr/bin/true", "/bin/true"}, Argv: []string{"true", ""}, Env: []string{"A=b"},
		Dir: "/work", CPUs: []byte{2, 0, 0, 0, 0, 0, 0, 0}, Writable: []string{"/tmp", "/work"}, OutDir: "/out",
		Limit: 12000, Waits: InitWaits, Idle: 60000,
	}
}

func TestConfigRoundTrip(t *testing.T) {
	got, err := DecodeConfig(sample().Encode())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(normal(got), normal(sample())) {
		t.Errorf("got  %+v\nwant %+v", got, sample())
	}
}

// normal makes nil and empty slices the same.
func normal(c *Config) *Config {
	for i := range c.Mounts {
		if len(c.Mounts[i].Data) == 0 {
			c.Mounts[i].Data = nil
		}
	}
	return c
}

// TestGolden keeps the bytes on the wire: supervisor and init are one binary,
// but a change here must be seen.
func TestGolden(t *testing.T) {
	report := &Report{Type: TypeExited, Step: "s", Errno: 13, Path: "/p", Status: 0x8b, UserUS: 1 << 33, SystemUS: 7}
	for name, got := range map[string][]byte{
		"testdata/config.hex": Frame(TypeConfig, sample().Encode()),
		"testdata/report.hex": Frame(report.Type, report.Encode()),
	} {
		text := hex.EncodeToString(got) + "\n"
		if *update {
			if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if text != string(want) {
			t.Errorf("%s: got %s want %s", name, text, want)
		}
	}
}

// TestTruncated: no proper prefix of a message is a message.
func TestTruncated(t *testing.T) {
	b := sample().Encode()
	for n := range b {
		if _, err := DecodeConfig(b[:n]); !errors.Is(err, ErrMalformed) {
			t.Fatalf("a prefix of %d bytes: error %v", n, err)
		}
	}
	if _, err := DecodeConfig(append(b, 0)); !errors.Is(err, ErrMalformed) {
		t.Errorf("a trailing byte: error %v", err)
	}
}

// TestLimit: init takes no plan without a time limit, nor one with a limit that
// is none.
func TestLimit(t *testing.T) {
	for limit, good := range map[uint64]bool{0: false, 1: true, MaxLimit: true, MaxLimit + 1: false, 1<<64 - 1: false} {
		c := sample()
		c.Limit = limit
		if got, err := DecodeConfig(c.Encode()); (err == nil) != good || good && got.Limit != limit {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
}

// TestIdle: who waits has a time for it, and who does not has none.
func TestIdle(t *testing.T) {
	for _, c := range []struct {
		waits Waits
		idle  uint64
		good  bool
	}{
		{NoWait, 0, true}, {NoWait, 1, false}, {InitWaits, 0, false}, {InitWaits, 1, true}, {ProgramWaits, MaxLimit, true},
		{ProgramWaits, MaxLimit + 1, false}, {ProgramWaits + 1, 1, false},
	} {
		cfg := sample()
		cfg.Waits, cfg.Idle = c.waits, c.idle
		if _, err := DecodeConfig(cfg.Encode()); (err == nil) != c.good {
			t.Errorf("waits %d for %d: %v", c.waits, c.idle, err)
		}
	}
}

func release() *Release {
	return &Release{
		Limit: 12000, Paths: []string{"/bin/sh"}, Argv: []string{"sh", "-c", ""}, Env: []string{"A=b"},
		Code:  []Op{{Kind: OpCopy, Target: "/code/main.py", FD: 4, Mode: 0o444, Size: 3}},
		Files: []Op{{Kind: OpCopy, Target: "/work/a", FD: 5, Mode: 0o644, Size: 7, Offset: 3}, {Kind: OpCopy, Target: "/work/b", FD: NoFD}},
	}
}

// TestRelease: it comes through whole, and brings files and nothing else: a
// mount of any kind would not be one of the plan.
func TestRelease(t *testing.T) {
	b := release().Encode()
	got, err := DecodeRelease(b)
	if err != nil || !bytes.Equal(got.Encode(), b) || got.Files[0].Offset != 3 || got.Argv[1] != "-c" {
		t.Errorf("%+v, %v", got, err)
	}
	for n := range b {
		if _, err := DecodeRelease(b[:n]); !errors.Is(err, ErrMalformed) {
			t.Fatalf("a prefix of %d bytes: error %v", n, err)
		}
	}
	for k := OpRoot; k <= OpText; k++ {
		r := release()
		r.Files[1].Kind = k
		if _, err := DecodeRelease(r.Encode()); (err == nil) != (k == OpCopy) {
			t.Errorf("a release with %q: %v", k, err)
		}
		r = release()
		r.Code[0].Kind = k
		if _, err := DecodeRelease(r.Encode()); (err == nil) != (k == OpCopy || k == OpLink) {
			t.Errorf("a release with %q on the root: %v", k, err)
		}
	}
	for _, limit := range []uint64{0, MaxLimit + 1} {
		r := release()
		r.Limit = limit
		if _, err := DecodeRelease(r.Encode()); err == nil {
			t.Errorf("a release with the limit %d was taken", limit)
		}
	}
}

func TestReports(t *testing.T) {
	for _, want := range []Report{
		{Type: TypeFailed, Step: "mount /usr", Errno: 13},
		{Type: TypeNotStarted, Errno: 2, Path: "/bin/x"},
		{Type: TypeStarted, Landlock: 7},
		{Type: TypeExited, Status: 9, UserUS: 1, SystemUS: 2},
		{Type: TypeWaits},
		{Type: TypeText},
		{Type: TypeExecutes, At: 1 << 62},
	} {
		got, err := DecodeReport(want.Type, want.Encode())
		if err != nil || *got != want {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
	}
	for _, typ := range []Type{0, TypeConfig, TypeAck, TypeExited + 1, TypeIDs, TypeRelease, 255} {
		if _, err := DecodeReport(typ, (&Report{}).Encode()); !errors.Is(err, ErrMalformed) {
			t.Errorf("type %d: error %v", typ, err)
		}
	}
}

// TestIDs: nothing but a whole IDs frame is one.
func TestIDs(t *testing.T) {
	want := IDs{UID: 65534, GID: 1<<32 - 1}
	b := want.Encode()
	if len(b) > MaxIDs {
		t.Errorf("%d bytes, and the bound is %d", len(b), MaxIDs)
	}
	if got, err := DecodeIDs(TypeIDs, b); err != nil || *got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	for n := range b {
		if _, err := DecodeIDs(TypeIDs, b[:n]); !errors.Is(err, ErrMalformed) {
			t.Errorf("a prefix of %d bytes: error %v", n, err)
		}
	}
	for _, bad := range []struct {
		typ  Type
		body []byte
	}{{TypeConfig, b}, {TypeIDs, append(b, 0)}, {TypeIDs, bytes.Repeat([]byte{0xff}, 6)}} {
		if _, err := DecodeIDs(bad.typ, bad.body); !errors.Is(err, ErrMalformed) {
			t.Errorf("type %d, %x: error %v", bad.typ, bad.body, err)
		}
	}
}

// TestHostileLengths: a length is never believed before it is compared with
// what is there.
func TestHostileLengths(t *testing.T) {
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}
	for name, b := range map[string][]byte{
		"string":        huge,
		"overlong":      bytes.Repeat([]byte{0xff}, 11),
		"count":         append([]byte{0}, huge...),
		"errno over 32": append([]byte{0}, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01),
	} {
		if _, err := DecodeConfig(b); !errors.Is(err, ErrMalformed) {
			t.Errorf("config %s: error %v", name, err)
		}
		if _, err := DecodeReport(TypeFailed, b); !errors.Is(err, ErrMalformed) {
			t.Errorf("report %s: error %v", name, err)
		}
	}
}

func TestReadFrame(t *testing.T) {
	frame := Frame(TypeStarted, []byte("body"))
	typ, body, err := ReadFrame(bytes.NewReader(frame), 4)
	if err != nil || typ != TypeStarted || string(body) != "body" {
		t.Errorf("got %d %q %v", typ, body, err)
	}
	if _, _, err := ReadFrame(bytes.NewReader(frame), 3); !errors.Is(err, ErrMalformed) {
		t.Errorf("a frame over the limit: %v", err)
	}
	if _, _, err := ReadFrame(bytes.NewReader(nil), 3); err != io.EOF {
		t.Errorf("end of file: %v", err)
	}
	if _, _, err := ReadFrame(bytes.NewReader(frame[:7]), 9); !errors.Is(err, ErrMalformed) {
		t.Errorf("a cut frame: %v", err)
	}
}

func FuzzDecodeConfig(f *testing.F) {
	f.Add(sample().Encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := DecodeConfig(b)
		if err != nil {
			return
		}
		again, err := DecodeConfig(c.Encode())
		if err != nil || !reflect.DeepEqual(normal(again), normal(c)) {
			t.Errorf("does not survive a round trip: %v", err)
		}
	})
}

func FuzzReadReport(f *testing.F) {
	f.Add(Frame(TypeFailed, (&Report{Step: "x", Errno: 1}).Encode()))
	f.Add(Frame(TypeExited, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		typ, body, err := ReadFrame(bytes.NewReader(b), MaxReport)
		if err != nil {
			return
		}
		r, err := DecodeReport(typ, body)
		if err != nil {
			return
		}
		again, err := DecodeReport(r.Type, r.Encode())
		if err != nil || *again != *r {
			t.Errorf("does not survive a round trip: %v", err)
		}
	})
}

func TestKindNames(t *testing.T) {
	for k := OpRoot; k <= OpText; k++ {
		if k.String() == "" || k.String() == "unknown" {
			t.Errorf("kind %d has no name", k)
		}
	}
	if (OpText + 1).String() != "unknown" {
		t.Errorf("kind %d has a name", OpText+1)
	}
}
