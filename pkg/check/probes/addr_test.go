package probes

import "testing"

func TestAddr(t *testing.T) {
	for text, want := range map[string]string{
		"127.0.0.1:80":            "127.0.0.1:80",
		"[::1]:443":               "[0:0:0:0:0:0:0:1]:443",
		"[2001:db8::7:8]:1":       "[2001:db8:0:0:0:0:7:8]:1",
		"[::]:65535":              "[0:0:0:0:0:0:0:0]:65535",
		"[1:2:3:4:5:6:7:8]:9":     "[1:2:3:4:5:6:7:8]:9",
		"127.0.0.1:65536":         "",
		"127.0.0.1":               "",
		"127.0.0:80":              "",
		"127.0.0.256:80":          "",
		"[1:2:3:4:5:6:7]:80":      "",
		"[1:2:3:4:5:6:7:8::]:80":  "",
		"[1:2:3:4:5:6:7:8:9]:80":  "",
		"[10000::]:80":            "",
		"":                        "",
		"[fe80::1%eth0]:80":       "",
		"example.org:80":          "",
		"[1:2:3:4:5:6:7::]:80":    "[1:2:3:4:5:6:7:0]:80",
		"[::2:3:4:5:6:7:8]:80":    "[0:2:3:4:5:6:7:8]:80",
		"[0:0:0:0:0:0:0:1]:12345": "[0:0:0:0:0:0:0:1]:12345",
	} {
		a, ok := parseAddr(text)
		if ok != (want != "") || ok && a.String() != want {
			t.Errorf("%q: %v %v, want %q", text, a, ok, want)
		}
	}
}

// TestParse: neither half of an answer can forge a line, and what is no answer
// is left out.
func TestParse(t *testing.T) {
	out := "\"a\" \"1\"\nnoise\n\"b\\n\\\"c\\\" \\\"d\\\"\" \"x\\ny\"\n\"open\" \"\n\"only\"\n\"a b\" \"\"\n"
	got := Parse([]byte(out))
	want := Answers{"a": "1", "b\n\"c\" \"d\"": "x\ny", "a b": ""}
	if len(got) != len(want) {
		t.Errorf("got %q", got)
	}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%q: %q, want %q", k, got[k], v)
		}
	}
}

// TestQuery is the question for test.example.org, byte for byte.
func TestQuery(t *testing.T) {
	const want = "Zl\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x04test\x07example\x03org\x00\x00\x01\x00\x01"
	if got := string(Query(Host)); got != want {
		t.Errorf("%q", got)
	}
}
