package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

// Where the caller's files lie, on whatever file system and with whatever flags of
// its mount: a script runs, a directory is a mount, what is the caller's own can be
// read; or that it cannot is said in one line.
func TestSources(t *testing.T) {
	for _, fs := range append([]fileSystem{
		{"tmpfs", "mount -t tmpfs tmpfs at", false, true},
		{"noexec", "mount -t tmpfs -o noexec tmpfs at", true, true},
		{"nosuid,nodev,noatime", "mount -t tmpfs -o nosuid,nodev,noatime tmpfs at", false, true},
	}, oddFileSystems...) {
		t.Run(fs.name, func(t *testing.T) {
			testkit.Each(t, func(t *testing.T, who testkit.Who) {
				dir := testkit.Dir(t)
				p, flags, at := fs.place(t, who, "cd "+dir, "cd /"), who.Flags(), filepath.Join(dir, "at")
				p.runs(t, "script x\n", append(flags, at+"/hello.sh", "x")...)
				p.runs(t, "uid=65534(nobody) gid=65534(nogroup) groups=65534(nogroup)\n", append(flags, at+"/prog")...)
				o := p.do(t, "run", append(flags, "-v", at+":/task", "--", "/task/prog", "-u")...)
				if fs.noexec {
					said := "sandglass: error: not executable: /task/prog: " + at + " is on a file system that is mounted noexec on this host\nhint: " +
						strings.Join(append([]string{"sandglass", "run"}, flags...), " ") + " " + at + "/prog -u   # a copy of the program, which may be executed\n"
					if o.Exit != 126 || o.Stdout != "" || !strings.HasPrefix(o.Stderr, said) {
						t.Errorf("a program on noexec: exit %d, %q, %q", o.Exit, o.Stdout, o.Stderr)
					}
				} else if o.Exit != 0 || o.Stdout != "65534\n" || o.Stderr != "" {
					t.Errorf("a program: exit %d, %q, %q", o.Exit, o.Stdout, o.Stderr)
				}
				o = p.do(t, "run", append(flags, "-v", at+":/task", "--", "cat", "/task/private")...)
				if !fs.maps && who.IsRoot() {
					if o.Exit != 1 || o.Stdout != "" || o.Stderr != "cat: /task/private: Permission denied\n" {
						t.Errorf("a private file of root's: exit %d, %q, %q", o.Exit, o.Stdout, o.Stderr)
					}
					said := `,"unmapped":["` + at + `"]`
					if o := p.do(t, "run", append(flags, "--json", "-v", at+":/task", "--", "true")...); !strings.Contains(o.Stdout, said) {
						t.Errorf("the result does not say %s: %s", said, o.Stdout)
					}
				} else if o.Exit != 0 || o.Stdout != "secret\n" {
					t.Errorf("a private file: exit %d, %q, %q", o.Exit, o.Stdout, o.Stderr)
				}
			})
		})
	}
}

// An interpreter that pyenv or nvm has put below a home which is its owner's
// alone, and which nobody else may even enter.
func TestInterpreterInAPrivateHome(t *testing.T) {
	const python = `#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
	char self[4096], *end;
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	self[n > 0 ? n : 0] = 0;
	if (!(end = strstr(self, "/bin/python3"))) return puts(self), 3;
	strcpy(end, "/lib/python3.99/os.py");
	printf("%s %s\n", argv[argc - 1], access(self, R_OK) ? "without its library" : "with its library");
	return 0;
}
`
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		testkit.Requires(t, "gcc", "userns")
		for _, umask := range []os.FileMode{0o022, 0o077} {
			home := filepath.Join(testkit.Dir(t), "home")
			prefix := home + "/.pyenv/versions/3.99.0"
			for path, text := range map[string]string{
				prefix + "/lib/python3.99/os.py": "", home + "/.pyenv/version": "3.99.0\n", home + "/hello.py": "print(1)\n",
				home + "/.pyenv/shims/python3": "#!/usr/bin/env bash\nexec pyenv exec \"${0##*/}\" \"$@\"\n",
			} {
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Mkdir(prefix+"/bin", 0o755); err != nil {
				t.Fatal(err)
			}
			copyTo(t, prefix+"/bin/python3", testkit.C(t, python))
			give(t, home, who, 0o755&^umask)
			if err := os.Chmod(home, 0o700); err != nil {
				t.Fatal(err)
			}
			o := testkit.Run(t, testkit.Opts{Who: who, Env: []string{"HOME=" + home, "PATH=" + home + "/.pyenv/shims:/usr/bin:/bin"}}, home+"/hello.py")
			if o.Exit != 0 || o.Stdout != "/code/hello.py with its library\n" || o.Stderr != "" {
				t.Errorf("umask %o: exit %d, %q, %q", umask, o.Exit, o.Stdout, o.Stderr)
			}
			o = testkit.Run(t, testkit.Opts{Who: who, Env: []string{"HOME=" + home}}, "--", prefix+"/bin/python3", "x")
			if o.Exit != 0 || o.Stdout != "x with its library\n" || o.Stderr != "" {
				t.Errorf("umask %o, by its path: exit %d, %q, %q", umask, o.Exit, o.Stdout, o.Stderr)
			}
		}
	})
}

