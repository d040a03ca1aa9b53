package image

import (
	"archive/tar"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

// plan says which bytes would be run: an image's digest, not its name.
func TestPlanSaysTheDigest(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		h := newHome(t, who)
		h.bring("x", busybox(t))
		_, out, _ := h.image("show", "--json", "x")
		var img shown
		if err := json.Unmarshal([]byte(out), &img); err != nil {
			t.Fatal(err)
		}
		o := testkit.Run(t, testkit.Opts{Verb: "plan", Who: who, Env: h.env()}, append(who.Flags(), "x", "true")...)
		if want := "\nimage       " + img.ID + "\n"; o.Exit != 0 || !strings.Contains(o.Stdout, want) {
			t.Errorf("exit %d, no line %q in\n%s%s", o.Exit, want, o.Stdout, o.Stderr)
		}
		for image, want := range map[string]string{"x": img.ID, "host": "host", h.dir: h.dir} {
			o := testkit.Run(t, testkit.Opts{Verb: "plan", Who: who, Env: h.env()}, append(who.Flags(), "--json", "--image", image, "--", "/bin/true")...)
			var plan struct{ Image string }
			if err := json.Unmarshal([]byte(o.Stdout), &plan); image != h.dir && (err != nil || plan.Image != want) {
				t.Errorf("%s: %q, %v, want %q (%s)", image, plan.Image, err, want, o.Stderr)
			}
		}
	})
}

// A session's request names an image as a command line does, and gets that one or a
// refusal; never the host's view in its place.
func TestImageInASession(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		h := newHome(t, who)
		config := func(name string) map[string]any {
			return map[string]any{"Env": []string{"PATH=/bin", "NAME=" + name}, "Entrypoint": []string{"/bin/sh", "-c", `echo "$NAME $PWD $(id -u) $*"`, "sh"}, "Cmd": []string{"cmd"}, "WorkingDir": "/srv"}
		}
		h.bring("one", docker(t, config("one"), busybox(t)))
		h.bring("two:1", docker(t, config("two"), busybox(t)))
		wants := []struct{ request, out, code string }{
			{`"command":["a"]`, "one /srv 65534 a\n", ""},
			{`"command":[]`, "one /srv 65534 cmd\n", ""},
			{`"command":["a"],"options":{"image":"two:1","workdir":"/tmp","user":7},"env":{"NAME":"mine"}`, "mine /tmp 7 a\n", ""},
			{`"code":"echo code $NAME $PWD","lang":"sh"`, "code one /srv\n", ""},
			{`"command":["echo","own"],"options":{"entrypoint":""}`, "own\n", ""},
			{`"command":["sh","-c","echo $NAME $PWD"],"options":{"image":"host"}`, "/work\n", ""},
			{`"command":["a"],"options":{"image":"three"}`, "", "--image: \"three\" is neither host, a directory nor an image that was imported"},
			{`"command":["a"],"options":{"image":["one"]}`, "", "--image takes one value, not a list"},
			{`"command":["a"],"options":{"image":""}`, "", "--image: the value is empty"},
			{`"command":["a"],"options":{"image":"one\u0000"}`, "", "--image: \"one\\x00\" is neither host, a directory nor an image that was imported"},
			{`"command":["a"],"image":"one"`, "", `unknown field "image"`},
		}
		var in strings.Builder
		for i, w := range wants {
			fmt.Fprintf(&in, "{\"type\":\"run\",\"id\":\"%d\",%s}\n", i, w.request)
		}
		o := testkit.Run(t, testkit.Opts{Verb: "session", Who: who, Env: h.env(), Stdin: strings.NewReader(in.String())}, append(who.Flags(), "--image", "one", "--max-running", "1")...)
		got := map[string]string{}
		for _, line := range lines(o.Stdout) {
			var r struct {
				ID, Error string
				Result    struct {
					ExitCode int `json:"exit_code"`
					Error    string
					Stdout   struct{ Text string }
				}
			}
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			got[r.ID] = r.Result.Stdout.Text + r.Result.Error + r.Error
		}
		for i, w := range wants {
			if text := got[fmt.Sprint(i)]; w.out != "" && text != w.out || w.out == "" && !strings.Contains(text, w.code) {
				t.Errorf("%s: %q, want %q%q", w.request, text, w.out, w.code)
			}
		}
		o = testkit.Run(t, testkit.Opts{Verb: "session", Who: who, Env: h.env()}, append(who.Flags(), "--image", "three")...)
		if o.Exit != 125 || o.Stdout != "" || !strings.Contains(o.Stderr, `--image: "three" is neither`) {
			t.Errorf("a session of no image: exit %d, %q, %q", o.Exit, o.Stdout, o.Stderr)
		}
	})
}

// Files of any owner and mode can be read, and are the program's own inside, by root's
// mapping and by the user's own id. An id of the user's subordinate ones could not read
// the store, and is refused where it is asked for.
func TestOwnersInAnImage(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		h := newHome(t, who)
		owned := func(name string, mode int64, uid int) entry {
			return entry{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Uid: uid, Gid: uid + 1}, []byte(name + "\n")}
		}
		h.bring("x", busybox(t, owned("srv/closed", 0o600, 1234), owned("srv/none", 0o000, 0), owned("srv/group", 0o040, 4321), owned("srv/run", 0o755, 65534), owned("srv/all", 0o666, 0)))
		script := "cd /srv; stat -c '%n %u:%g %a' *; cat *; for f in *; do echo x 2>/dev/null > $f && echo wrote $f; done; true"
		want := "all 65534:65534 666\nclosed 65534:65534 600\ngroup 65534:65534 440\nnone 65534:65534 400\nrun 65534:65534 755\n" +
			"srv/all\nsrv/closed\nsrv/group\nsrv/none\nsrv/run\n"
		for _, id := range []string{"auto", "own", "caller"} {
			o := h.run("--host-id", id, "x", "sh", "-c", script)
			switch {
			case who.IsRoot() == (id == "caller") && id != "auto":
				wantErr := "--host-id own: the store of images is for its owner alone to read, and an image's files are its owner's"
				if who.IsRoot() {
					wantErr = "--host-id caller: root's own id would be the program's on the host"
				}
				if o.Exit != 125 || o.Result.Error != wantErr {
					t.Errorf("%s: exit %d, %q, want %q", id, o.Exit, o.Result.Error, wantErr)
				}
			case o.Exit != 0 || o.Stdout != want:
				t.Errorf("%s: exit %d, %q, want %q (%s)", id, o.Exit, o.Stdout, want, o.Stderr)
			case o.Result.HostID == nil || o.Result.HostID.Own != who.IsRoot():
				t.Errorf("%s: %+v", id, o.Result.HostID)
			}
		}
	})
}
