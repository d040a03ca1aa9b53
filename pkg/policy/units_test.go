package policy

import (
	"strings"
	"testing"
	"time"
)

func TestParseSize(t *testing.T) {
	for in, want := range map[string]int64{
		"1": 1, "4096": 4096, "1b": 1, "1k": 1 << 10, "1K": 1 << 10, "1kb": 1 << 10, "1KiB": 1 << 10, "256m": 256 << 20,
		"256MB": 256 << 20, "256MiB": 256 << 20, "1.5g": 3 << 29, "0.5k": 512, "1g": 1 << 30, "2t": 2 << 40, "1024t": MaxSize,
		"0.1k": 102, "1.9999999k": 2047, "007": 7, "0.000001t": 1099511,
	} {
		if got, err := ParseSize(in); err != nil || got != want {
			t.Errorf("%s: got %d, %v, want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "0", "0k", "0.0m", "-1", "+1", "k", ".5k", "1.", "1.k", "1..5k", "1.5.5k", "1 m", "1mm", "1p", "1e3", "0x10",
		"1_000", "１", "1025t", "1024.000001t", "9223372036854775807", "9223372036854775808", "99999999999999999999999999t", "1m\n", "inf", "NaN", "0.5"} {
		if got, err := ParseSize(in); err == nil || got != 0 {
			t.Errorf("%q: got %d, %v, want a refusal", in, got, err)
		}
	}
}

func TestParseDuration(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"10": 10 * time.Second, "2.5": 2500 * time.Millisecond, ".5": 500 * time.Millisecond, "500ms": 500 * time.Millisecond,
		"1m30s": 90 * time.Second, "720h": MaxDuration, "2592000": MaxDuration, "1h0.5s": time.Hour + 500*time.Millisecond,
	} {
		if got, err := ParseDuration(in); err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "0", "0s", "-1", "-1s", "+1", "+1s", "1d", "s", ".", "1.2.3", "1e3", "2592001", "720h1ns", "9999999999999999999",
		"1 s", "inf", "0x1s", "1s ", "1m30"} {
		if got, err := ParseDuration(in); err == nil || got != 0 {
			t.Errorf("%q: got %v, %v, want a refusal", in, got, err)
		}
	}
}

func TestParseCPUs(t *testing.T) {
	for in, want := range map[string]int64{"1": 1000, "0.5": 500, "0.01": 10, "1.2345": 1234, "0.3339": 333, "4096": 4096000, "16": 16000} {
		if got, err := ParseCPUs(in); err != nil || got != want {
			t.Errorf("%s: got %d, %v, want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "0", "0.009", "4096.001", "-1", "+1", "500m", "1e1", ".5", "1.", "x", "99999999999999999999"} {
		if got, err := ParseCPUs(in); err == nil || got != 0 {
			t.Errorf("%q: got %d, %v, want a refusal", in, got, err)
		}
	}
}

func TestParseCount(t *testing.T) {
	for in, want := range map[string]int64{"1": 1, "64": 64, "16k": 16384, "2m": 2 << 20, "2147483648": 1 << 31} {
		if got, err := ParseCount(in); err != nil || got != want {
			t.Errorf("%s: got %d, %v, want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "0", "-1", "+1", "1.5", "1.0", "1g", "1K", "2147483649", "2049m", "99999999999999999999", "unlimited"} {
		if got, err := ParseCount(in); err == nil || got != 0 {
			t.Errorf("%q: got %d, %v, want a refusal", in, got, err)
		}
	}
}

func TestFormatSize(t *testing.T) {
	for in, want := range map[int64]string{0: "0", 1: "1", 1023: "1023", 1024: "1k", 1025: "1025", 256 << 20: "256m", 3 << 29: "1536m", MaxSize: "1024t", -1: "-1", -1024: "-1k"} {
		if got := FormatSize(in); got != want {
			t.Errorf("%d: got %s, want %s", in, got, want)
		}
	}
}

func FuzzParseSize(f *testing.F) {
	for _, s := range []string{"1", "256m", "1.5g", "0", "-1", "1024t", "1.9999999k", "99999999999999999999t", "1..5k", "0x1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseSize(s)
		if err != nil {
			if n != 0 {
				t.Fatalf("%q: %d with an error", s, n)
			}
			return
		}
		if n <= 0 || n > MaxSize {
			t.Fatalf("%q: %d is out of bounds", s, n)
		}
		if back, err := ParseSize(FormatSize(n)); err != nil || back != n {
			t.Fatalf("%q: %d comes back as %d, %v", s, n, back, err)
		}
	})
}

func FuzzParseDuration(f *testing.F) {
	for _, s := range []string{"10", "2.5", "500ms", "1m30s", "0", "-1s", "720h", "1e3", ".", "9999999999999999999h"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := ParseDuration(s)
		if err != nil {
			if d != 0 {
				t.Fatalf("%q: %v with an error", s, d)
			}
			return
		}
		if d <= 0 || d > MaxDuration {
			t.Fatalf("%q: %v is out of bounds", s, d)
		}
		if back, err := ParseDuration(d.String()); err != nil || back != d {
			t.Fatalf("%q: %v comes back as %v, %v", s, d, back, err)
		}
	})
}

func FuzzParseMounts(f *testing.F) {
	for _, s := range []string{"/a:/b", "./a:/b:rw", "/a:/b:ro,rw", "type=bind,src=/a,dst=/b,readonly=false", "/etc:/e", "/a:/proc/../x", "::", "/a:/b\n:ro",
		"/home/x/.ssh:/k", "type=bind,src=../../etc,dst=/b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, flag := range []string{"-v", "--mount"} {
			p, err := testHost().Parse("run", []string{flag, s, "--", "true"})
			if err != nil {
				continue
			}
			m := p.Spec.Mounts[0]
			for _, path := range []string{m.Source, m.Target} {
				if path[0] != '/' || strings.ContainsAny(path, "\x00\n") || strings.Contains(path+"/", "/../") {
					t.Fatalf("%s %q: bad path %q", flag, s, path)
				}
			}
			if why, bad := DangerousSource(m.Source, "/home/ann"); bad {
				t.Fatalf("%s %q: dangerous source %q was accepted: %s", flag, s, m.Source, why)
			}
			if m.Write && !strings.Contains(s, "rw") && !strings.Contains(s, "=") {
				t.Fatalf("%s %q: became writable", flag, s)
			}
		}
	})
}

func FuzzParseRun(f *testing.F) {
	for _, s := range []string{"--memory 64m host true", "-qi -m64m script.py", "- --lang python -- x", "-c x --lang python", "--user=1:2 --rm -- a",
		"-v .:/work:rw --json x", "--no-such", "-it x", "--", "--seccomp f.bpf true", "-e TOKEN -e A= true", "--device-read-bps /dev/a:1m x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		args := words(line)
		p, err := testHost().Parse("run", args)
		if err != nil {
			if text := shown(t, err); !strings.HasPrefix(text, "error 12") {
				t.Fatalf("%q: %s", args, text)
			}
			return
		}
		if p.Help {
			return
		}
		if err := p.Spec.Validate(); err != nil {
			t.Fatalf("%q: accepted but not valid: %v", args, err)
		}
		again, err := testHost().Parse("run", args)
		if err != nil || again.Spec.Digest() != p.Spec.Digest() {
			t.Fatalf("%q: not the same twice: %v", args, err)
		}
	})
}
