package runtimes

import (
	"maps"
	"strings"
	"testing"
)

// base is an interpreter as uv installs it: reached through a link without the patch version.
var base = map[string]string{
	"uv/cpython-3.12":                        "-> cpython-3.12.3",
	"uv/cpython-3.12.3/bin/python3.12":       "x",
	"uv/cpython-3.12.3/bin/python3":          "-> python3.12",
	"uv/cpython-3.12.3/lib/python3.12/os.py": "",
}

func TestVenv(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"through a link of the base", map[string]string{
			"p/.venv/pyvenv.cfg": "home = $T/uv/cpython-3.12/bin\nversion = 3.12\n", "p/.venv/bin/python": "-> $T/uv/cpython-3.12/bin/python3.12"},
			"$T/p/.venv/bin/python prefix=$T/p/.venv extra=$T/uv/cpython-3.12.3 link=$T/uv/cpython-3.12->cpython-3.12.3 bin=$T/p/.venv/bin"},
		{"chain inside bin", map[string]string{
			"p/.venv/pyvenv.cfg": "HOME=$T/uv/cpython-3.12.3/bin", "p/.venv/bin/python": "-> python3", "p/.venv/bin/python3": "-> $T/uv/cpython-3.12.3/bin/python3"},
			"$T/p/.venv/bin/python prefix=$T/p/.venv extra=$T/uv/cpython-3.12.3 bin=$T/p/.venv/bin"},
		{"copied executable", map[string]string{
			"p/.venv/pyvenv.cfg": "home = $T/uv/cpython-3.12.3/bin\r\n", "p/.venv/bin/python": "x"},
			"$T/p/.venv/bin/python prefix=$T/p/.venv extra=$T/uv/cpython-3.12.3 bin=$T/p/.venv/bin"},
		{"directory behind a link", map[string]string{
			"p": "-> data/p", "data/p/.venv/pyvenv.cfg": "home = $T/uv/cpython-3.12.3/bin", "data/p/.venv/bin/python": "-> $T/uv/cpython-3.12.3/bin/python3"},
			"$T/data/p/.venv/bin/python prefix=$T/data/p/.venv extra=$T/uv/cpython-3.12.3 link=$T/p->data/p bin=$T/data/p/.venv/bin"},
		{"made from another", map[string]string{
			"outer/pyvenv.cfg": "home = $T/uv/cpython-3.12.3/bin", "outer/bin/python": "-> $T/uv/cpython-3.12.3/bin/python3",
			"p/.venv/pyvenv.cfg": "home = $T/outer/bin", "p/.venv/bin/python": "-> $T/outer/bin/python"},
			"$T/p/.venv/bin/python prefix=$T/p/.venv extra=$T/outer,$T/uv/cpython-3.12.3 bin=$T/p/.venv/bin"},
		{"base installed into the home", map[string]string{
			"home/u/bin/python3": "x", "home/u/lib/python3.12/os.py": "", "home/u/.ssh/id": "",
			"p/.venv/pyvenv.cfg": "home = $T/home/u/bin", "p/.venv/bin/python": "-> $T/home/u/bin/python3"},
			"$T/p/.venv/bin/python prefix=$T/p/.venv extra=$T/home/u/bin/python3,$T/home/u/lib/python3.12 bin=$T/p/.venv/bin"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := maps.Clone(base)
			maps.Copy(files, tt.files)
			root := tree(t, files)
			// What the caller has: where uv installs, and the outer environment and home/u/bin on PATH.
			uv := "UV_PYTHON_INSTALL_DIR=" + root + "/uv"
			got, err := finder(root, []string{"outer/bin", "home/u/bin"}, uv).Venv(root + "/p/.venv")
			if err != nil || show(root, got) != tt.want || got.Name != "python" {
				t.Errorf("%s, %v\nwant %s", show(root, got), err, tt.want)
			}
			found, err := finder(root, []string{"p/.venv/bin", "outer/bin"}, uv).Find("python")
			if err != nil || show(root, found) != tt.want {
				t.Errorf("on PATH: %s, %v", show(root, found), err)
			}
		})
	}
}

