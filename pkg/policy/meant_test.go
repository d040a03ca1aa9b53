package policy

import (
	"errors"
	"strings"
	"testing"

	"sandglass/internal/refusal"
)

// What is wrong with words after an image, and the line to paste instead.
func TestWordsAfterAnImage(t *testing.T) {
	const first = ": flags go before the image"
	for line, want := range map[string]string{
		"bare -e A=1 sh":                  `"-e" after the image bare` + first + "|sandglass run -e A=1 bare sh",
		"--allow-degraded pids bare -q x": `"-q" after the image bare` + first + "|sandglass run --allow-degraded pids -q bare x",
		"bare -q":                         `"-q" after the image bare` + first + "|sandglass run -q bare COMMAND",
		"bare -q -- x":                    `"-q" after the image bare` + first + "|sandglass run -q bare x",
		"bare -c 'print(7)' a":            `"-c" after the image bare` + first + "|sandglass run -c 'print(7)' --lang python --image bare a",
		"bare -c 'echo hi; id'":           `"-c" after the image bare` + first + "|sandglass run -c 'echo hi; id' --lang LANG --image bare",
		"bare --lang sh -c 'exit 7'":      `"--lang" after the image bare` + first + "|sandglass run --lang sh -c 'exit 7' --image bare",
		"bare -":                          `"-" after the image bare` + first + "|sandglass run - --lang LANG --image bare",
		"bare --nosuch":                   `"--nosuch" after the image bare` + first + "|sandglass run FLAGS bare COMMAND",
		"host -m 64m ls":                  `"-m" after the image host` + first + "|sandglass run -m 64m host ls",
		"./root -m 64m ls":                `"-m" after the image ./root` + first + "|sandglass run -m 64m ./root ls",
		"--entrypoint= set -q":            `"-q" after the image set` + first + "|sandglass run -q set",
		"python3 -c 'print(1)'": `python3 is an image here, and "-c" no command in it` + first +
			"|sandglass run -- python3 -c 'print(1)'   # the command, not the image of its name|sandglass run -c 'print(1)' --lang python --image python3",
		"bare":                             "nothing to run: the image has no command of its own, and none follows|sandglass run bare COMMAND",
		"--allow-degraded io --image bare": "nothing to run: the image has no command of its own, and none follows|sandglass run --allow-degraded io bare COMMAND",
		"--entrypoint= set": "nothing to run: --entrypoint takes the place of the image's own command, and none follows" +
			"|sandglass run set   # the image's own|sandglass run --entrypoint '' set COMMAND",
		"app:2 ls": `there is no image "app:2": there is host, every directory, and what was imported|sandglass run app:1.0 ls   # an image that is here` +
			"|sandglass image list|sandglass run host ls|sandglass run -- app:2 ls   # if it is a command",
		"--image bear ls": `--image: "bear" is neither host, a directory nor an image that was imported|sandglass image list|--image host|--image ./bear   # if it is a directory`,
		"--image bar ls":  `--image: "bar" is neither host, a directory nor an image that was imported|--image bare   # an image that is here|sandglass image list|--image host|--image ./bar   # if it is a directory`,
	} {
		_, err := testHost().Parse("run", words(line))
		var r *refusal.Error
		if !errors.As(err, &r) || r.Exit != 125 || strings.Join(append([]string{r.What}, r.Hints...), "|") != want {
			t.Errorf("%s: %+v, want %s", line, err, want)
		}
	}
	for _, line := range []string{"set -e A=1", "bare -- -e", "--entrypoint /e bare -e", "-- bare -e"} {
		if _, err := testHost().Parse("run", words(line)); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// The language of a hint is the image's own.
func TestLangOf(t *testing.T) {
	for image, want := range map[string]string{"bash": "bash", "host-bash:5.2": "bash", "python3": "python", "docker.io/library/node:22-slim": "node",
		"nodejs": "node", "debian": "LANG", "app:1.0": "LANG", "bashful": "LANG"} {
		if got := langOf(image, "echo hi; id"); got != want {
			t.Errorf("%s: %s, want %s", image, got, want)
		}
	}
}

// What a command that is not found could have been meant for.
func TestNotFound(t *testing.T) {
	const before = "before"
	for line, want := range map[string]string{
		"host-pyhton3 python3 -c 'print(1)'":  "sandglass run host-python3 python3 -c 'print(1)'   # an image that is here|before",
		"--allow-degraded io app x":           "sandglass run --allow-degraded io app:1.0 x   # an image that is here|before",
		"5e5e5e5e5e5e x":                      "sandglass run sha256:5e5e5e5e5e5e x   # an image that is here|before",
		"5e5e5e5e x":                          "before|sandglass image list   # if it is to be an image",
		"nosuch":                              "before|sandglass image list   # if it is to be an image",
		"tool a":                              "sandglass run ./tool a   # the file of this directory|before|sandglass image list   # if it is to be an image",
		"--allow-degraded io tool":            "sandglass run --allow-degraded io ./tool   # the file of this directory|before|sandglass image list   # if it is to be an image",
		"/usr/bin/nosuch":                     before,
		"-- app":                              before,
		"host app":                            before,
		"--image bare app":                    before,
		"bare nosuch":                         before,
		"bare ./script.py a":                  "sandglass run --image bare ./script.py a   # the file of this host, in the image|before",
		"bare script.py":                      "sandglass run --image bare script.py   # the file of this host, in the image|before",
		"bare tool":                           before,
		"bare ./absent.py":                    before,
		"python3 main.py":                     "sandglass run -- python3 main.py   # the command, not the image of its name|before",
		"--allow-degraded io python3 main.py": "sandglass run --allow-degraded io -- python3 main.py   # the command, not the image of its name|before",
	} {
		p := parse(t, line)
		what := "command not found: " + p.Spec.Program.Command[0]
		if got := strings.Join(p.NotFound(what, []string{before}), "|"); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
		if got := p.NotFound("/x: its interpreter or loader does not exist inside", []string{before}); len(got) != 1 {
			t.Errorf("%s: another refusal gets %q", line, got)
		}
	}
}

// An image after -c CODE is an argument, which a person is told.
func TestImageArgument(t *testing.T) {
	for line, want := range map[string]string{
		"-c x --lang python bare a": "bare", "-c x --lang python a bare": "", "-c x --lang python -- bare": "", "-c x --lang python": "",
		"-c x --lang python --image set bare": "", "-c x --lang python nosuch": "", "-c x --lang python broken": "", "host bare": "",
	} {
		p := parse(t, line)
		if got := p.ImageArgument(); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// Two letters that have changed places are one slip of the finger.
func TestNear(t *testing.T) {
	for typed, want := range map[string]bool{"nmae": true, "nam": true, "name": true, "nema": false, "eman": false, "n": false} {
		if Near(typed, "name") != want {
			t.Errorf("%q for name: %v, want %v", typed, !want, want)
		}
	}
}
