package runtimes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const pyenvShim = `x:#!/usr/bin/env bash
program="${0##*/}"
export PYENV_ROOT="$T/home/u/.pyenv"
exec "$T/home/u/.pyenv/libexec/pyenv" exec "$program" "$@"
`

// pyenv is a root with three versions, one of them without python3.
var pyenv = map[string]string{
	"home/u/.pyenv/shims/python":                          pyenvShim,
	"home/u/.pyenv/shims/python3":                         pyenvShim,
	"home/u/.pyenv/version":                               "3.11.7\n",
	"home/u/.pyenv/versions/3.11.7/bin/python":            "-> python3.11",
	"home/u/.pyenv/versions/3.11.7/bin/python3":           "-> python3.11",
	"home/u/.pyenv/versions/3.11.7/bin/python3.11":        "x",
	"home/u/.pyenv/versions/3.11.7/lib/python3.11/os.py":  "",
	"home/u/.pyenv/versions/3.12.1/bin/python3":           "-> python3.12",
	"home/u/.pyenv/versions/3.12.1/bin/python3.12":        "x",
	"home/u/.pyenv/versions/3.12.1/lib/python3.12/os.py":  "",
	"home/u/.pyenv/versions/3.12.10/bin/python3":          "-> python3.12",
	"home/u/.pyenv/versions/3.12.10/bin/python3.12":       "x",
	"home/u/.pyenv/versions/3.12.10/lib/python3.12/os.py": "",
	"home/u/.pyenv/versions/3.12.11rc1/bin/python3":       "x",
	"home/u/.pyenv/versions/2.7.18/bin/python":            "x",
	"home/u/task":     "/",
	"sys/bin/python3": "x",
}

const (
	py311  = "$T/home/u/.pyenv/versions/3.11.7"
	py1210 = "$T/home/u/.pyenv/versions/3.12.10"
	sysPy  = "$T/sys/bin/python3 prefix=$T/sys/bin/python3 file bin=$T/sys/bin"
)

func at(prefix, exe string) string {
	return prefix + "/bin/" + exe + " prefix=" + prefix + " bin=" + prefix + "/bin"
}

func TestFindPyenv(t *testing.T) {
	for _, tt := range []struct {
		name  string
		ask   string
		files map[string]string
		env   string
		want  string
	}{
		{name: "global version", ask: "python3", want: at(py311, "python3.11")},
		{name: "python by the same name", ask: "python", want: at(py311, "python3.11")},
		{name: "alias", ask: "py", want: at(py311, "python3.11")},
		{name: "environment wins", ask: "python3", env: "PYENV_VERSION=3.12.10", want: at(py1210, "python3.12")},
		{name: "newest of a partial version", ask: "python3", env: "PYENV_VERSION=3.12", want: at(py1210, "python3.12")},
		{name: "prefixed version", ask: "python3", env: "PYENV_VERSION=python-3.12", want: at(py1210, "python3.12")},
		{name: "several versions, first that has it", ask: "python3", env: "PYENV_VERSION=2.7.18:3.12", want: at(py1210, "python3.12")},
		{name: "system", ask: "python3", env: "PYENV_VERSION=system", want: sysPy},
		{name: "version that is missing", ask: "python3", env: "PYENV_VERSION=9.9", want: sysPy},
		{name: "local file", ask: "python3", files: map[string]string{"home/u/task/.python-version": "# why\n\n3.12.10\n"}, want: at(py1210, "python3.12")},
		{name: "file of a parent", ask: "python3", files: map[string]string{"home/u/.python-version": "3.12.10"}, want: at(py1210, "python3.12")},
		{name: "several lines", ask: "python3", files: map[string]string{"home/u/task/.python-version": "2.7.18\r\n3.12.10\r\n"}, want: at(py1210, "python3.12")},
		{name: "hostile version", ask: "python3",
			files: map[string]string{"home/u/task/.python-version": "../../../../evil\n", "evil/bin/python3": "x"}, want: sysPy},
		{name: "hostile link", ask: "python3",
			files: map[string]string{"home/u/task/.python-version": "-> $T/other", "other": "3.12.10"}, want: at(py311, "python3.11")},
		{name: "hostile directory", ask: "python3", files: map[string]string{"home/u/task/.python-version/x": ""}, want: at(py311, "python3.11")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := map[string]string{}
			for _, m := range []map[string]string{pyenv, tt.files} {
				for k, v := range m {
					files[k] = v
				}
			}
			root := tree(t, files)
			f := finder(root, []string{"home/u/.pyenv/shims", "sys/bin"}, tt.env)
			got, err := f.Find(tt.ask)
			if err != nil || show(root, got) != tt.want || got.Name != tt.ask {
				t.Errorf("Find(%q) = %s, %v\nwant %s", tt.ask, show(root, got), err, tt.want)
			}
		})
	}
}

