package runtimes

import (
	"os"
	"syscall"
	"testing"
)

func mkfifo(t testing.TB, path string) {
	t.Helper()
	must(t, syscall.Mkfifo(path, 0o644))
}

func TestShared(t *testing.T) {
	root := tree(t, map[string]string{
		"home/u/.local/x": "", "home/u/py/x": "", "home/u/.ssh/py/x": "", "home/v": "-> u",
		"env/.env": "", "ssh/.ssh/id": "", "aws/.aws": "/", "gpg/.gnupg": "-> nowhere", "fine/x": "",
		"home/u/.config/nvm/x": "",
	})
	for _, tt := range []struct{ dir, want string }{
		{"/", "is shared by the whole system"},
		{"/usr", "is shared by the whole system"},
		{"/usr/local", "is shared by the whole system"},
		{"/bin", "is shared by the whole system"},
		{"/opt", "is shared by the whole system"},
		{"/home", "is shared by the whole system"},
		{"/root", "is shared by the whole system"},
		{"/proc/self", "is shared by the whole system"},
		{"/home/alice", "is a home directory"},
		{root + "/home/u", "is or contains the home directory"},
		{root + "/home", "is or contains the home directory"},
		{root, "is or contains the home directory"},
		{root + "/home/u/.local", "holds more than an interpreter"},
		{root + "/home/u/.ssh/py", "lies in .ssh"},
		{root + "/env", "contains .env"},
		{root + "/ssh", "contains .ssh"},
		{root + "/aws", "contains .aws"},
		{root + "/gpg", "contains .gnupg"},
		{root + "/home/u/py", ""},
		{root + "/home/u/.config/nvm", ""},
		{root + "/fine", ""},
		{"/opt/no-such-python", ""},
	} {
		// The home is named through a link: the real one must be recognised.
		for _, home := range []string{"/home/u", "/home/v"} {
			if got := (Finder{Home: root + home}).shared(tt.dir); got != tt.want {
				t.Errorf("shared(%q) with home %s = %q, want %q", tt.dir, home, got, tt.want)
			}
		}
	}
}

// TestPrefixNeverHome: an interpreter installed into a home opens only itself
// and its library.
func TestPrefixNeverHome(t *testing.T) {
	for _, tt := range []struct {
		name  string
		ask   string
		files map[string]string
		want  string
	}{
		{"home is the prefix", "python3", map[string]string{
			"home/u/bin/python3": "-> python3.12", "home/u/bin/python3.12": "x", "home/u/lib/python3.12/os.py": "", "home/u/.ssh/id": "key"},
			"$T/home/u/bin/python3.12 prefix=$T/home/u/bin/python3.12 file extra=$T/home/u/lib/python3.12 bin=$T/home/u/bin"},
		{"library that leads elsewhere", "python3", map[string]string{
			"home/u/bin/python3": "x", "home/u/lib/python3.12": "-> ../private", "home/u/private/os.py": ""},
			"$T/home/u/bin/python3 prefix=$T/home/u/bin/python3 file bin=$T/home/u/bin"},
		{"only in bin", "python3", map[string]string{"home/u/bin/python3": "x"},
			"$T/home/u/bin/python3 prefix=$T/home/u/bin/python3 file bin=$T/home/u/bin"},
		{"node with npm in the home", "node", map[string]string{"home/u/bin/node": "x", "home/u/lib/node_modules/npm/x": ""},
			"$T/home/u/bin/node prefix=$T/home/u/bin/node file bin=$T/home/u/bin"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := tree(t, tt.files)
			got, err := finder(root, []string{"home/u/bin"}).Find(tt.ask)
			if err != nil || show(root, got) != tt.want {
				t.Errorf("%s, %v\nwant %s", show(root, got), err, tt.want)
			}
		})
	}
}

func TestPrefixSecrets(t *testing.T) {
	root := tree(t, map[string]string{"p/bin/node": "x", "p/include/node/node.h": "", "p/.aws/credentials": ""})
	got, err := finder(root, []string{"p/bin"}).Find("node")
	if err != nil || show(root, got) != "$T/p/bin/node prefix=$T/p/bin/node file bin=$T/p/bin" {
		t.Errorf("%s, %v", show(root, got), err)
	}
}

