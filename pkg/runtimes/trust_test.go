package runtimes

import (
	"maps"
	"strings"
	"testing"
)

// TestForScript: a #! line brings what the caller's PATH leads to, and no more.
func TestForScript(t *testing.T) {
	files := maps.Clone(pyenv)
	maps.Copy(files, map[string]string{
		"proj/pyvenv.cfg": "home = /usr/bin", "proj/bin/python3": "-> /bin/sh", "proj/secrets/key": "key",
		"real/bin/python3": "x", "real/lib/python3/os.py": "", "real/lib/python3.12/os.py": "", "real/key": "key",
		"n/bin/node": "x", "n/lib/node_modules/npm/x": "", "p/bin/perl": "x", "p/lib/perl5/x": "", "r/bin/ruby": "x", "r/lib/ruby/x": "",
		"tool/bin/tool": "x", "tool/lib/tool/x": "", "one/deno": "x", "b/node": "-> $T/n/bin/node",
		"links/python3": "-> $T/real/bin/python3", "links/sh": "-> /bin/sh", "links/proc": "-> /proc/self/root", "text/key": "key", "ndir": "-> n/bin",
	})
	root := tree(t, files)
	sh, _, err := resolve("/bin/sh")
	must(t, err)
	const foreign = "PATH does not lead to it"
	for _, tt := range []struct{ name, dirs, ask, want, refused string }{
		{"virtual environment", "", "$T/proj/bin/python3", "", foreign},
		{"prefix", "", "$T/real/bin/python3", "", foreign},
		{"node", "", "$T/n/bin/node", "", foreign},
		{"perl", "", "$T/p/bin/perl", "", foreign},
		{"ruby", "", "$T/r/bin/ruby", "", foreign},
		{"a program", "", "$T/tool/bin/tool", "", foreign},
		{"one file", "", "$T/one/deno", "", foreign},
		{"no program", "", "$T/text/key", "", foreign},
		{"link to a prefix", "", "$T/links/python3", "", foreign},
		{"version of a pyenv that is not on PATH", "sys/bin", py311 + "/bin/python3.11", "", foreign},
		{"directory of PATH", "n/bin", "$T/n/bin/node", at("$T/n", "node"), ""},
		{"directory of PATH by a link", "n/bin", "$T/ndir/node", at("$T/n", "node"), ""},
		{"PATH by a link", "ndir", "$T/n/bin/node", at("$T/n", "node"), ""},
		{"link in a directory of PATH", "b", "$T/n/bin/node", at("$T/n", "node"), ""},
		{"shim", "home/u/.pyenv/shims", "$T/home/u/.pyenv/shims/python3", at(py311, "python3.11"), ""},
		{"version of a pyenv on PATH", "home/u/.pyenv/shims", py1210 + "/bin/python3", at(py1210, "python3.12"), ""},
		{"link to the host view", "", "$T/links/sh", sh, ""},
		{"host view", "", sh, sh, ""},
		{"bare name", "n/bin", "node", at("$T/n", "node"), ""},
		{"proc", "", "/proc/self/exe", "", "are others inside"},
		{"proc's root", "n/bin", "/proc/self/root$T/n/bin/node", "", "are others inside"},
		{"proc's cwd", "n/bin", "/proc/self/cwd/python3", "", "are others inside"},
		{"sys", "", "/sys/kernel/x", "", "are others inside"},
		{"dev", "", "/dev/fd/3", "", "are others inside"},
		{"proc by a link", "n/bin", "$T/links/proc$T/n/bin/node", "", "are others inside"},
		{"missing", "n/bin", "/no/such/node", "", "not found on this host"},
		{"missing in PATH", "n/bin", "$T/n/bin/python3", "", "not found on this host"},
		{"not executable", "text", "$T/text/key", "", "found but not executable"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := finder(root, strings.Fields(tt.dirs)).ForScript(strings.ReplaceAll(tt.ask, "$T", root))
			if tt.refused == "" {
				if err != nil || show(root, got) != tt.want {
					t.Errorf("%s, %v\nwant %s", show(root, got), err, tt.want)
				}
				return
			}
			exit := 126
			if strings.HasPrefix(tt.name, "missing") {
				exit = 127
			}
			// What a script says is in no hint: hints are pasted.
			r := wantRefusal(t, err, exit, tt.refused)
			if hints := strings.Join(r.Hints, "\n"); hints == "" || strings.Contains(hints, root) || strings.Contains(hints, "/proc") || strings.Contains(hints, "chmod") {
				t.Errorf("hints %q", r.Hints)
			}
		})
	}
}

// TestLinkBringsNoPrefix: a link that somebody left in a directory is no choice
// of the caller's, who named the link.
func TestLinkBringsNoPrefix(t *testing.T) {
	root := tree(t, map[string]string{
		"real/bin/python3.12": "x", "real/lib/python3.12/os.py": "", "task/python3": "-> $T/real/bin/python3.12", "real/bin/python3": "-> python3.12",
	})
	alone := "$T/real/bin/python3.12 prefix=$T/real/bin/python3.12 file bin=$T/real/bin"
	for _, tt := range []struct{ dirs, ask, want string }{
		{"", "/task/python3", alone},
		{"real/bin", "/task/python3", at("$T/real", "python3.12")},
		{"", "/real/bin/python3", at("$T/real", "python3.12")},
	} {
		got, err := finder(root, strings.Fields(tt.dirs)).Find(root + tt.ask)
		if err != nil || show(root, got) != tt.want {
			t.Errorf("PATH=%s %s: %s, %v, want %s", tt.dirs, tt.ask, show(root, got), err, tt.want)
		}
	}
}
