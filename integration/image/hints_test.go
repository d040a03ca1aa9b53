package image

import (
	"os"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

// told is what is wrong with a command line, and what to paste instead.
type told struct {
	line  string
	exit  int
	what  string
	hints []string
}

// tells runs command lines that are refused. RUN in a hint is sandglass run with the
// weaker limits of the caller, ROOT the files of the image x.
func (h *home) tells(list ...told) {
	h.t.Helper()
	for _, c := range list {
		for i := range c.hints {
			c.hints[i] = strings.NewReplacer("RUN", h.begins(), "ROOT", h.files()).Replace(c.hints[i])
		}
		o := h.run(strings.Fields(c.line)...)
		if o.Exit != c.exit || o.Result.Error != c.what || !slices.Equal(o.Result.Hints, c.hints) {
			h.t.Errorf("%s: exit %d, %q, hints %q, want %d, %q, %q", c.line, o.Exit, o.Result.Error, o.Result.Hints, c.exit, c.what, c.hints)
		}
	}
}

// begins is how a hint begins.
func (h *home) begins() string {
	return strings.Join(append([]string{"sandglass run"}, h.who.Flags()...), " ")
}

// files is where the files of x are.
func (h *home) files() string {
	_, out, _ := h.image("show", "--json", "x")
	_, rest, _ := strings.Cut(out, "sha256:")
	return h.dir + "/sandglass/images/" + rest[:64] + "/rootfs"
}

// What is not in an image is not said to be in the host's view, and a hint keeps the
// image and what the caller has accepted.
func TestNotInTheImage(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		h := newHome(t, who)
		h.bring("x", busybox(t, file("usr/local/bin/own", 0o755, "#!/no\n"), file("opt/f", 0o644, "")))
		h.bring("entry", docker(t, map[string]any{"Entrypoint": []string{"/bin/sh", "-c"}}, busybox(t)))
		const commands = "ls -- ROOT/usr/local/bin ROOT/bin   # the commands of image x"
		h.tells(
			told{"x nosuch", 127, "command not found: nosuch: not in image x", []string{commands}},
			told{"x tail", 127, "command not found: tail: not in image x", []string{commands, "RUN -- tail   # the host's, without the image"}},
			told{"-e PATH=/bin x own", 127, "command not found: own: not in image x", []string{"RUN --image x -- /usr/local/bin/own   # PATH inside does not lead to it", commands}},
			told{"x /bin/nosuch", 127, "command not found: /bin/nosuch: not in image x", []string{"ls -ld -- ROOT/bin/nosuch   # where image x is on this host"}},
			told{"x own", 127, "/usr/local/bin/own: its interpreter or loader does not exist inside", []string{"head -c 128 -- ROOT/usr/local/bin/own | head -n 1   # the #! line names the interpreter"}},
			told{"x /opt/f", 126, "not executable: /opt/f", []string{"RUN --image x -- cat -- /opt/f   # to read it", "RUN --image x -- sh /opt/f   # if it is a shell script"}},
			told{"--entrypoint /bin entry", 126, "not executable: /bin is a directory", []string{"RUN --entrypoint '' --image entry -- ls -- /bin   # what it holds"}},
			told{"-v /usr:/opt/data x true", 125, "mount target /opt/data: the target is not there, and making it would change image x", []string{"give the mount a target of its own, such as /task"}},
		)
	})
}

// Words that mean another image, a file of this host, a flag or a command are told from
// a command that is not there.
func TestWordsOfAnImageLine(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		h := newHome(t, who)
		h.bring("x", busybox(t))
		h.bring("host-python3:1", busybox(t))
		h.bring("env", busybox(t))
		script := testkit.Dir(t) + "/s.py"
		if err := os.WriteFile(script, []byte("print(1)\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		text := testkit.Dir(t) + "/notes"
		if err := os.WriteFile(text, []byte("nothing to run\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		h.bring("node:1", busybox(t))
		layout := h.dir + "/layout"
		if exit, _, errs := h.image("export", "x", layout); exit != 0 {
			t.Fatal(errs)
		}
		const ls = "RUN -- ls /usr/bin   # the commands that are inside"
		h.tells(
			told{"host-pyhton3 python3 x", 127, "command not found: host-pyhton3", []string{"RUN host-python3:1 python3 x   # an image that is here", ls}},
			told{"nosuch", 127, "command not found: nosuch", []string{ls, "sandglass image list   # if it is to be an image"}},
			told{"-- nosuch", 127, "command not found: nosuch", []string{ls}},
			told{"x " + script, 127, "command not found: " + script + ": not in image x",
				[]string{"RUN --image x " + script + "   # the file of this host, in the image", "ls -ld -- ROOT" + script + "   # where image x is on this host"}},
			told{"--image node:1 " + text, 126, "cannot tell how to run \"" + text + "\": no known extension, no #! line, not an ELF binary",
				[]string{"RUN --image node:1 --lang node " + text + "   # says what language it is"}},
			told{layout + " sh", 125, "image \"" + layout + "\" is no root: it is an image as it is passed on, with its files packed in it",
				[]string{"sandglass image import --name my-image " + layout + "   # and run my-image"}},
			told{"--image x " + text + " a b", 126, "cannot tell how to run \"" + text + "\": no known extension, no #! line, not an ELF binary",
				[]string{"RUN --image x --lang python " + text + " a b   # says what language it is"}},
			told{"x -e A=1 sh", 125, `"-e" after the image x: flags go before the image`, []string{"RUN -e A=1 x sh"}},
			told{"env -i ls", 125, `env is an image here, and "-i" no command in it: flags go before the image`,
				[]string{"RUN -- env -i ls   # the command, not the image of its name", "RUN -i env ls"}},
		)
	})
}

// A person whose code ran in the host's view, though an image was named, is told so.
func TestImageAsArgument(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		h := newHome(t, who)
		h.bring("x", busybox(t))
		const want = "code x\r\nsandglass: x is an argument of the code, which ran in the host's view: --image x runs it in the image\r\n"
		for line, note := range map[string]bool{"--lang sh x": true, "-q --lang sh x": false, "--lang sh -- x": false} {
			term := testkit.NewTerminal(t)
			args := append([]string{"-c", "echo code $1"}, strings.Fields(line)...)
			o := term.Start(testkit.Opts{Who: who, Env: h.env()}, args...).Wait()
			if got := term.Shown(); o.Exit != 0 || note && got != want || !note && got != "code x\r\n" {
				t.Errorf("%s: exit %d, %q", line, o.Exit, got)
			}
		}
	})
}