func TestPrefixOfStores(t *testing.T) {
	for _, tt := range []struct{ exe, prefix string }{
		{"/nix/store/abc-python3/bin/python3", "/nix/store"},
		{"/gnu/store/abc/bin/guile", "/gnu/store"},
		{"/usr/local/bin/python3", ""},
		{"/usr/lib/jvm/x/bin/java", ""},
		{"/bin/busybox", ""},
	} {
		if prefix, file, extra := (Finder{}).prefix(nil, tt.exe); prefix != tt.prefix || file || extra != nil {
			t.Errorf("prefix(%q) = %q, %v, %q", tt.exe, prefix, file, extra)
		}
	}
}

func TestPrefixBrew(t *testing.T) {
	files := map[string]string{
		"brew/bin/brew": "x", "brew/bin/python3": "-> ../Cellar/python@3.12/3.12.1/bin/python3",
		"brew/Cellar/python@3.12/3.12.1/bin/python3": "x", "brew/Cellar/python@3.12/3.12.1/lib/python3.12/os.py": "",
		"brew/opt/x": "", "brew/lib/x": "", "brew/var/mysql/x": "",
	}
	root := tree(t, files)
	got, err := finder(root, []string{"brew/bin"}).Find("python3")
	keg := "$T/brew/Cellar/python@3.12/3.12.1"
	want := keg + "/bin/python3 prefix=" + keg + " extra=$T/brew/Cellar,$T/brew/opt,$T/brew/lib bin=" + keg + "/bin"
	if err != nil || show(root, got) != want {
		t.Errorf("%s, %v", show(root, got), err)
	}
	// A directory that happens to be called Cellar opens nothing else.
	must(t, os.Remove(root+"/brew/bin/brew"))
	if got, err := finder(root, []string{"brew/bin"}).Find("python3"); err != nil || len(got.Extra) != 0 {
		t.Errorf("%s, %v", show(root, got), err)
	}
}

func TestResolve(t *testing.T) {
	root := tree(t, map[string]string{
		"a/b/c": "x", "l1": "-> a", "a/up": "-> ../a/./b//c", "abs": "-> $T/l1/b", "loop1": "-> loop2", "loop2": "-> loop1", "gone": "-> nowhere",
		"self": "-> self/x", "top": "-> ../../../../../../../../../../usr",
	})
	for _, tt := range []struct {
		path, real string
		links      int
		err        error
	}{
		{root + "/a/b/c", root + "/a/b/c", 0, nil},
		{root + "/l1/b/c", root + "/a/b/c", 1, nil},
		{root + "/l1/up", root + "/a/b/c", 2, nil},
		{root + "/abs/../b/c", root + "/a/b/c", 2, nil},
		{root + "/top", "/usr", 1, nil},
		{"/", "/", 0, nil},
		{"/../..", "/", 0, nil},
		{root + "/loop1", "", 0, errLoop},
		{root + "/self", "", 0, errLoop},
		{root + "/gone", "", 0, errMissing},
		{root + "/a/b/c/d", "", 0, errMissing},
	} {
		real, links, err := resolve(tt.path)
		if real != tt.real || err != tt.err || err == nil && len(links) != tt.links {
			t.Errorf("resolve(%q) = %q, %v, %v", tt.path, real, links, err)
		}
	}
}

func TestReadFile(t *testing.T) {
	root := tree(t, map[string]string{"f": "0123456789", "l": "-> f", "d": "/", "null": "-> /dev/null", "empty": ""})
	mkfifo(t, root+"/fifo")
	for _, tt := range []struct {
		name   string
		follow bool
		want   string
		fails  bool
	}{
		{"f", false, "01234567", false},
		{"f", true, "01234567", false},
		{"l", true, "01234567", false},
		{"l", false, "", true},
		{"d", true, "", true},
		{"null", true, "", true},
		{"fifo", false, "", true},
		{"fifo", true, "", true},
		{"gone", false, "", true},
		{"empty", false, "", false},
	} {
		got, err := readFile(root+"/"+tt.name, 8, tt.follow)
		if string(got) != tt.want || (err != nil) != tt.fails {
			t.Errorf("readFile(%s, %v) = %q, %v", tt.name, tt.follow, got, err)
		}
	}
}
