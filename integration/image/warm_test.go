package image

import (
	"testing"

	"sandglass/internal/testkit"
)

// TestWarmImage: sandboxes of an image wait as those of the host do, and serve what
// is to be run in that image as it is now, and nothing else.
func TestWarmImage(t *testing.T) {
	testkit.Requires(t, "python3")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		h := newHome(t, who)
		config := func(name string) map[string]any {
			return map[string]any{"Env": []string{"PATH=/bin", "NAME=" + name}, "Entrypoint": []string{"/bin/sh", "-c", `echo "$NAME $PWD $(id -u) $(cat /file) $*"`, "sh"}, "WorkingDir": "/srv"}
		}
		h.bring("one", docker(t, config("one"), busybox(t, file("file", 0o644, "old"))))
		h.bring("two", docker(t, config("two"), busybox(t, file("file", 0o644, "two"))))
		o := testkit.Opts{Who: who, Env: h.env()}
		s := testkit.OpenSession(t, o, "ready", append(who.Flags(), "--image", "one", "--warm", "command=4", "--max-running", "1", "-m", "64m")...)
		for _, w := range []struct {
			request, out string
			warm         bool
		}{
			{`"command":["a"]`, "one /srv 65534 old a\n", true},
			{`"command":["a"],"env":{"NAME":"mine"}`, "mine /srv 65534 old a\n", true},
			{`"code":"echo code $NAME $PWD $(cat /file)","lang":"sh"`, "code one /srv old\n", true},
			{`"command":["a"],"options":{"image":"two"}`, "two /srv 65534 two a\n", false},
			{`"command":["sh","-c","cat /file; echo $PWD"],"options":{"image":"host"}`, "/work\n", false},
		} {
			if r := s.Ask(w.request); r.Result.Stdout.Text != w.out || r.Result.Warm != w.warm {
				t.Errorf("%s: warm %t, %q %s, want %t, %q", w.request, r.Result.Warm, r.Result.Stdout.Text, r.Error, w.warm, w.out)
			}
		}
		// What waits is made of an image that has another content by now.
		if exit, _, errs := h.image("import", "--force", "--name", "one", h.file(docker(t, config("one"), busybox(t, file("file", 0o644, "new"))))); exit != 0 {
			t.Fatalf("exit %d, %s", exit, errs)
		}
		if r := s.Ask(`"command":["a"]`); r.Result.Stdout.Text != "one /srv 65534 new a\n" {
			t.Errorf("warm %t, %q %s", r.Result.Warm, r.Result.Stdout.Text, r.Error)
		}
		s.End()

		if exit, _, errs := h.image("from-host", "--name", "python", "/usr/bin/python3", "sh"); exit != 0 {
			t.Fatalf("exit %d, %s", exit, errs)
		}
		s = testkit.OpenSession(t, o, "ready", append(who.Flags(), "--image", "python", "--warm", "python=1", "--max-running", "1", "-m", "64m")...)
		if r := s.Ask(`"lang":"python","code":"import os, sys; print(sys.argv, os.getcwd(), os.listdir('/code'))"`); !r.Result.Warm || r.Result.Stdout.Text != "['/code/main.py'] /work ['main.py']\n" {
			t.Errorf("warm %t, %q %s %s", r.Result.Warm, r.Result.Stdout.Text, r.Result.Stderr.Text, r.Error)
		}
		s.End()
	})
}