func TestFindPyenvNowhere(t *testing.T) {
	root := tree(t, pyenv)
	f := finder(root, []string{"home/u/.pyenv/shims"}, "PYENV_VERSION=9.9")
	_, err := f.Find("python3")
	r := wantRefusal(t, err, 127, `pyenv has no version 9.9 for python3 (set by PYENV_VERSION)`)
	if r.Hints[0] != "apt-get install python3" {
		t.Errorf("hints %q", r.Hints)
	}
}

const rbenvShim = "x:#!/usr/bin/env bash\nexec \"/usr/local/bin/rbenv\" exec \"$program\" \"$@\"\n"

// TestFindOthers has one tree per way of installing an interpreter.
func TestFindOthers(t *testing.T) {
	for _, tt := range []struct {
		name  string
		ask   string
		dirs  string
		env   string
		files map[string]string
		want  string
	}{
		{name: "uv", ask: "python3.12", dirs: "home/u/.local/bin", files: map[string]string{
			"home/u/.local/bin/python3.12":                                            "-> $T/home/u/.local/share/uv/python/cpython-3.12-linux/bin/python3.12",
			"home/u/.local/share/uv/python/cpython-3.12-linux":                        "-> cpython-3.12.3-linux",
			"home/u/.local/share/uv/python/cpython-3.12.3-linux/bin/python3.12":       "x",
			"home/u/.local/share/uv/python/cpython-3.12.3-linux/lib/python3.12/os.py": "",
		}, want: at("$T/home/u/.local/share/uv/python/cpython-3.12.3-linux", "python3.12")},
		{name: "conda", ask: "python", dirs: "home/u/miniconda3/bin", files: map[string]string{
			"home/u/miniconda3/bin/python":           "-> python3.13",
			"home/u/miniconda3/bin/python3.13":       "x",
			"home/u/miniconda3/lib/python3.13/os.py": "",
		}, want: at("$T/home/u/miniconda3", "python3.13")},
		{name: "python in opt with a plain name", ask: "python", dirs: "opt/py/bin", files: map[string]string{
			"opt/py/bin/python": "x", "opt/py/lib/python3.14/os.py": "",
		}, want: at("$T/opt/py", "python")},
		{name: "only python3", ask: "python", dirs: "b", files: map[string]string{"b/python3": "x"},
			want: "$T/b/python3 prefix=$T/b/python3 file bin=$T/b"},
		{name: "python before python3 in all of PATH", ask: "python", dirs: "a b", files: map[string]string{"a/python3": "x", "b/python": "x"},
			want: "$T/b/python prefix=$T/b/python file bin=$T/b"},
		{name: "python3 is never python", ask: "python3", dirs: "a b", files: map[string]string{"a/python": "x", "b/python3": "x"},
			want: "$T/b/python3 prefix=$T/b/python3 file bin=$T/b"},
		{name: "nvm", ask: "node", dirs: "home/u/.nvm/versions/node/v20.11.0/bin", files: map[string]string{
			"home/u/.nvm/versions/node/v20.11.0/bin/node":                      "x",
			"home/u/.nvm/versions/node/v20.11.0/lib/node_modules/npm/index.js": "",
		}, want: at("$T/home/u/.nvm/versions/node/v20.11.0", "node")},
		{name: "fnm", ask: "js", dirs: "run/fnm/1/bin", files: map[string]string{
			"run/fnm/1": "-> $T/fnm/node-versions/v22/installation",
			"fnm/node-versions/v22/installation/bin/node":            "x",
			"fnm/node-versions/v22/installation/include/node/node.h": "",
		}, want: at("$T/fnm/node-versions/v22/installation", "node")},
		{name: "rbenv", ask: "ruby", dirs: "rb/shims", files: map[string]string{
			"rb/shims/ruby": rbenvShim, "rb/version": "3.3.0\n",
			"rb/versions/3.3.0/bin/ruby": "x", "rb/versions/3.3.0/lib/ruby/x.rb": "",
		}, want: at("$T/rb/versions/3.3.0", "ruby")},
		{name: "asdf", ask: "node", dirs: "home/u/.asdf/shims", files: map[string]string{
			"home/u/.asdf/shims/node":                                 "x:#!/usr/bin/env bash\n# asdf-plugin: nodejs 20.1.0\nexec /x/asdf exec \"node\" \"$@\"\n",
			"home/u/.tool-versions":                                   "nodejs 18.0.0\n",
			"home/u/task/.tool-versions":                              "python 3.12.1\nnodejs 20.1.0 # why\n",
			"home/u/.asdf/installs/nodejs/20.1.0/bin/node":            "x",
			"home/u/.asdf/installs/nodejs/20.1.0/include/node/node.h": "",
		}, want: at("$T/home/u/.asdf/installs/nodejs/20.1.0", "node")},
		{name: "asdf with a path", ask: "node", dirs: "home/u/.asdf/shims b", files: map[string]string{
			"home/u/.asdf/shims/node":    "x:#!/usr/bin/env bash\n# asdf-plugin: nodejs 20.1.0\nexec /x/asdf exec \"node\" \"$@\"\n",
			"home/u/task/.tool-versions": "nodejs path:$T/evil\n", "evil/bin/node": "x", "b/node": "x",
		}, want: "$T/b/node prefix=$T/b/node file bin=$T/b"},
		{name: "mise", ask: "python", dirs: "home/u/.local/share/mise/shims", files: map[string]string{
			"home/u/.local/share/mise/shims/python": "-> $T/home/u/.local/bin/mise", "home/u/.local/bin/mise": "x",
			"home/u/.config/mise/config.toml":                                      "[env]\npython = \"9\"\n[tools]\nnode = \"20\"\npython = \"3.12\"\n",
			"home/u/.local/share/mise/installs/python/3.12":                        "-> ./3.12.4",
			"home/u/.local/share/mise/installs/python/3.12.4/bin/python":           "-> python3.12",
			"home/u/.local/share/mise/installs/python/3.12.4/bin/python3.12":       "x",
			"home/u/.local/share/mise/installs/python/3.12.4/lib/python3.12/os.py": "",
		}, want: at("$T/home/u/.local/share/mise/installs/python/3.12.4", "python3.12")},
		{name: "mise from the task", ask: "node", dirs: "m/shims", files: map[string]string{
			"m/shims/node": "-> $T/bin/mise", "bin/mise": "x", "home/u/task/.tool-versions": "node 20\n", "home/u/task/mise.toml": "[tools]\nruby = \"3\"\n",
			"m/installs/node/20.1.0/bin/node": "x", "m/installs/node/20.1.0/include/node/node.h": "", "m/installs/node/18.1.0/bin/node": "x",
		}, want: at("$T/m/installs/node/20.1.0", "node")},
		{name: "mise from the environment", ask: "node", dirs: "m/shims", env: "MISE_NODE_VERSION=18", files: map[string]string{
			"m/shims/node": "-> $T/bin/mise", "bin/mise": "x", "home/u/task/.tool-versions": "node 20\n",
			"m/installs/node/20.1.0/bin/node": "x", "m/installs/node/18.1.0/include/node/node.h": "", "m/installs/node/18.1.0/bin/node": "x",
		}, want: at("$T/m/installs/node/18.1.0", "node")},
		{name: "mise has nothing set", ask: "node", dirs: "m/shims b", files: map[string]string{"m/shims/node": "-> $T/bin/mise", "bin/mise": "x", "b/node": "x"},
			want: "$T/b/node prefix=$T/b/node file bin=$T/b"},
		{name: "volta without a version", ask: "node", dirs: "v/bin b", files: map[string]string{
			"v/bin/node": "-> volta-shim", "v/bin/volta-shim": "x", "v/tools/user/platform.json": "{\"node\": {\"runtime\": null, \"x\": \"1\"}}", "b/node": "x"},
			want: "$T/b/node prefix=$T/b/node file bin=$T/b"},
		{name: "shim for an unknown command", ask: "black", dirs: "r/shims", files: map[string]string{
			"r/shims/black": pyenvShim, "r/version": "3.12.1", "r/versions/3.12.1/bin/black": "x:#!/x\n"},
			want: "$T/r/versions/3.12.1/bin/black prefix=$T/r/versions/3.12.1/bin/black file bin=$T/r/versions/3.12.1/bin"},
		{name: "volta", ask: "node", dirs: "v/bin", files: map[string]string{
			"v/bin/node": "-> volta-shim", "v/bin/volta-shim": "x",
			"v/tools/user/platform.json":                        "{\n \"node\": {\n  \"runtime\": \"20.11.0\",\n  \"npm\": null } }",
			"v/tools/image/node/20.11.0/bin/node":               "x",
			"v/tools/image/node/20.11.0/lib/node_modules/npm/x": "",
		}, want: at("$T/v/tools/image/node/20.11.0", "node")},
		{name: "deno is one file", ask: "deno", dirs: "home/u/.deno/bin", files: map[string]string{"home/u/.deno/bin/deno": "x", "home/u/.deno/lib/x": ""},
			want: "$T/home/u/.deno/bin/deno prefix=$T/home/u/.deno/bin/deno file bin=$T/home/u/.deno/bin"},
		{name: "go", ask: "go", dirs: "sdk/go/bin", files: map[string]string{"sdk/go/bin/go": "x", "sdk/go/pkg/tool/x": ""}, want: at("$T/sdk/go", "go")},
		{name: "R is a script", ask: "R", dirs: "R/4/bin", files: map[string]string{"R/4/bin/R": "x:#!/bin/sh\n", "R/4/lib/R/x": ""}, want: at("$T/R/4", "R")},
		{name: "the language r is Rscript", ask: "r", dirs: "R/4/bin", files: map[string]string{
			"R/4/bin/R": "x:#!/bin/sh\n", "R/4/bin/Rscript": "x", "R/4/lib/R/x": ""}, want: at("$T/R/4", "Rscript")},
		{name: "unknown command with its own lib", ask: "ghc", dirs: "g/bin", files: map[string]string{"g/bin/ghc": "x", "g/lib/ghc/x": ""}, want: at("$T/g", "ghc")},
		{name: "unknown command beside others", ask: "tool", dirs: "g/bin", files: map[string]string{"g/bin/tool": "x", "g/lib/other/x": "", "g/share/x": ""},
			want: "$T/g/bin/tool prefix=$T/g/bin/tool file bin=$T/g/bin"},
		{name: "busybox keeps the name it is called by", ask: "sh", dirs: "b", files: map[string]string{"b/sh": "-> $T/c/busybox", "c/busybox": "x"},
			want: "$T/b/sh prefix=$T/c/busybox file link=$T/b/sh->$T/c/busybox bin=$T/b"},
		{name: "directory named python", ask: "python3", dirs: "a b", files: map[string]string{"a/python3": "/", "b/python3": "x"},
			want: "$T/b/python3 prefix=$T/b/python3 file bin=$T/b"},
		{name: "not executable", ask: "python3", dirs: "a b", files: map[string]string{"a/python3": "text", "b/python3": "x"},
			want: "$T/b/python3 prefix=$T/b/python3 file bin=$T/b"},
		{name: "symlink loop", ask: "python3", dirs: "a b", files: map[string]string{"a/python3": "-> python3", "b/python3": "x"},
			want: "$T/b/python3 prefix=$T/b/python3 file bin=$T/b"},
		{name: "dangling link", ask: "python3", dirs: "a b", files: map[string]string{"a/python3": "-> nowhere", "b/python3": "x"},
			want: "$T/b/python3 prefix=$T/b/python3 file bin=$T/b"},
		{name: "snap", ask: "node", dirs: "snap/bin b", files: map[string]string{"snap/bin/node": "-> $T/s/snap", "s/snap": "x", "b/node": "x"},
			want: "$T/b/node prefix=$T/b/node file bin=$T/b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := tree(t, tt.files)
			got, err := finder(root, strings.Fields(tt.dirs), tt.env).Find(tt.ask)
			if err != nil || show(root, got) != tt.want {
				t.Errorf("Find(%q) = %s, %v\nwant %s", tt.ask, show(root, got), err, tt.want)
			}
		})
	}
}

