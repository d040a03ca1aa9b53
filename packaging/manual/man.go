package manual

import (
	"strings"

	"sandglass/pkg/policy"
	"sandglass/pkg/verbs"
)

// Pages are the manual pages of section 1: one about sandglass, and one for each
// command. date is YYYY-MM-DD.
func Pages(version, date string) []File {
	list := []File{{"sandglass.1", overview(version, date)}}
	for _, v := range verbs.All() {
		list = append(list, File{"sandglass-" + v.Name + ".1", page(v, version, date)})
	}
	return list
}

const about = `sandglass runs code that a model wrote, or that nobody has read, in a fresh native
Linux sandbox: no network, no files, no environment and no descriptors of the
caller's but those that are named, and fixed limits on time, memory, CPU, processes,
disk and output. It needs no daemon, no image and no set-up, works as root and as an
ordinary user, and takes docker run's own flags. When the run ends, the whole sandbox
is gone. A control that this host cannot give is a refusal with the cause and the
remedy, never a silent gap.
`

const start = `Examples:
  sandglass run script.py
  sandglass run -c 'print(1)' --lang python
  sandglass check
  sandglass doctor
`

func overview(version, date string) string {
	m := newPage("SANDGLASS", version, date)
	m.name("sandglass", "run hostile code in a throwaway sandbox")
	m.section("SYNOPSIS")
	m.synopsis([]string{"COMMAND [FLAGS] [ARG...]"})
	m.section("DESCRIPTION")
	m.prose(about)
	m.section("COMMANDS")
	for _, v := range verbs.All() {
		m.item(`\fB`+escape(v.Name)+`\fR`, v.Help+", see sandglass-"+v.Name+"(1)")
	}
	m.prose(start)
	m.section("FILES")
	m.item(`\fI`+escape("/usr/share/doc/sandglass")+`\fR`, "the README, the threat model and the other documents, an example of a systemd unit")
	m.see("sandglass")
	return m.String()
}

func page(v verbs.Verb, version, date string) string {
	m := newPage("SANDGLASS-"+strings.ToUpper(v.Name), version, date)
	m.name("sandglass-"+v.Name, v.Help)
	m.section("SYNOPSIS")
	m.synopsis(v.Forms)
	m.section("DESCRIPTION")
	m.prose(v.About)
	if len(v.Sub) > 0 {
		m.section("COMMANDS")
	}
	for _, s := range v.Sub {
		m.item(`\fB`+escape(s.Name)+`\fR`, s.Help)
		if len(s.Flags) > 0 {
			m.line(".RS")
			m.flags(s.Flags)
			m.line(".RE")
		}
	}
	m.options(v)
	if v.Notes != "" {
		m.paragraphs("NOTES", v.Notes)
	}
	m.see("sandglass-" + v.Name)
	return m.String()
}

// roff is a page in the making.
type roff struct{ strings.Builder }

func newPage(title, version, date string) *roff {
	m := &roff{}
	m.line(`.\" Made from the table of flags that --help is made of.`)
	m.line(`.TH ` + escape(title) + ` 1 "` + escape(date) + `" "` + escape("sandglass "+version) + `" "User Commands"`)
	m.line(".nh") // a word that is cut cannot be pasted
	m.line(".ad l")
	return m
}

func (m *roff) line(s string) { m.WriteString(s + "\n") }

func (m *roff) section(name string) { m.line(".SH " + name) }

func (m *roff) name(name, help string) {
	m.section("NAME")
	m.line(escape(name) + ` \- ` + escape(help))
}

// synopsis writes the forms; what stands behind many spaces, or on a line of its
// own, is a remark.
func (m *roff) synopsis(forms []string) {
	m.line(".nf")
	for _, f := range forms {
		for i, l := range strings.Split(f, "\n") {
			l = strings.Join(strings.Fields(strings.ReplaceAll(l, "       ", " # ")), " ")
			if i == 0 {
				l = "sandglass " + l
			}
			m.line(escape(strings.TrimPrefix(l, "# ")))
		}
	}
	m.line(".fi")
}

// options are a verb's own flags, and for run all of its groups.
func (m *roff) options(v verbs.Verb) {
	if v.Name != "run" {
		if len(v.Flags) > 0 {
			m.section("OPTIONS")
			m.flags(v.Flags)
		}
		return
	}
	m.section("OPTIONS")
	for _, g := range policy.Groups() {
		m.line(".SS " + escape(g.Name))
		m.flags(g.Flags)
	}
	m.section("REFUSED")
	m.prose("These flags of docker run are known, so that a line copied from there fails with the reason and never half works:\n")
	for _, f := range policy.RunFlags() {
		if f.Refused != "" {
			m.item(`\fB`+escape("--"+f.Name)+`\fR`, f.Refused)
		}
	}
}

func (m *roff) flags(list []policy.Flag) {
	for _, f := range list {
		head := ""
		for i, n := range f.Names() {
			if i > 0 {
				head += ", "
			}
			head += `\fB` + escape(n) + `\fR`
		}
		if f.Arg != "" {
			head += ` \fI` + escape(f.Arg) + `\fR`
		}
		help := f.Help
		if f.Default != "" {
			help += " (default " + f.Default + ")"
		}
		m.item(head, help)
	}
}

// item is a paragraph with a tag, which is roff already.
func (m *roff) item(tag, help string) {
	m.line(".TP")
	m.line(tag)
	m.line(escape(help))
}

// prose sets the paragraphs of a help text anew. What its first words make a
// section of its own comes last.
func (m *roff) prose(text string) {
	m.paragraphs("", text)
}

func (m *roff) paragraphs(section, text string) {
	var plain, exit, examples []string
	for _, p := range strings.Split(strings.TrimRight(text, "\n"), "\n\n") {
		if rest, ok := strings.CutPrefix(p, "Exit code: "); ok {
			exit = append(exit, rest)
		} else if rest, ok := strings.CutPrefix(p, "Examples:\n"); ok {
			examples = append(examples, rest)
		} else {
			plain = append(plain, p)
		}
	}
	m.fill(section, plain)
	m.fill("EXIT STATUS", exit)
	if len(examples) > 0 {
		m.section("EXAMPLES")
		m.verbatim(strings.Join(examples, "\n"))
	}
}

func (m *roff) fill(section string, paragraphs []string) {
	if section != "" && len(paragraphs) > 0 {
		m.section(section)
	}
	for i, p := range paragraphs {
		if i > 0 {
			m.line(".PP")
		}
		for l := range strings.Lines(p) {
			m.line(escape(strings.TrimSpace(l)))
		}
	}
}

func (m *roff) verbatim(text string) {
	m.line(".nf")
	for l := range strings.Lines(text) {
		m.line(escape(strings.TrimPrefix(strings.TrimRight(l, "\n"), "  ")))
	}
	m.line(".fi")
}

func (m *roff) see(self string) {
	m.section("SEE ALSO")
	var list []string
	for _, f := range append([]string{""}, names()...) {
		if n := strings.TrimSuffix("sandglass-"+f, "-"); n != self {
			list = append(list, `\fB`+escape(n)+`\fR(1)`)
		}
	}
	m.line(strings.Join(list, ",\n"))
}

func names() (list []string) {
	for _, v := range verbs.All() {
		list = append(list, v.Name)
	}
	return list
}

// escape keeps what a caller may paste as ASCII: roff turns these into
// typographic ones. A line may not begin with a control character.
func escape(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, `"`, `\(dq`).Replace(s)
	if strings.HasPrefix(s, ".") {
		return `\&` + s
	}
	return s
}