// give makes a tree somebody's, with one mode.
func give(t *testing.T, dir string, who testkit.Who, mode os.FileMode) {
	t.Helper()
	err := filepath.Walk(dir, func(path string, _ os.FileInfo, err error) error {
		if err == nil && os.Getuid() == 0 {
			err = os.Chown(path, who.UID, who.GID)
		}
		return errors.Join(err, os.Chmod(path, mode))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A file that the caller may not even look at is told as that, and not as a
// command that was not found; one that is inside by a mount is looked for there.
func TestFileThatMayNotBeSeen(t *testing.T) {
	testkit.Requires(t, "userns", "root")
	who, dir := testkit.AsUser(t), testkit.Dir(t)
	shut := filepath.Join(dir, "shut")
	if err := errors.Join(os.Mkdir(shut, 0o700), os.WriteFile(shut+"/prog", []byte("#!/bin/sh\n"), 0o755)); err != nil {
		t.Fatal(err)
	}
	o := testkit.Run(t, testkit.Opts{Who: who}, shut+"/prog", "x")
	run := strings.Join(append(append([]string{"sandglass", "run"}, who.Flags()...), "-- "), " ")
	want := "sandglass: error: cannot read \"" + shut + "/prog\": permission denied\nhint: ls -ld -- " + shut + "\nhint: " + run + shut + "/prog x   # if it is a command that is inside\n"
	if o.Exit != 126 || o.Stdout != "" || o.Stderr != want {
		t.Errorf("exit %d, %q, %q, want %q", o.Exit, o.Stdout, o.Stderr, want)
	}
	o = testkit.Run(t, testkit.Opts{Who: who}, "-v", "/usr/bin:"+shut, shut+"/id", "-u")
	if o.Exit != 0 || o.Stdout != "65534\n" || o.Stderr != "" {
		t.Errorf("in a mount: exit %d, %q, %q", o.Exit, o.Stdout, o.Stderr)
	}
}

// The same on a file system that cannot map ids or whose programs may not be
// executed: the cause is told, and what helps.
func TestInterpreterThatMayNotBeUsed(t *testing.T) {
	testkit.Requires(t, "root", "gcc", "userns")
	who := testkit.AsRoot(t)
	prog := testkit.C(t, "int main(void) { return 0; }\n")
	const noexec = ", on a file system that is mounted noexec on this host\nhint: findmnt --target "
	for mount, want := range map[string]string{
		"mount -t tmpfs tmpfs work; mkdir work/up work/work; mount -t overlay -o lowerdir=low,upperdir=work/up,workdir=work/work overlay at": "not executable: " +
			"P/bin/python3: P is on a file system that cannot map ids, so the program's id may use only what everybody may\nhint: chmod -R a+rX -- P",
		"mount -t tmpfs -o noexec tmpfs at": "P/bin/python3: found but not executable: P/bin/python3" + noexec + "P/bin/python3",
	} {
		dir := testkit.Dir(t)
		prefix := dir + "/at/.pyenv/versions/3.99.0"
		p := script(t, who, "cd "+dir+"\nmkdir low work at; "+mount+"\nmkdir -p "+prefix+"/bin "+prefix+"/lib/python3.99\ncp "+prog+" "+prefix+"/bin/python3\n"+
			"touch "+prefix+"/lib/python3.99/os.py\nchmod -R go-rwx "+dir+"/at\ncd /")
		p.path = prefix + "/bin:/usr/bin:/bin"
		o := p.do(t, "run", "--", prefix+"/bin/python3")
		said := "sandglass: error: " + strings.ReplaceAll(want, "P", prefix)
		if o.Exit != 126 || o.Stdout != "" || !strings.HasPrefix(o.Stderr, said) {
			t.Errorf("exit %d, %q, %q, want %q", o.Exit, o.Stdout, o.Stderr, said)
		}
	}
}