func TestFindRefuses(t *testing.T) {
	root := tree(t, map[string]string{
		"a/python3": "text", "rel/python3": "x", "rb/shims/ruby": rbenvShim, "rb/version": "3.9.9", "b/ruby": "x",
		"home/u/.asdf/shims/node": "x:#!/bin/bash\n# asdf-plugin: nodejs 1\nexec asdf exec \"node\"\n", "home/u/.tool-versions": "nodejs 1.2.3",
		"w/perl": "x:#!/bin/sh\nexec /opt/p/bin/perl \"$@\"\n", "esc/\x1b[2J/x": "",
	})
	many := strings.Repeat("/no/such/dir:", 1000)
	for _, tt := range []struct {
		name, path, ask string
		exit            int
		part            string
	}{
		{"empty PATH", "", "python3", 127, "python3: not found: PATH has no absolute directory"},
		{"relative entries", "rel:.::./rel", "python3", 127, "relative entries of PATH are ignored: 4"},
		{"trailing empty entry", root + "/none:", "python3", 127, "relative entries of PATH are ignored: 1"},
		{"thousand entries", many + "/x", "python", 127, "looked for python, python3 in /no/such/dir, /no/such/dir"},
		{"not executable", root + "/a", "python3", 126, "python3: found but not executable: " + root + "/a/python3"},
		{"rbenv stops", root + "/rb/shims:" + root + "/b", "ruby", 127, "rbenv has no version 3.9.9 for ruby (set by " + root + "/rb/version)"},
		{"asdf stops", root + "/home/u/.asdf/shims", "node", 127, "asdf has no version 1.2.3 for node"},
		{"unknown script", root + "/w", "perl", 127, root + "/w/perl is a script of an unknown kind"},
		{"newline in the name", root + "/a", "py\nthon", 125, `interpreter "py\nthon": not a command name`},
		{"empty name", root, "", 125, `interpreter "": not a command name`},
		{"dot", root, "..", 125, "interpreter ..: not a command name"},
		{"relative path", root, "./python3", 125, "interpreter ./python3: not a command name"},
		{"unclean path", root, "/usr/../python3", 125, "interpreter /usr/../python3: not a command name"},
		{"absolute, missing", root, "/no/such/python3", 127, "/no/such/python3: not found on this host"},
		{"escape in PATH", root + "/esc/\x1b[2J", "python3", 127, `\x1b[2J`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := finder(root, nil)
			f.Path = tt.path
			got, err := f.Find(tt.ask)
			if got.Exe != "" {
				t.Errorf("found %+v", got)
			}
			if r := wantRefusal(t, err, tt.exit, tt.part); len(r.What) > 1200 || tt.exit != 125 && len(r.Hints) == 0 {
				t.Errorf("%d bytes, hints %q", len(r.What), r.Hints)
			}
		})
	}
}

