// Package verbs is the command line in one table: the commands of sandglass,
// what each is for, and its flags. --help is made of it here, the manual pages
// and the completions of shells in packaging/manual.
package verbs

import (
	"strings"

	"sandglass/pkg/policy"
)

// Verb is a word that follows sandglass, or, in Sub, one that follows it.
type Verb struct {
	Name  string
	Help  string   // one line; of one in Sub all that is said of it
	Forms []string // its command lines, without the name of the binary
	About string   // what it does
	Flags []policy.Flag
	Run   bool   // takes the flags of run as well
	Notes string // what is good to know, behind the flags
	Sub   []Verb
}

// All are the commands in the order of the help text. The table is made on each
// call: init pays for package-level work in every sandbox.
func All() []Verb {
	return []Verb{run(), session(), mcp(), check(), doctor(), plan(), profile(), image(), sweep(), version()}
}

// Find is the command of that name, nil when there is none.
func Find(name string) *Verb {
	for _, v := range All() {
		if v.Name == name {
			return &v
		}
	}
	return nil
}

// Help texts but run's are width columns wide.
const (
	column    = 12
	subColumn = 32
	width     = 84
)

// Usage is what --help prints.
func (v Verb) Usage() string {
	var b strings.Builder
	if v.Name == "run" {
		policy.Usage(&b) // a Builder takes everything
		return b.String()
	}
	b.WriteString("usage: sandglass " + strings.Join(v.Forms, "\n       sandglass ") + "\n\n" + v.About)
	if len(v.Flags)+len(v.Sub) > 0 {
		b.WriteByte('\n')
	}
	explain(&b, v.Flags, 2, v.column())
	for _, s := range v.Sub {
		policy.Explain(&b, "  "+s.Name, s.Help, column, width)
		explain(&b, s.Flags, column, subColumn)
	}
	if v.Notes != "" {
		b.WriteString("\n" + v.Notes)
	}
	return b.String()
}

// HelpOn is what --help prints: of the one of Sub that args begin with, or of v.
func (v Verb) HelpOn(args []string) string {
	for _, a := range args {
		if text := v.subUsage(a); text != "" {
			return text
		}
		if !strings.HasPrefix(a, "-") && a != "help" {
			break
		}
	}
	return v.Usage()
}

// subUsage is that of one of Sub, "" for none of that name.
func (v Verb) subUsage(name string) string {
	for _, s := range v.Sub {
		if s.Name != name {
			continue
		}
		one := Verb{Name: s.Name, Flags: s.Flags}
		for _, f := range v.Forms {
			if strings.HasPrefix(f+" ", v.Name+" "+name+" ") {
				one.Forms = append(one.Forms, f)
			}
		}
		var b strings.Builder
		policy.Explain(&b, "", s.Help, 0, width)
		one.About = strings.TrimPrefix(b.String(), "\n")
		return one.Usage()
	}
	return ""
}

// column is where the help of the flags starts.
func (v Verb) column() int {
	at := column
	for _, f := range v.Flags {
		if n := len(f.Head()) + 5; n > at && n <= 2*column+2 {
			at = n
		}
	}
	return at
}

func explain(b *strings.Builder, flags []policy.Flag, indent, column int) {
	for _, f := range flags {
		policy.Explain(b, strings.Repeat(" ", indent)+f.Head(), f.Help, column, width)
	}
}

// Usage is what sandglass --help prints.
func Usage() string {
	var b strings.Builder
	b.WriteString("usage: sandglass COMMAND [FLAGS] [ARG...]\n\n")
	for _, v := range All() {
		policy.Explain(&b, "  "+v.Name, v.Help, column+1, 2*width)
	}
	b.WriteString("\n  sandglass run script.py\n  sandglass help COMMAND     # the flags of a command\n")
	return b.String()
}
