package manual

import (
	"fmt"
	"strings"

	"sandglass/pkg/policy"
	"sandglass/pkg/verbs"
)

const zshHead = `#compdef sandglass
# Completion of sandglass for zsh, made from the table of flags that --help is
# made of.

_sandglass() {
  local -a verbs
`

// Zsh is the completion for zsh.
func Zsh() string {
	var b strings.Builder
	b.WriteString(zshHead)
	zshVerbs(&b, 2, verbs.All())
	b.WriteString("  shift words\n  (( CURRENT-- ))\n")
	for _, v := range verbs.All() {
		if len(v.Sub) == 0 {
			continue
		}
		fmt.Fprintf(&b, "  if [[ $words[1] == %s ]]; then\n", v.Name)
		zshVerbs(&b, 2, v.Sub)
		fmt.Fprintf(&b, "    shift words\n    (( CURRENT-- ))\n    words[1]=\"%s $words[1]\"\n  fi\n", v.Name)
	}
	b.WriteString("  case $words[1] in\n")
	for _, p := range places() {
		fmt.Fprintf(&b, "  %s)\n    _arguments -s -S -A '-*' :", single(strings.Join(p.words, " ")))
		for _, f := range p.flags {
			b.WriteString(" \\\n      " + zshFlag(f))
		}
		switch {
		case p.rest:
			b.WriteString(" \\\n      '*::program:_normal'")
		case len(p.words) > 1:
			b.WriteString(" \\\n      '*:file:_files'")
		}
		b.WriteString("\n    ;;\n")
	}
	b.WriteString("  *) _files ;;\n  esac\n}\n\n")
	// A file on fpath is the function's body; one that is sourced says who uses it.
	b.WriteString("if [[ $funcstack[1] == _sandglass ]]; then\n  _sandglass \"$@\"\nelse\n  compdef _sandglass sandglass\nfi\n")
	return b.String()
}

func zshVerbs(b *strings.Builder, at int, list []verbs.Verb) {
	fmt.Fprintf(b, "  if (( CURRENT == %d )); then\n    verbs=(\n", at)
	for _, v := range list {
		fmt.Fprintf(b, "      %s\n", single(v.Name+":"+brief(v.Help)))
	}
	b.WriteString("    )\n    _describe command verbs\n    return\n  fi\n")
}

// zshFlag is a flag as _arguments takes it.
func zshFlag(f policy.Flag) string {
	names := f.Names()
	except := "(" + strings.Join(names, " ") + ")"
	if f.Many {
		except = "*"
	}
	action := ""
	if !f.Bool {
		// -m256m and -m 256m, --memory=256m and --memory 256m
		for i, n := range names {
			if strings.HasPrefix(n, "--") {
				names[i] = n + "="
			} else {
				names[i] = n + "+"
			}
		}
		action = ":" + zshText(f.Arg) + ":" + zshValues(values(f.Arg))
	}
	tail := single("[" + zshText(f.Help) + "]" + action)
	if len(names) == 1 {
		return single(except) + single(names[0]) + tail
	}
	return single(except) + "{" + strings.Join(names, ",") + "}" + tail
}

func zshText(s string) string {
	return strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`, ":", `\:`).Replace(s)
}

func zshValues(v value) string {
	switch words := strings.Join(v.words, " "); {
	case len(v.words) > 0 && v.dirs:
		return "_alternative \"words:value:(" + words + ")\" \"dirs:directory:_files -/\""
	case len(v.words) > 0:
		return "(" + words + ")"
	case v.files:
		return "_files"
	case v.dirs:
		return "_files -/"
	}
	return " "
}

// brief is the first sentence.
func brief(s string) string {
	first, _, _ := strings.Cut(s, ". ")
	return first
}