func TestVenvRefuses(t *testing.T) {
	const py = "-> $T/uv/cpython-3.12.3/bin/python3"
	const home = "home = $T/uv/cpython-3.12.3/bin"
	for _, tt := range []struct {
		name  string
		dir   string
		files map[string]string
		part  string
	}{
		{"missing", "v", nil, "it leads nowhere"},
		{"no pyvenv.cfg", "v", map[string]string{"v/bin/python": py}, "no pyvenv.cfg in it"},
		{"pyvenv.cfg is a link", "v", map[string]string{"v/bin/python": py, "v/pyvenv.cfg": "-> ../x", "x": home}, "no pyvenv.cfg in it"},
		{"no home", "v", map[string]string{"v/bin/python": py, "v/pyvenv.cfg": "version = 3"}, "pyvenv.cfg: no home"},
		{"relative home", "v", map[string]string{"v/bin/python": py, "v/pyvenv.cfg": "home = ../x"}, "home is not an absolute path"},
		{"home is gone", "v", map[string]string{"v/bin/python": py, "v/pyvenv.cfg": "home = /no/such/bin"}, "home /no/such/bin does not exist"},
		{"no python", "v", map[string]string{"v/pyvenv.cfg": home}, "bin/python is not an executable file"},
		{"python is text", "v", map[string]string{"v/pyvenv.cfg": home, "v/bin/python": "text"}, "bin/python is not an executable file"},
		{"loop", "v", map[string]string{"v/pyvenv.cfg": home, "v/bin/python": "-> python"}, "bin/python is not an executable file"},
		{"base is no python", "v", map[string]string{"v/pyvenv.cfg": home, "v/bin/python": "-> $T/tool", "tool": "x"}, "is not called python"},
		{"base has no library", "v", map[string]string{"v/pyvenv.cfg": home, "v/bin/python": "-> $T/secret/bin/python3", "secret/bin/python3": "x", "secret/key": ""},
			"has no prefix of its own that could be mounted"},
		{"of itself", "v", map[string]string{"v/pyvenv.cfg": "home = $T/v/bin", "v/bin/python": "x"}, "has no prefix of its own that could be mounted"},
		{"of each other", "v", map[string]string{"v/pyvenv.cfg": "home = $T/w/bin", "v/bin/python": py, "w/pyvenv.cfg": "home = $T/v/bin", "w/bin/python": py},
			"more than 4 virtual environments in a row"},
		{"is the home", "home/u", map[string]string{"home/u/pyvenv.cfg": home, "home/u/bin/python": py}, "its directory is or contains the home directory"},
		{"has secrets", "v", map[string]string{"v/pyvenv.cfg": home, "v/bin/python": py, "v/.env": "KEY=1"}, "its directory contains .env"},
		{"through proc", "v", map[string]string{"v/pyvenv.cfg": home, "v/bin/python": "-> /proc/self/root$T/uv/cpython-3.12.3/bin/python3"}, "leads through /proc/"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := maps.Clone(base)
			maps.Copy(files, tt.files)
			root := tree(t, files)
			_, err := finder(root, []string{"v/bin", "w/bin"}, "UV_PYTHON_INSTALL_DIR="+root+"/uv").Venv(root + "/" + tt.dir)
			wantRefusal(t, err, 125, tt.part)
		})
	}
	_, err := Finder{}.Venv("venv")
	wantRefusal(t, err, 125, "virtual environment venv: not an absolute path")
}

// TestVenvInHome: who made their home a virtual environment gets the base alone.
func TestVenvInHome(t *testing.T) {
	files := maps.Clone(base)
	maps.Copy(files, map[string]string{
		"home/u/pyvenv.cfg": "home = $T/uv/cpython-3.12.3/bin", "home/u/bin/python": "-> $T/uv/cpython-3.12.3/bin/python3"})
	root := tree(t, files)
	got, err := finder(root, []string{"home/u/bin"}).Find("python")
	if err != nil || show(root, got) != at("$T/uv/cpython-3.12.3", "python3.12") {
		t.Errorf("%s, %v", show(root, got), err)
	}
}

// TestVenvChoosesNothing: what a pyvenv.cfg or a link of an environment names is
// brought only when the caller's PATH leads there. Whoever wrote the environment
// would otherwise be shown any project with one in it.
func TestVenvChoosesNothing(t *testing.T) {
	project := map[string]string{
		"proj/pyvenv.cfg": "home = $T/uv/cpython-3.12.3/bin", "proj/bin/python": "-> $T/uv/cpython-3.12.3/bin/python3", "proj/secrets/key": "key",
		"conda/bin/python3": "-> python3.12", "conda/bin/python3.12": "x", "conda/lib/python3.12/os.py": "", "conda/secrets/key": "key",
	}
	for _, tt := range []struct {
		name, dirs string
		files      map[string]string
		want       string // "" for a refusal
	}{
		{"home is a project", "", map[string]string{"v/pyvenv.cfg": "home = $T/proj/bin", "v/bin/python": "-> $T/uv/cpython-3.12.3/bin/python3"}, ""},
		{"home is a project on PATH", "proj/bin", map[string]string{"v/pyvenv.cfg": "home = $T/proj/bin", "v/bin/python": "-> $T/uv/cpython-3.12.3/bin/python3"},
			"$T/v/bin/python prefix=$T/v extra=$T/proj,$T/uv/cpython-3.12.3 bin=$T/v/bin"},
		{"home is a prefix", "", map[string]string{"v/pyvenv.cfg": "home = $T/conda/bin", "v/bin/python": "x"}, ""},
		{"link to a prefix", "", map[string]string{"v/pyvenv.cfg": "home = $T/conda/bin", "v/bin/python": "-> $T/conda/bin/python3"}, ""},
		{"prefix on PATH", "conda/bin", map[string]string{"v/pyvenv.cfg": "home = $T/conda/bin", "v/bin/python": "x"},
			"$T/v/bin/python prefix=$T/v extra=$T/conda bin=$T/v/bin"},
		{"a link on PATH", "b", map[string]string{"v/pyvenv.cfg": "home = $T/conda/bin", "v/bin/python": "x", "b/python3.12": "-> $T/conda/bin/python3"},
			"$T/v/bin/python prefix=$T/v extra=$T/conda bin=$T/v/bin"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := maps.Clone(base)
			maps.Copy(files, project)
			maps.Copy(files, tt.files)
			root := tree(t, files)
			f := finder(root, strings.Fields(tt.dirs), "UV_PYTHON_INSTALL_DIR="+root+"/uv")
			got, err := f.Venv(root + "/v")
			if tt.want != "" && (err != nil || show(root, got) != tt.want) {
				t.Errorf("%s, %v\nwant %s", show(root, got), err, tt.want)
			}
			if tt.want == "" {
				wantRefusal(t, err, 125, "PATH does not lead to it")
				// By its path as well.
				_, err = f.Find(root + "/v/bin/python")
				wantRefusal(t, err, 125, "PATH does not lead to it")
			}
		})
	}
}
