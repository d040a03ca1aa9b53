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

const usageHead = `usage: sandglass run [FLAGS] [host|DIR] COMMAND [ARG...]
       sandglass run [FLAGS] FILE [ARG...]
       sandglass run [FLAGS] -c CODE --lang NAME [ARG...]
       sandglass run [FLAGS] - --lang NAME [ARG...]       code on stdin
       sandglass run [FLAGS] -- COMMAND [ARG...]          never taken for an image or a file

Runs one program in one fresh sandbox and throws the sandbox away. There is no network; of the
caller's files and environment the program sees only what a flag names. The first word that is not
a flag ends the flags. A flag may not be given twice with different values.
`

const usageTail = `
Exit code: the program's own; 128+n signal n; 124 time; 137 memory; 153 output; 125 refused,
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

// Usage writes the help text of run, which is plan's as well.
func Usage(w io.Writer) error {
	var b strings.Builder
	b.WriteString(usageHead)
	flags := RunFlags()
	for _, group := range [...]string{groupProgram, groupFiles, groupLimits, groupNetwork, groupIsolation, groupResult, groupAlways} {
		b.WriteString("\n" + group + ":\n")
		for _, f := range flags {
			if f.Group == group && f.Help != "" {
				writeFlag(&b, f)
			}
		}
	}
	var names []string
	for _, f := range flags {
		if f.Refused != "" {
			names = append(names, "--"+f.Name)
		}
	}
	b.WriteString("\nRefused, each with its reason when it is used:\n")
	wrap(&b, strings.Join(names, " "), 2, 2)
	b.WriteString(usageTail)
	_, err := io.WriteString(w, b.String())
	return err
}

func writeFlag(b *strings.Builder, f Flag) {
	head := "      "
	if f.Short != "" {
		head = "  -" + f.Short + ", "
	}
	head += "--" + f.Name
	if f.Arg != "" {
		head += " " + f.Arg
	}
	b.WriteString(head)
	help, at := f.Help, len(head)
	if f.Default != "" {
		help += " (default " + f.Default + ")"
	}
	if at+2 > usageHelp {
		b.WriteByte('\n')
		at = 0
	}
	wrap(b, help, usageHelp-at, usageHelp)
}

// wrap writes words with a first and a following indent, and ends the line.
func wrap(b *strings.Builder, words string, first, indent int) {
	b.WriteString(strings.Repeat(" ", first))
	col := indent
	for i, w := range strings.Fields(words) {
		switch {
		case i == 0:
		case col+1+len(w) > usageWidth:
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
