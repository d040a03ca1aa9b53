package manual

import (
	"fmt"
	"strings"

	"sandglass/pkg/verbs"
)

const bashHead = `# Completion of sandglass for bash, made from the table of flags that --help is
# made of. It needs no other file.

_sandglass() {
	local cur=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} at=2 flags valued want= word
	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		COMPREPLY=($(compgen -W '%s' -- "$cur"))
		return
	fi
`

const bashSub = `	if [[ $verb == %[1]s ]]; then
		if ((COMP_CWORD == 2)); then
			COMPREPLY=($(compgen -W '%[2]s' -- "$cur"))
			return
		fi
		verb="%[1]s ${COMP_WORDS[2]}" at=3
	fi
`

// The words before the cursor are read as sandglass does: the first that is no
// flag ends them, as does --. bash cuts words at = and at :.
const bashWalk = `	*)
		compopt -o default 2>/dev/null
		return
		;;
	esac
	while ((at < COMP_CWORD)); do
		word=${COMP_WORDS[at]}
		((at++))
		case $word in
		--) want=program ;;
		-) ;;
		-*)
			if [[ " $valued " == *" $word "* ]]; then
				if [[ ${COMP_WORDS[at]} == '=' ]]; then ((at++)); fi
				if ((at >= COMP_CWORD)); then want=$word; fi
				((at++))
			fi
			while ((at < COMP_CWORD)) && [[ ${COMP_WORDS[at]} == [=:]* ]]; do
				((at++))
				if ((at >= COMP_CWORD)); then want=value; fi
				((at++))
			done
			;;
		*) want=program ;;
		esac
		if [[ -n $want ]]; then break; fi
	done
	if [[ $cur == [=:] ]]; then cur=; fi
	case $want in
	'')
		if [[ $cur == -* ]]; then
			COMPREPLY=($(compgen -W "$flags" -- "$cur"))
		else
			compopt -o default 2>/dev/null
		fi
		;;
	program | value) compopt -o default 2>/dev/null ;;
`

const bashTail = `	esac
}

complete -F _sandglass sandglass
`

// Bash is the completion for bash.
func Bash() string {
	var b strings.Builder
	fmt.Fprintf(&b, bashHead, strings.Join(names(), " "))
	for _, v := range verbs.All() {
		if len(v.Sub) > 0 {
			fmt.Fprintf(&b, bashSub, v.Name, strings.Join(subs(v), " "))
		}
	}
	b.WriteString("	case $verb in\n")
	words := map[string]string{} // the values of a flag, in a line of bash
	var order []string
	for _, p := range places() {
		var flags, valued []string
		for _, f := range p.flags {
			flags = append(flags, f.Names()...)
			if f.Bool {
				continue
			}
			valued = append(valued, f.Names()...)
			pattern := strings.Join(f.Names(), " | ")
			if line := bashValues(values(f.Arg)); line != "" && words[pattern] == "" {
				words[pattern], order = line, append(order, pattern)
			}
		}
		fmt.Fprintf(&b, "\t%s)\n\t\tflags='%s'\n\t\tvalued='%s'\n\t\t;;\n", single(strings.Join(p.words, " ")), strings.Join(flags, " "), strings.Join(valued, " "))
	}
	b.WriteString(bashWalk)
	for _, pattern := range order {
		fmt.Fprintf(&b, "\t%s) %s ;;\n", pattern, words[pattern])
	}
	return b.String() + bashTail
}

func bashValues(v value) string {
	var parts []string
	if len(v.words) > 0 {
		parts = append(parts, fmt.Sprintf(`COMPREPLY=($(compgen -W '%s' -- "$cur"))`, strings.Join(v.words, " ")))
	}
	switch {
	case v.files:
		parts = append(parts, "compopt -o default 2>/dev/null")
	case v.dirs:
		parts = append(parts, "compopt -o dirnames 2>/dev/null")
	}
	return strings.Join(parts, "; ")
}

func subs(v verbs.Verb) (list []string) {
	for _, s := range v.Sub {
		list = append(list, s.Name)
	}
	return list
}
