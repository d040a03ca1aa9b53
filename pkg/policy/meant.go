package policy

import (
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/image"
)

// meant is what a command line's first word could have been meant for, should it
// lead to no command.
type meant struct {
	host  Host
	image string   // the word that was taken for an image, "" for none
	words []string // the command

	argument string // the first word after -c CODE, which is the code's
}

// ImageArgument is an image that was named where it is an argument of the code, which
// has run in the host's view: "" for none.
func (p *Parsed) ImageArgument() string {
	word := p.meant.argument
	if word == "" || strings.Contains(word, "/") {
		return ""
	}
	if _, _, err := p.meant.host.Image(word); err != nil {
		return ""
	}
	return word
}

// NotFound adds to the hints of a command that is not inside what the words could be
// on this host instead: another image, a file, a command that an image hides.
func (p *Parsed) NotFound(what string, hints []string) []string {
	m := &p.meant
	if len(m.words) == 0 || !strings.HasPrefix(what, "command not found: "+refusal.Word(m.words[0])) {
		return hints
	}
	flags, line := p.Spec.Flags(), shellWords(m.words)
	if m.image == "" {
		return m.orFile(flags, m.orImage(flags, hints))
	}
	var first []string
	if info, err := m.host.Stat(m.words[0]); err == nil && info.Mode().IsRegular() && (strings.Contains(m.words[0], "/") || isSource(m.words[0])) {
		first = append(first, flags+" --image "+refusal.Shell(m.image)+" "+line+"   # the file of this host, in the image")
	}
	if m.host.command(m.image) {
		first = append(first, flags+" -- "+shellWords(append([]string{m.image}, m.words...))+"   # the command, not the image of its name")
	}
	return append(first, hints...)
}

// orFile are the hints for a first word that is a file of the working directory: a
// name alone is a command, unless its ending says otherwise.
func (m *meant) orFile(flags string, hints []string) []string {
	word := m.words[0]
	if info, err := m.host.Stat(word); err != nil || !info.Mode().IsRegular() || strings.Contains(word, "/") {
		return hints
	}
	line := shellWords(append([]string{"./" + word}, m.words[1:]...))
	return append([]string{flags + " " + line + "   # the file of this directory"}, hints...)
}

// orImage are the hints for a first word that may be an image's name.
func (m *meant) orImage(flags string, hints []string) []string {
	word := m.words[0]
	if strings.Contains(word, "/") || isSource(word) {
		return hints
	}
	if near := m.host.near(word); near != "" {
		return append([]string{flags + " " + shellWords(append([]string{near}, m.words[1:]...)) + "   # an image that is here"}, hints...)
	}
	if names, _ := m.host.Images(); len(names) > 0 {
		return append(hints, "sandglass image list   # if it is to be an image")
	}
	return hints
}

// command says that the host's view has a command of this name.
func (h Host) command(name string) bool {
	for _, dir := range [...]string{"/usr/local/bin/", "/usr/bin/", "/bin/"} {
		if info, err := h.Stat(dir + name); err == nil && info.Mode().IsRegular() {
			return true
		}
	}
	return false
}

// near is the image that a word was most likely meant for, or "": the one whose
// digest begins so, as docker shows it, one with another tag, or one that is a slip
// of the finger away.
func (h Host) near(word string) string { return NearImage(h.Images, word) }

// NearImage is near, of these images.
func NearImage(images func() (names, ids []string), word string) string {
	names, ids := images()
	for _, id := range ids {
		if len(word) >= 12 && strings.HasPrefix(id, image.DigestPrefix+word) {
			return image.DigestPrefix + word
		}
	}
	base, _, _ := strings.Cut(word, ":")
	best, least := "", 2
	if len(word) >= 6 {
		least = 3
	}
	for _, name := range names {
		other, _, _ := strings.Cut(name, ":")
		if other == base {
			return name
		}
		if d := min(distance(word, name), distance(word, other)); d < least {
			best, least = name, d
		}
	}
	return best
}

// commandIn is the command in the image that is the first of the words. An image's
// entrypoint may take flags of its own; to a command no image has they are ours, and
// in the wrong place.
func (h Host) commandIn(p *Parsed, rest []string) error {
	entrypoint := len(p.pending.config.Entrypoint) > 0
	if e := p.pending.entrypoint; e != nil {
		entrypoint = *e != ""
	}
	if !entrypoint && len(rest) > 1 && rest[1] != "--" && strings.HasPrefix(rest[1], "-") {
		return h.flagsFirst(p, rest[0], rest[1:])
	}
	return p.command(afterImage(rest))
}

// flagsFirst refuses flags after an image, with the line in its right order.
func (h Host) flagsFirst(p *Parsed, name string, words []string) error {
	e := refusal.Newf("%s after the image %s: flags go before the image", quote(words[0]), refusal.Word(name))
	if Imported(p.Spec.Image) && h.command(name) {
		e = refusal.Newf("%s is an image here, and %s no command in it: flags go before the image", refusal.Word(name), quote(words[0])).
			Hint("%s -- %s   # the command, not the image of its name", p.Spec.Flags(), shellWords(append([]string{name}, words...)))
	}
	trial := Parsed{Spec: Default(), ResultFD: -1, pending: &pending{given: map[string]string{}}}
	r := reader{p: &trial, table: RunFlags, command: "run"}
	after, verbatim, err := r.flags(words)
	moved := words[:len(words)-len(after)]
	if verbatim {
		moved = moved[:len(moved)-1]
	}
	if err != nil || trial.Help || len(strings.Join(words, " ")) > 100 {
		return e.Hint("%s FLAGS %s COMMAND", p.Spec.Flags(), refusal.Shell(name))
	}
	line := p.Spec.Flags() + " " + shellWords(moved)
	if len(trial.Spec.Program.Code) == 0 && !trial.pending.stdin {
		if len(after) == 0 && len(p.pending.config.Cmd) == 0 {
			after = []string{"COMMAND"}
		}
		return e.Hint("%s", strings.TrimSuffix(line+" "+shellWords(append([]string{name}, after...)), " "))
	}
	if trial.Spec.Program.Lang == "" {
		line += " --lang " + langOf(name, string(trial.Spec.Program.Code))
	}
	return e.Hint("%s", strings.TrimSuffix(line+" --image "+refusal.Shell(name)+" "+shellWords(after), " "))
}

// langOf is what a hint says for the language of code in an image of this name, LANG
// where neither tells: a guess that is wrong would be pasted.
func langOf(image, code string) string {
	for word := range strings.FieldsFuncSeq(image, func(r rune) bool { return r < 'a' || r > 'z' }) {
		switch word {
		case "python", "node", "bash", "sh", "ruby", "perl", "php", "lua", "java", "tcl":
			return word
		case "nodejs":
			return "node"
		}
	}
	if strings.Contains(code, "print(") || strings.HasPrefix(code, "import ") {
		return "python"
	}
	return "LANG"
}