// TestHintOfALostVersion: what a file of the task's names is in no hint, for
// `rbenv install X` runs a file X of the current directory.
func TestHintOfALostVersion(t *testing.T) {
	root := tree(t, map[string]string{
		"rb/shims/ruby": rbenvShim, "rb/version": "3.9.9\n", "rb/versions/x": "", "home/u/task/.ruby-version": "evil\n",
	})
	_, err := finder(root, []string{"rb/shims"}).Find("ruby")
	if r := wantRefusal(t, err, 127, "rbenv has no version evil"); strings.Join(r.Hints, "|") != "rbenv versions   # .ruby-version names another" {
		t.Errorf("hints %q", r.Hints)
	}
	f := finder(root, []string{"rb/shims"})
	f.Cwd = root
	_, err = f.Find("ruby")
	if r := wantRefusal(t, err, 127, "rbenv has no version 3.9.9"); strings.Join(r.Hints, "|") != "rbenv install 3.9.9" {
		t.Errorf("hints %q", r.Hints)
	}
}

func TestRelativePathIsIgnored(t *testing.T) {
	root := tree(t, map[string]string{"task/bin/python3": "x", "task/python3": "x"})
	t.Chdir(root + "/task")
	for _, path := range []string{"bin", ".", "", "::", "./bin:bin", "bin:"} {
		f := Finder{Path: path, Cwd: root + "/task"}
		if got, err := f.Find("python3"); err == nil {
			t.Errorf("PATH=%q found %+v", path, got)
		}
	}
}

