package apt

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A source of the host's that nobody signs is refused, in each way to write it.
func TestUncheckedSources(t *testing.T) {
	dir := t.TempDir()
	for text, bad := range map[string]bool{
		"deb [trusted=yes] http://x y main":                   true,
		"deb [ arch=amd64 trusted = yes ] http://x y main":    true,
		"Types: deb\nURIs: http://x\nTrusted: Yes\n":          true,
		"Types: deb\nAllow-Insecure: true\n":                  true,
		"deb [allow-weak=1] http://x y main":                  true,
		"deb [signed-by=/k] http://x y main":                  false,
		"# deb [trusted=yes] http://x y main\ndeb http://x y": false,
		"Types: deb\nTrusted: no\n":                           false,
	} {
		for _, file := range []string{"sources.list", "parts/a.list", "parts/a.sources"} {
			if err := os.MkdirAll(dir+"/parts", 0o755); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, file)
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := checkHost(dir+"/sources.list", dir+"/parts"); (err != nil) != bad {
				t.Errorf("%s: %q: %v", file, text, err)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestParseURIs(t *testing.T) {
	sum := strings.Repeat("b", 64)
	line := "'http://x/pool/l.deb' libc6_2%3a2.36-9+deb12u1_amd64.deb 2757168 SHA256:" + sum
	list, err := parseURIs("noise\n"+line+"\n'http://x/pool/a.deb' adduser_3.134_all.deb 1 SHA256:"+sum+"\n", "amd64")
	if err != nil || len(list) != 2 || list[0].Name != "adduser" || list[1].Name != "libc6" || list[1].Version != "2:2.36-9+deb12u1" || list[1].Sum != sum {
		t.Errorf("%+v, %v", list, err)
	}
	for _, bad := range []string{
		"", "noise", strings.Replace(line, "SHA256", "MD5Sum", 1), strings.Replace(line, sum, sum[1:], 1), strings.Replace(line, "libc6_", "../libc6_", 1),
		strings.Replace(line, "%3a", "%2f..%2f", 1), strings.Replace(line, "_amd64", "_arm64", 1), strings.Replace(line, "libc6_2", "libc6", 1), line + " x",
	} {
		if list, err := parseURIs(bad, "amd64"); err == nil {
			t.Errorf("%q: %+v", bad, list)
		}
	}
}
