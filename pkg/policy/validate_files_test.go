package policy

import (
	"fmt"
	"strings"
	"testing"
)

func TestFiles(t *testing.T) {
	many := make([]File, MaxFiles+1)
	for i := range many {
		many[i].Name = fmt.Sprintf("f%d", i)
	}
	sources := make([]File, maxSources+1)
	for i := range sources {
		sources[i] = File{Name: fmt.Sprintf("f%d", i), Source: "/srv/x"}
	}
	named := func(names ...string) (list []File) {
		for _, n := range names {
			list = append(list, File{Name: n})
		}
		return list
	}
	for _, c := range []struct {
		files []File
		bend  func(*Spec)
		want  string // how the error begins, "" for none
	}{
		{files: named("a", "d/a", "d/e/f", "..a", "a..", ".b", "-rf", "é", "a b")},
		{files: many[:MaxFiles]},
		{files: many, want: "files: 1001 are more than 1000"},
		{files: sources[:maxSources]},
		{files: sources, want: "files: 101 come from the host, more than 100"},
		{files: named(""), want: `file "": the name is empty`},
		{files: named("."), want: `file ".": the name is empty`},
		{files: named("/etc/passwd"), want: `file "/etc/passwd": the name is absolute`},
		{files: named(".."), want: `file "..": the name leads out of /work`},
		{files: named("a/../../b"), want: `file "a/../../b": the name leads out of /work`},
		{files: named("a/.."), want: `file "a/..": the name leads out of /work`},
		{files: named("a//b"), want: `file "a//b": the name is not clean`},
		{files: named("./a"), want: `file "./a": the name is not clean`},
		{files: named("a/"), want: `file "a/": the name is not clean`},
		{files: named("a\x00b"), want: `file "a\x00b": the name has a control character`},
		{files: named("a\nb"), want: `file "a\nb": the name has a control character`},
		{files: named(strings.Repeat("a", 256)), want: `file "` + strings.Repeat("a", 40)},
		{files: named(strings.Repeat("a/", 32) + "a"), want: `file "a/a/`},
		{files: named(strings.Repeat("abcdefg/", 129)), want: `file "abcdefg/`},
		{files: named("a", "b", "a"), want: `file "a" is given twice`},
		{files: named("a/b", "a"), want: `file "a" is a directory of another file as well`},
		{files: []File{{Name: "a", Source: "rel"}}, want: `file "a": the source "rel" is not absolute`},
		{files: []File{{Name: "a", Source: "/x", Content: []byte("x")}}, want: `file "a" has both a source and content`},
		{files: []File{{Name: "a", Content: make([]byte, 64<<10)}}, bend: func(s *Spec) { s.Limits.Disk = 64 << 10 }},
		{files: []File{{Name: "a", Content: make([]byte, 64<<10+1)}}, bend: func(s *Spec) { s.Limits.Disk = 64 << 10 },
			want: "--disk: the files are 65537 bytes and do not fit into 64k"},
		{files: []File{{Name: "a", Content: make([]byte, 2<<20)}}, bend: func(s *Spec) { s.Limits.Memory = 8 << 20 }},
		{files: []File{{Name: "a", Content: make([]byte, 2<<20+1)}}, bend: func(s *Spec) { s.Limits.Memory = 8 << 20 },
			want: "--memory: the files are 2097153 bytes"},
		{files: many[:1], bend: func(s *Spec) { s.Limits.Memory = minMemory }},
		{files: many[:60], bend: func(s *Spec) { s.Limits.DiskInodes = 64 }, want: "--disk-inodes: 60 files do not fit into 64"},
		{files: named("a"), bend: func(s *Spec) { s.Workdir = "/work/a" }, want: `file "a": --workdir is there`},
		{files: named("a/b"), bend: func(s *Spec) { s.Workdir = "/work/a" }},
		{files: named("a"), bend: func(s *Spec) { s.Workdir = "/work/a/b" }, want: `file "a": --workdir is there`},
		{files: named("a/b"), bend: func(s *Spec) { s.Mounts = []Mount{{Source: "/srv", Target: "/work/a"}} }, want: `file "a/b": the mount "/work/a" is there`},
		{files: named("a"), bend: func(s *Spec) { s.Mounts = []Mount{{Source: "/srv", Target: "/work/a/b"}} }, want: `file "a": the mount "/work/a/b" is there`},
		{files: named("ab"), bend: func(s *Spec) { s.Mounts = []Mount{{Source: "/srv", Target: "/work/a"}} }},
		{bend: func(s *Spec) { s.Keep, s.Limits.OutBytes = true, MaxKept }},
		{bend: func(s *Spec) { s.Keep, s.Limits.OutBytes = true, MaxKept+1 }, want: "--out-limit: "},
		{bend: func(s *Spec) { s.Keep, s.Limits.OutBytes, s.Out = true, 1, "/srv/out" }, want: "--out: artifacts go into a directory or into the result"},
	} {
		s := okSpec()
		s.Files = c.files
		if c.bend != nil {
			c.bend(&s)
		}
		err := s.Validate()
		switch {
		case err == nil && c.want != "":
			t.Errorf("%.80q: no error, want %q", fmt.Sprint(c.files), c.want)
		case err != nil && (c.want == "" || !strings.HasPrefix(err.Error(), c.want)):
			t.Errorf("%.80q: %v, want %q", fmt.Sprint(c.files), err, c.want)
		case err != nil:
			shown(t, err) // a refusal
		}
	}
}