func TestLongPath(t *testing.T) {
	root := tree(t, map[string]string{"b/python3": "x"})
	var dirs []string
	for i := range 1000 {
		dirs = append(dirs, fmt.Sprintf("d%d", i))
	}
	got, err := finder(root, append(dirs, "b")).Find("python")
	if err != nil || got.Exe != root+"/b/python3" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestNewlineInDirectory(t *testing.T) {
	root := tree(t, map[string]string{"a\nb/python3": "x"})
	_, err := finder(root, []string{"a\nb"}).Find("python3")
	wantRefusal(t, err, 127, `not a place to mount from`)
}

func TestFindAbsolute(t *testing.T) {
	root := tree(t, pyenv)
	got, err := finder(root, nil).Find(root + "/home/u/.pyenv/shims/python3")
	if err != nil || show(root, got) != at(py311, "python3.11") {
		t.Errorf("%s, %v", show(root, got), err)
	}
}

// TestFifoDoesNotBlock: a model can leave anything in the task directory.
func TestFifoDoesNotBlock(t *testing.T) {
	root := tree(t, pyenv)
	mkfifo(t, root+"/home/u/task/.python-version")
	got, err := finder(root, []string{"home/u/.pyenv/shims"}).Find("python3")
	if err != nil || show(root, got) != at(py311, "python3.11") {
		t.Errorf("%s, %v", show(root, got), err)
	}
}

// A script in the place of an interpreter, by PATH, by a path or by a #! line, is
// passed over and never started.
func TestNothingIsStarted(t *testing.T) {
	root := tree(t, map[string]string{
		"w/python3": "x:#!/bin/sh\n: >\"$T/started\"\necho \"$T/py/bin/python3.12\"\n", "py/bin/python3.12": "x", "py/lib/python3.12/os.py": "",
		"n/node": "x:#!/bin/sh\n: >\"$T/started\"\n", "p/perl": "x:#!/bin/sh\n: >\"$T/started\"\n",
	})
	for _, ask := range []string{"python3", "python", "node", "perl", root + "/w/python3", root + "/n/node", root + "/p/perl"} {
		_, err := finder(root, []string{"w", "n", "p"}).Find(ask)
		wantRefusal(t, err, 127, "is a script of an unknown kind")
		if _, err := os.Stat(root + "/started"); err == nil {
			t.Fatalf("%s was started on the host", ask)
		}
	}
	// The search goes on behind it.
	got, err := finder(root, []string{"w", "py/bin"}).Find("python3.12")
	if err != nil || show(root, got) != at("$T/py", "python3.12") {
		t.Errorf("%s, %v", show(root, got), err)
	}
}

func TestShimChain(t *testing.T) {
	// A version that is itself a shim directory leads in circles.
	root := tree(t, map[string]string{
		"r/shims/ruby": rbenvShim, "r/version": "loop", "r/versions/loop/bin": "-> ../../shims",
	})
	_, err := finder(root, []string{"r/shims"}).Find("ruby")
	wantRefusal(t, err, 127, "is a script of an unknown kind")
	root = tree(t, map[string]string{
		"v/bin/node": "-> volta-shim", "v/bin/volta-shim": "x", "v/tools/user/platform.json": `{"node":{"runtime":"1"}}`,
		"v/tools/image/node/1": "-> $T/v",
	})
	_, err = finder(root, []string{"v/bin"}).Find("node")
	wantRefusal(t, err, 127, "more than 4 shims in a row")
}

// A path is a script's or a link's to choose: of a program that is no
// interpreter it brings the file, whatever lies beside its bin.
func TestFindAtMountsTheFileAlone(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	app := dir + "/srv/app"
	for _, name := range []string{"/bin/app", "/lib/app/data", "/bin/python3.12", "/lib/python3.12/os.py"} {
		if err := os.MkdirAll(filepath.Dir(app+name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(app+name, []byte("x"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(app+"/bin/app", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	for ask, want := range map[string]Interpreter{
		app + "/bin/app":        {Exe: app + "/bin/app", Prefix: app + "/bin/app", FileOnly: true},
		dir + "/link":           {Exe: app + "/bin/app", Prefix: app + "/bin/app", FileOnly: true},
		app + "/bin/python3.12": {Exe: app + "/bin/python3.12", Prefix: app},
	} {
		got, err := Finder{}.Find(ask)
		if err != nil || got.Exe != want.Exe || got.Prefix != want.Prefix || got.FileOnly != want.FileOnly || len(got.Extra) != 0 {
			t.Errorf("%s: %+v, %v, want %+v", ask, got, err, want)
		}
	}
}
