package recipe

import (
	"strings"
	"testing"

	"sandglass/pkg/image/manifest"
)

func TestPattern(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"/usr/share/doc", "usr/share/doc", true},
		{"/usr/share/doc", "usr/share/doc/x/y", true},
		{"/usr/share/doc", "usr/share/docs", false},
		{"/usr/share/doc", "usr/share", false},
		{"/usr/lib/python3*/test", "usr/lib/python3.11/test/a.py", true},
		{"/usr/lib/python3*/test", "usr/lib/x/python3.11/test", false},
		{"/usr/lib/**/tests", "usr/lib/tests", true},
		{"/usr/lib/**/tests", "usr/lib/a/b/tests/c", true},
		{"/usr/lib/**/tests", "usr/lib/a/b/test", false},
		{"/**/man", "usr/share/man/man1/x", true},
		{"/etc/*", "etc", false},
		{"/a/?[bc]", "a/xc", true},
		{"/a/?[bc]", "a/xd", false},
	} {
		p, err := ParsePattern(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Match(c.name); got != c.want {
			t.Errorf("%s and %s: %v, want %v", c.pattern, c.name, got, c.want)
		}
	}
	for _, bad := range []string{"", "usr", "/", "/*", "/**", "/**/*", "/a/../b", "/a/[", "/a/x**", `/a/\*`, "/a//b", "/a/"} {
		if _, err := ParsePattern(bad); err == nil {
			t.Errorf("%q is taken for a pattern", bad)
		}
	}
}

func TestRecipe(t *testing.T) {
	if _, err := Parse("x", "about  a   test\npackage bash 5.2-1 # the rest of a line is no comment\n", "amd64"); err == nil || err.Error() != "recipe x: line 2: package has 11 words" {
		t.Errorf("words behind a line: %v", err)
	}
	r, err := Parse("x", "package bash *\nlink a/{triplet}/b /c/{arch}\nkeep /usr/share/doc/x\nremove /opt/*\n", "arm64")
	if err != nil {
		t.Fatal(err)
	}
	if l := r.Links[0]; l.Path != "/c/arm64" || l.Target != "a/aarch64-linux-gnu/b" || l.Resolve() != "/c/a/aarch64-linux-gnu/b" {
		t.Errorf("the link is %+v, to %s", l, l.Resolve())
	}
	for name, want := range map[string]bool{
		"usr/share/doc/x/copyright": false, "usr/share/doc/y": true, "opt/a": true, "usr/bin/dpkg-deb": true, "usr/bin/d": false,
		"usr/lib/locale/C.utf8/LC_CTYPE": false, "usr/lib/locale/sv_SE/LC_CTYPE": true, "var/lib/dpkg/status": true,
	} {
		if got := r.Removes(name); got != want {
			t.Errorf("%s is left out: %v, want %v", name, got, want)
		}
	}
	for _, bad := range []string{
		"", "# nothing", "package bash", "package bash * *", "package Bash *", "package b *", "package bash *\npackage bash *", "package bash =1",
		"package bash *\nwithout bash", "package bash *\nenv 1=2", "package bash *\nenv A", "package bash *\ncmd a\ncmd b", "package bash *\njoin /a", "package bash *\nlink x y",
		"package bash *\n" + strings.Repeat("x", maxLine+1), "package bash *\n#" + strings.Repeat("\nabout x", maxText/8), "package bash *\nabout \u00fc", "package bash *\x00",
	} {
		if _, err := Parse("x", bad, "amd64"); err == nil {
			t.Errorf("%.60q is taken for a recipe", bad)
		}
	}
}

func TestLock(t *testing.T) {
	r, err := Parse("x", "package bash *\npackage libc6 2.36\nwithout dpkg\n", "amd64")
	if err != nil {
		t.Fatal(err)
	}
	sum := strings.Repeat("a", 64)
	list := []manifest.Package{{Name: "bash", Version: "1:5~x", Architecture: "amd64", Sum: sum}, {Name: "libc6", Version: "2.36", Architecture: "all", Sum: sum}}
	got, err := r.ParseLock("l", Lock(list), "amd64")
	if err != nil || len(got) != 2 || got[0] != list[0] || got[1] != list[1] {
		t.Fatalf("%+v, %v", got, err)
	}
	text := Lock(list)
	for _, bad := range []string{
		"", "package" + text, strings.Replace(text, "2.36", "2.37", 1), strings.Replace(text, "bash", "dash", 1), strings.Replace(text, " all", " arm64", 1),
		text + list[0].Line(), strings.Replace(text, "bash", "../bash", 1), strings.Replace(text, "1:5~x", "1/../../x", 1), strings.Replace(text, "bash", "-o", 1),
		text + manifest.Package{Name: "dpkg", Version: "1", Architecture: "all", Sum: sum}.Line(), strings.Replace(text, sum, sum[1:], 1), text + "\n", text + "x\n",
	} {
		if _, err := r.ParseLock("l", bad, "amd64"); err == nil {
			t.Errorf("%q is taken for a lock", bad)
		}
	}
}
