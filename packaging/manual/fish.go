package manual

import (
	"fmt"
	"slices"
	"strings"

	"sandglass/pkg/policy"
	"sandglass/pkg/verbs"
)

const fishHead = `# Completion of sandglass for fish, made from the table of flags that --help is
# made of.

# __sandglass_at VERB...: these words follow sandglass, and the flags go on. The
# first word that is no flag ends them, as does --.
function __sandglass_at
    set -l words (commandline -opc)
    set -l skip 0
    test (count $words) -gt (count $argv); or return 1
    for i in (seq (count $words))
        set -l word $words[$i]
        if test $i -eq 1
            continue
        else if test $i -le (math (count $argv) + 1)
            set -l at (math $i - 1)
            test "$word" = "$argv[$at]"; or return 1
        else if test $skip -eq 1
            set skip 0
        else if test "$word" = --
            return 1
        else if contains -- "$word" $__sandglass_valued
            set skip 1
        else if not string match -q -- '-*' "$word"
            return 1
        end
    end
    return 0
end

# __sandglass_verb VERB...: these words follow sandglass, and nothing else yet.
function __sandglass_verb
    test (count (commandline -opc)) -eq (math (count $argv) + 1); and __sandglass_at $argv
end

`

// Fish is the completion for fish.
func Fish() string {
	var b strings.Builder
	b.WriteString(fishHead)
	var valued []string
	for _, p := range places() {
		for _, f := range p.flags {
			for _, n := range f.Names() {
				if !f.Bool && !slices.Contains(valued, n) {
					valued = append(valued, n)
				}
			}
		}
	}
	fmt.Fprintf(&b, "set -g __sandglass_valued %s\n\n", strings.Join(valued, " "))
	for _, v := range verbs.All() {
		fishLine(&b, "__sandglass_verb", " -f -a "+v.Name, v.Help)
	}
	for _, v := range verbs.All() {
		for _, s := range v.Sub {
			fishLine(&b, "__sandglass_verb "+v.Name, " -f -a "+s.Name, brief(s.Help))
		}
		if !v.Run && len(v.Sub) == 0 {
			fishLine(&b, "__sandglass_at "+v.Name, " -f", "")
		}
	}
	for _, p := range places() {
		for _, f := range p.flags {
			fishLine(&b, "__sandglass_at "+strings.Join(p.words, " "), fishFlag(f), f.Help)
		}
	}
	return b.String()
}

func fishLine(b *strings.Builder, when, what, help string) {
	b.WriteString("complete -c sandglass -n " + fishWord(when) + what)
	if help != "" {
		b.WriteString(" -d " + fishWord(help))
	}
	b.WriteByte('\n')
}

func fishFlag(f policy.Flag) string {
	text := ""
	if f.Short != "" {
		text += " -s " + f.Short
	}
	if f.Name != "" {
		text += " -l " + f.Name
	}
	if f.Bool {
		return text
	}
	v := values(f.Arg)
	offer := slices.Clone(v.words)
	if v.dirs {
		offer = append(offer, "(__fish_complete_directories)")
	}
	switch {
	case v.files:
		return text + " -r -F"
	case len(offer) > 0:
		return text + " -x -a " + fishWord(strings.Join(offer, " "))
	}
	return text + " -x"
}

// fishWord makes s one word of fish.
func fishWord(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}
