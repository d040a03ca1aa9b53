package policy

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"sandglass/internal/refusal"
)

// program decides what the words after the flags are:
//
//	-c CODE, or "-"      arguments of the code
//	after "--"           a command, word for word
//	host [--] WORD...    a command in the host's view
//	DIR WORD...          a command in that root, when DIR has a slash and is a directory
//	NAME [WORD...]       an imported image; the words take the place of its command
//	FILE WORD...         that script or executable, when it is a regular file of the host
//	WORD...              a command
func (h Host) program(p *Parsed, rest []string, verbatim bool) error {
	prog := &p.Spec.Program
	if err := h.namedImage(p); err != nil {
		return err
	}
	switch {
	case p.pending.stdin && len(prog.Code) > 0:
		return refusal.Newf("both -c and - give code").Hint("sandglass run -c 'print(1)' --lang python")
	case p.pending.stdin && p.Spec.Stdin:
		return refusal.Newf("-i and - both want stdin").Hint("sandglass run -i -c \"$(cat FILE)\" --lang python")
	case p.pending.stdin:
		code, err := h.readCode()
		prog.Code, prog.Args = code, rest
		return err
	case len(prog.Code) > 0:
		prog.Args = rest
		if !p.pending.image && len(rest) > 0 && !verbatim {
			p.meant = meant{host: h, argument: rest[0]}
		}
		return nil
	case verbatim:
		return p.command(rest)
	case len(rest) == 0:
		return p.command(nil)
	}
	return h.words(p, rest)
}

// words handles the four last forms of program.
func (h Host) words(p *Parsed, rest []string) error {
	prog := &p.Spec.Program
	first := rest[0]
	info, err := h.Stat(first)
	isFile := err == nil && info.Mode().IsRegular()
	isDir := err == nil && info.IsDir()
	slash := strings.Contains(first, "/")
	switch {
	case p.pending.image: // the next word is the program, even one called host
	case first == "host":
		if len(afterImage(rest)) == 0 && p.pending.entrypoint == nil {
			return noProgram("no command after the image host")
		}
		return h.commandIn(p, rest)
	case slash && isDir:
		p.Spec.Image = first
		if len(afterImage(rest)) == 0 && p.pending.entrypoint == nil {
			return refusal.Newf("%s is a directory and no command follows it", quote(first)).
				Hint("%s %s COMMAND", p.Spec.Flags(), refusal.Shell(first))
		}
		return h.commandIn(p, rest)
	}
	if !p.pending.image && !(isFile && isSource(first)) {
		found, err := h.imported(p, first)
		if r, ok := err.(*refusal.Error); ok {
			return r.Hint("%s -- %s   # if it is a command, and no image", p.Spec.Flags(), shellWords(rest))
		}
		if err != nil {
			return err
		}
		if found {
			p.meant = meant{host: h, image: first, words: afterImage(rest)}
			return h.commandIn(p, rest)
		}
	}
	if !p.pending.image && err != nil && isImageName(first) {
		return h.noImage(p, rest)
	}
	switch {
	case isFile && !insideAnyway(p.Spec.Image, first) && (slash || isSource(first)):
		prog.File, prog.Args = first, rest[1:]
	case err != nil && isSource(first) && !strings.HasPrefix(first, "/"):
		// Looked up inside it would only be "not found", without the reason.
		return p.orInside(rest, refusal.Newf("cannot read %s: %s", quote(first), refusal.Cause(err)).Code(refusal.ExitNotFound).
			Hint("ls -l %s", refusal.Shell(first)))
	case slash && errors.Is(err, fs.ErrPermission) && !p.Spec.mounted(path.Clean(first)):
		// A file of the host's that the caller may not even look at is not "not found".
		return p.orInside(rest, refusal.Newf("cannot read %s: %s", quote(first), refusal.Cause(err)).Code(refusal.ExitNotExecutable).
			Hint("ls -ld -- %s", refusal.Shell(path.Dir(first))))
	case slash && err == nil && !isFile && !isDir && !p.Spec.inside(first):
		return p.orInside(rest, refusal.Newf("%s is not a regular file", quote(first)).Code(refusal.ExitNotExecutable).
			Hint("ls -l -- %s", refusal.Shell(first)))
	default:
		if !p.pending.image {
			p.meant = meant{host: h, words: rest}
		}
		return p.command(rest)
	}
	return nil
}

