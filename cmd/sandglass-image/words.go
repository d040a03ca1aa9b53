package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/image"
)

// docker are the words that docker has for the same, with ours.
var docker = map[string]string{
	"load": "import", "rmi": "rm", "remove": "rm", "delete": "rm", "inspect": "show", "history": "show", "images": "list", "save": "export",
}

// unknown is the refusal of a word that is no verb. What people know from docker is
// told with the words for it, as one that can be pasted.
func unknown(word string, args []string) *refusal.Error {
	r := refusal.Newf("image: unknown command %s", refusal.Word(word))
	if our := docker[word]; our != "" {
		return r.Hint("sandglass image %s%s", our, shell(ours(our, args)))
	}
	switch word {
	case "pull":
		ref := "python:3.12"
		if len(args) == 1 && !strings.HasPrefix(args[0], "-") {
			ref = args[0]
		}
		return pull("image", ref)
	case "tag":
		r.What = "image: a name is given where an image is made"
		return r.Hint("sandglass image import --name NAME FILE   # the same FILE again costs no room")
	}
	return r.Hint("sandglass image --help")
}

// ours are the arguments of a word of docker's as our word has them: files are no
// flags' values here, and few flags are the same.
func ours(our string, args []string) (list []string) {
	out := ""
	for i := 0; i < len(args); i++ {
		name, value, has := strings.Cut(args[i], "=")
		files := name == "-i" || name == "--input" || name == "-o" || name == "--output"
		if files && !has && i+1 < len(args) {
			i++
			value = args[i]
		}
		switch {
		case files && our == "export":
			out = strings.TrimSuffix(value, ".tar") // a directory is written
		case files:
			list = append(list, value)
		case our == "rm" && (name == "-f" || name == "--force"):
			list = append(list, "--force")
		case !strings.HasPrefix(name, "-"):
			list = append(list, args[i])
		}
	}
	if out != "" {
		list = append(list, out)
	}
	return list
}

// pull is the answer to who wants an image out of a registry.
func pull(verb, ref string) *refusal.Error {
	base := ref[strings.LastIndexByte(ref, '/')+1:]
	if image.CheckName(base) != nil {
		base = "NAME"
	}
	return refusal.Newf("%s: no registry is asked for images: save it where docker is, or build it of packages", verb).
		Hint("docker save %s > image.tar && sandglass image import --name %s image.tar", refusal.Shell(ref), base).
		Hint("sandglass image build python   # or static, bash, node, go, java")
}

// elsewhere is the refusal of what is no file, and means one of another place: an
// address, or an image of a registry's. Nil for anything else.
func elsewhere(word string) error {
	if _, err := os.Lstat(word); err == nil {
		return nil
	}
	kind, ref, address := strings.Cut(word, "://")
	switch base := word[strings.LastIndexByte(word, '/')+1:]; {
	case address && (kind == "http" || kind == "https"):
		file := base
		if image.CheckName(file) != nil {
			file = "image.tar"
		}
		return refusal.Newf("image import: nothing is downloaded: get the file first, from where you trust it").
			Hint("curl -fLo %s -- %s && sandglass image import %[1]s", file, refusal.Shell(word))
	case address && strings.HasPrefix(kind, "docker"):
		return pull("image import", ref)
	case strings.Contains(base, ":") && image.CheckName(base) == nil && !strings.HasPrefix(word, ".") && !strings.HasPrefix(word, "/"):
		return pull("image import", word)
	}
	return nil
}

// otherMachine refuses an image of another machine's kind, in docker's words and
// dpkg's: what would be made of it (bytecode) and what says that it is whole (its own
// programs, run) can only be had there.
func otherMachine(verb, flag, value string, rest []string) *refusal.Error {
	r := refusal.Newf("image %s: --%s: images are for the machine that they are made on, and this one is %s/%s", verb, flag, runtime.GOOS, runtime.GOARCH)
	if kind := value[strings.LastIndexByte(value, '/')+1:]; kind != "" && kind != runtime.GOARCH {
		return r.Hint("sandglass image %s%s   # on a machine that is %s", verb, shell(rest), refusal.Word(kind))
	}
	return r.Hint("sandglass image %s%s", verb, shell(rest))
}

// shell are words to paste.
func shell(args []string) string {
	var b strings.Builder
	for _, a := range args {
		b.WriteString(" " + refusal.Shell(a))
	}
	return b.String()
}

// count is the refusal of too many words or too few.
func count(verb string, rest []string, what string) *refusal.Error {
	r := refusal.Newf("image %s: it takes %s", verb, what)
	switch {
	case verb == "list" && len(rest) == 1:
		return r.Hint("sandglass image show %s", refusal.Shell(rest[0]))
	case verb == "prune" && len(rest) > 0:
		return r.Hint("sandglass image rm%s", shell(rest))
	case verb == "import" && len(rest) == 2 && image.CheckName(rest[1]) == nil:
		return r.Hint("sandglass image import --name %s %s", refusal.Shell(rest[1]), refusal.Shell(rest[0]))
	case what == none.what:
		return r.Hint("sandglass image %s", verb)
	}
	return r.Hint("sandglass image %s %s", verb, what).Hint("sandglass image %s --help", verb)
}

// reachable refuses a store that is there, or may be, and cannot be looked at: "no
// images" would be a lie.
func reachable() error {
	at, err := image.Locate(os.Getenv)
	if err != nil {
		return nil // who has no home has no images
	}
	if _, err := os.Stat(at); !errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return refusal.Newf("image store %s: permission denied", refusal.Word(at)).
		Hint("ls -ld -- %s", refusal.Shell(filepath.Dir(at))).
		Hint("export XDG_DATA_HOME=/var/tmp/\"$(id -un)\"   # any directory of your own")
}

// places refuses a relative path in a variable that says where things are: the rule of
// these variables is that it counts for nothing, so that an image would be elsewhere
// than the caller has said.
func places(getenv func(string) string) error {
	for _, name := range []string{"XDG_DATA_HOME", "XDG_CACHE_HOME"} {
		if at := getenv(name); at != "" && !filepath.IsAbs(at) {
			return refusal.Newf("%s is %s: not an absolute path, and such a one counts for nothing", name, refusal.Word(at)).
				Hint("export %s=\"$PWD\"/%s", name, refusal.Shell(at)).Hint("unset %s", name)
		}
	}
	return nil
}
