package policy

import (
	"io"
	"strings"
)

// The help text fits a terminal of usageWidth columns; help starts at usageHelp.
const (
	usageWidth = 100
	usageHelp  = 34
)

// Forms are the command lines of run, without the name of the binary.
func Forms() []string {
	return []string{
		"run [FLAGS] [host|DIR|IMAGE] COMMAND [ARG...]",
		"run [FLAGS] FILE [ARG...]",
		"run [FLAGS] -c CODE --lang NAME [ARG...]",
		"run [FLAGS] - --lang NAME [ARG...]       code on stdin",
		"run [FLAGS] -- COMMAND [ARG...]          never taken for an image or a file",
	}
}

// About says what run does, and Notes what is good to know.
const About = `Runs one program in one fresh sandbox and throws the sandbox away. There is no network but
for the hosts of --allow-host; of the caller's files and environment the program sees only what a
flag names. The first word that is not a flag ends the flags. A flag may not be given twice with
different values, but for those that add something each time: -v, -e, --allow-host and the like.
`

const Notes = `Exit code: the program's own; 128+n signal n; 124 time; 137 memory; 153 output; 125 refused,
failed, or not all output or artifacts arrived; 126 not executable; 127 not found. --result tells
them apart from the program's own.

The program starts in an empty scratch: of the files here only FILE itself is inside. The ones
beside it come with -v "$PWD:/task", and FILE is then run from there. --out collects at most
--out-files entries and --out-limit bytes, 16 levels deep; more is an error.

Examples:
  sandglass run script.py
  sandglass run -v "$PWD:/task" -- python /task/main.py
  sandglass run -c 'print(1)' --lang python
  sandglass run --rm --network none --read-only --memory 256m --cpus 0.5 --pids-limit 64 \
    --user 65534 --cap-drop ALL --security-opt no-new-privileges \
    -v "$PWD/task:/task:ro" host timeout 10 python /task/main.py
`

// FlagGroup are flags that belong together in a help text.
type FlagGroup struct {
	Name  string
	Flags []Flag
}

// Groups are the flags of run that its help text lists, in its order.
func Groups() []FlagGroup {
	var list []FlagGroup
	flags := RunFlags()
	for _, name := range [...]string{groupProgram, groupFiles, groupLimits, groupNetwork, groupIsolation, groupResult, groupAlways} {
		g := FlagGroup{Name: name}
		for _, f := range flags {
			if f.Group == name && f.Help != "" {
				g.Flags = append(g.Flags, f)
			}
		}
		list = append(list, g)
	}
	return list
}

// Usage writes the help text of run, which is plan's as well.
func Usage(w io.Writer) error {
	var b strings.Builder
	b.WriteString("usage: sandglass " + strings.Join(Forms(), "\n       sandglass ") + "\n\n" + About)
	for _, g := range Groups() {
		b.WriteString("\n" + g.Name + ":\n")
		for _, f := range g.Flags {
			head := "      "
			if f.Short != "" {
				head = "  -" + f.Short + ", "
			}
			Explain(&b, head+"--"+f.Name+f.value(), f.text(), usageHelp, usageWidth)
		}
	}
	var names []string
	for _, f := range RunFlags() {
		if f.Refused != "" {
			names = append(names, "--"+f.Name)
		}
	}
	b.WriteString("\nRefused, each with its reason when it is used:\n")
	wrap(&b, strings.Join(names, " "), 2, 2, usageWidth)
	b.WriteString("\n" + Notes)
	_, err := io.WriteString(w, b.String())
	return err
}

// Head is the flag as a caller writes it: "-m, --memory SIZE".
func (f Flag) Head() string { return strings.Join(f.Names(), ", ") + f.value() }

// Names are the flag's names with their dashes.
func (f Flag) Names() (names []string) {
	if f.Short != "" {
		names = append(names, "-"+f.Short)
	}
	if f.Name != "" {
		names = append(names, "--"+f.Name)
	}
	return names
}

func (f Flag) value() string {
	if f.Arg == "" {
		return ""
	}
	return " " + f.Arg
}

func (f Flag) text() string {
	if f.Default == "" {
		return f.Help
	}
	return f.Help + " (default " + f.Default + ")"
}

// Explain writes a line that begins with head and goes on with help, wrapped,
// from a column on; below head where that is too long.
func Explain(b *strings.Builder, head, help string, column, width int) {
	b.WriteString(head)
	at := len(head)
	if at+2 > column {
		b.WriteByte('\n')
		at = 0
	}
	wrap(b, help, column-at, column, width)
}

// wrap writes words with a first and a following indent, and ends the line.
func wrap(b *strings.Builder, words string, first, indent, width int) {
	b.WriteString(strings.Repeat(" ", first))
	col := indent
	for i, w := range strings.Fields(words) {
		switch {
		case i == 0:
		case col+1+len(w) > width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			col = indent
		default:
			b.WriteByte(' ')
			col++
		}
		b.WriteString(w)
		col += len(w)
	}
	b.WriteByte('\n')
}