// inside says that a path of the host's is one inside as well, or may be.
func (s *Spec) inside(name string) bool {
	name = path.Clean(name)
	return insideAnyway(s.Image, name) || s.mounted(name) || below(name, "/dev")
}

// orInside adds the way to say that the words are a command that is inside.
func (p *Parsed) orInside(rest []string, e *refusal.Error) error {
	return e.Hint("%s -- %s   # if it is a command that is inside", p.Spec.Flags(), shellWords(rest))
}

// mounted says that a path is one inside, by a mount of the caller's.
func (s *Spec) mounted(name string) bool {
	for _, m := range s.Mounts {
		if name == m.Target || below(name, m.Target) {
			return true
		}
	}
	return false
}

// afterImage is the command that follows an image, with or without a "--".
func afterImage(rest []string) []string {
	if len(rest) > 1 && rest[1] == "--" {
		return rest[2:]
	}
	return rest[1:]
}

// isImageName says that a word is what people call an image of docker's and
// nobody a command: it has a tag, or it is a distribution.
func isImageName(word string) bool {
	name, tag, has := strings.Cut(word, ":")
	if has && name != "" && tag != "" && !strings.HasPrefix(word, "/") && !strings.HasPrefix(word, ".") {
		return true
	}
	const known = " ubuntu debian alpine fedora centos rockylinux almalinux archlinux amazonlinux golang openjdk eclipse-temurin buildpack-deps scratch "
	return !strings.Contains(word, " ") && strings.Contains(known, " "+word+" ")
}

func (h Host) noImage(p *Parsed, rest []string) error {
	words, flags := "COMMAND", p.Spec.Flags()
	if len(rest) > 1 {
		words = shellWords(rest[1:])
	}
	e := refusal.Newf("there is no image %s: there is host, every directory, and what was imported", quote(rest[0]))
	if near := h.near(rest[0]); near != "" {
		e.Hint("%s %s   # an image that is here", flags, shellWords(append([]string{near}, rest[1:]...)))
	}
	return e.Hint("sandglass image list").
		Hint("%s host %s", flags, words).
		Hint("%s -- %s   # if it is a command", flags, shellWords(rest))
}

func noProgram(what string) error {
	return refusal.Newf("%s", what).
		Hint("sandglass run script.py").
		Hint("sandglass run -c 'print(1)' --lang python").
		Hint("sandglass run host COMMAND")
}

// insideAnyway says that the host's view has this file at the same path. A
// program such as /usr/bin/python3 finds its own files by its path, so it must
// run from there and not as a copy.
func insideAnyway(image, name string) bool {
	if image != "host" {
		return false
	}
	name = path.Clean(name)
	for _, dir := range [...]string{"/usr/", "/bin/", "/sbin/", "/lib/", "/lib32/", "/lib64/", "/libx32/"} {
		if strings.HasPrefix(name, dir) {
			return true
		}
	}
	return false
}

// isSource says that a name without a slash may mean a script of the working
// directory. Which interpreter runs it is decided elsewhere.
func isSource(name string) bool {
	const known = " .py .pyw .js .mjs .cjs .ts .mts .rb .pl .pm .php .sh .bash .zsh .fish .ksh .lua .tcl .r .R .jl .awk" +
		" .go .rs .c .cc .cpp .cxx .java .kt .scala .groovy .clj .ex .exs .erl .hs .ml .nim .zig .d .swift .dart .scm .rkt" +
		" .lisp .el .sql .jq .sed .ps1 .raku .cr .f90 .pas .v .cs .fs .wasm "
	ext := path.Ext(name)
	return ext != "" && ext != "." && !strings.Contains(ext, " ") && strings.Contains(known, " "+ext+" ")
}
