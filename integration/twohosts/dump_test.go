package twohosts

import (
	_ "embed"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

//go:embed testdata/dump.c
var dumpSource string

// dump is what the program learned: names and values.
type dump map[string]string

// parse reads the program's output. Files of many facts are taken apart, so that
// each fact that differs is one name.
func parse(t *testing.T, text string) dump {
	t.Helper()
	d := dump{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !ok {
			t.Fatalf("a line without a tab: %.200q", line)
		}
		lines := strings.Split(strings.TrimSuffix(value, `\x0a`), `\x0a`)
		switch name {
		case "/proc/self/mountinfo":
			d.mountinfo(lines)
		case "/proc/self/mounts", "/proc/self/mountstats":
			for i, l := range lines {
				d[fmt.Sprintf("%s:%d", name, i)] = l
			}
		case "/proc/self/status", "/proc/self/limits":
			for _, l := range lines {
				key := strings.TrimRight(l[:min(len(l), 24)], " ")
				if k, _, ok := strings.Cut(l, ":"); ok {
					key = k
				}
				d[name+":"+key] = l
			}
		default:
			if _, twice := d[name]; !twice {
				d[name] = value
			}
		}
	}
	if d["end"] != "end" {
		t.Fatalf("the program did not come to its end: %d names", len(d))
	}
	return d
}

// mountinfo takes apart /proc/self/mountinfo (proc_pid_mountinfo(5)). A mount
// point that has several is told apart by a number.
func (d dump) mountinfo(lines []string) {
	seen := map[string]int{}
	for _, l := range lines {
		f := strings.Fields(l)
		dash := slices.Index(f, "-")
		if dash < 6 || len(f) < dash+4 {
			d["mountinfo:malformed"] = l
			continue
		}
		point := f[4]
		if seen[point]++; seen[point] > 1 {
			point += fmt.Sprintf("#%d", seen[point])
		}
		for i, field := range []string{"id", "parent", "dev", "root", "point", "options"} {
			d["mountinfo:"+point+"."+field] = f[i]
		}
		d["mountinfo:"+point+".propagation"] = strings.Join(f[6:dash], " ")
		d["mountinfo:"+point+".type"] = f[dash+1]
		d["mountinfo:"+point+".source"] = f[dash+2]
		d["mountinfo:"+point+".super"] = f[dash+3]
	}
}

// differs lists the names whose values are not the same.
func differs(a, b dump) []string {
	var names []string
	for name, v := range a {
		if w, ok := b[name]; !ok || v != w {
			names = append(names, name)
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// leak is one row of docs/LEAKS.md.
type leak struct {
	text     string
	patterns []*regexp.Regexp
}

var code = regexp.MustCompile("`([^`]+)`")

// leaks reads the tables of docs/LEAKS.md. The names stand in the second column,
// with * for anything.
func leaks(t *testing.T) []leak {
	t.Helper()
	text, err := os.ReadFile("../../docs/LEAKS.md")
	if err != nil {
		t.Fatal(err)
	}
	var list []leak
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !strings.HasPrefix(line, "|") || len(f) != 3 || !strings.Contains(f[1], "`") {
			continue
		}
		l := leak{text: strings.TrimSpace(f[0])}
		if reason := strings.TrimSpace(f[2]); len(reason) < 20 {
			t.Errorf("%s has no reason in docs/LEAKS.md", l.text)
		}
		for _, m := range code.FindAllStringSubmatch(f[1], -1) {
			l.patterns = append(l.patterns, regexp.MustCompile("^"+strings.ReplaceAll(regexp.QuoteMeta(m[1]), `\*`, ".*")+"$"))
		}
		list = append(list, l)
	}
	if len(list) == 0 {
		t.Fatal("docs/LEAKS.md has no table")
	}
	return list
}

func (l *leak) covers(name string) bool {
	return slices.ContainsFunc(l.patterns, func(p *regexp.Regexp) bool { return p.MatchString(name) })
}

// unlisted are the names that no row covers.
func unlisted(list []leak, names []string) []string {
	var left []string
	for _, name := range names {
		if !slices.ContainsFunc(list, func(l leak) bool { return l.covers(name) }) {
			left = append(left, name)
		}
	}
	return left
}

// report fails the test for each name that tells two hosts apart and is not
// listed. With -v it prints what is, byte by byte.
func report(t *testing.T, list []leak, a, b dump) {
	t.Helper()
	names := differs(a, b)
	if testing.Verbose() {
		for _, name := range names {
			t.Logf("differs: %s: %q, %q", name, a[name], b[name])
		}
	}
	for _, name := range unlisted(list, names) {
		t.Errorf("%s differs and is not in docs/LEAKS.md: %.300q, %.300q", name, a[name], b[name])
	}
}

func TestParse(t *testing.T) {
	a := parse(t, "/proc/self/mountinfo\t9 1 0:5 /a /b ro,nosuid shared:1 - tmpfs none rw,size=1k\\x0a10 9 0:6 / /b rw - proc none rw\\x0a\nuname.release\t6.1\nend\tend\n")
	b := parse(t, "/proc/self/mountinfo\t9 1 0:5 /secret /b ro,nosuid shared:1 - tmpfs none rw,size=1k\\x0a10 9 0:6 / /b rw - proc none rw\\x0a\nuname.nodename\tx\nend\tend\n")
	want := []string{"mountinfo:/b.root", "uname.nodename", "uname.release"}
	if got := differs(a, b); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	list := []leak{{patterns: []*regexp.Regexp{regexp.MustCompile(`^uname\..*$`)}}}
	if got := unlisted(list, want); !slices.Equal(got, want[:1]) {
		t.Errorf("%q, want %q", got, want[:1])
	}
}
