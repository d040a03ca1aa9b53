package image

import (
	"bufio"
	"fmt"
	"os"
	"testing"
	"time"

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

// TestWarmImageOfNoUse: an interpreter of the image's own that does not wait keeps the
// host busy for no longer than a request could. One that ends at once is made again
// more and more seldom and not told as ready, one that spins is ended. Both are told.
func TestWarmImageOfNoUse(t *testing.T) {
	h := newHome(t, testkit.AsUser(t))
	for _, c := range []struct{ name, does, until, why string }{
		{"ends", "exit 3", "hello", "its program has ended while it waited"},
		{"spins", "while :; do :; done", "ready", "its program has used CPU time as if it did not wait"},
	} {
		h.bring(c.name, docker(t, map[string]any{"Env": []string{"PATH=/bin"}}, busybox(t, file("bin/python3", 0o755, "#!/bin/sh\n"+c.does+"\n"))))
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		o := testkit.Opts{Who: h.who, Env: h.env(), Stderr: w}
		s := testkit.OpenSession(t, o, c.until, append(h.who.Flags(), "--image", c.name, "--warm", "python=1", "-m", "32m", "--timeout", "3s")...)
		w.Close()
		if err := r.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(r)
		for _, want := range []string{
			"sandglass: error: --warm python=1: no such sandbox can be kept ready, runs are made without: " + c.why,
			"hint: sandglass run --lang python -c 1   # with the session's flags: what the interpreter says",
		} {
			if !lines.Scan() || lines.Text() != want {
				t.Errorf("%s: %q, want %q", c.name, lines.Text(), want)
			}
		}
		want := map[string]string{"ends": "exited 3", "spins": "timeout 124"}[c.name]
		if a := s.Ask(`"lang":"python","code":"1"`); fmt.Sprint(a.Result.Outcome, " ", a.Result.ExitCode) != want {
			t.Errorf("%s: %+v", c.name, a)
		}
		s.End()
		if lines.Scan() {
			t.Errorf("%s: it is told again: %q", c.name, lines.Text())
		}
	}
}
