package profile

import (
	"slices"
	"strconv"
	"strings"
)

// Format is the profile in the form that Parse reads: the same profile always
// gives the same bytes, a line for each call, so that a version control system
// shows what has changed. Comments are lost.
func (p *Profile) Format() []byte {
	var b strings.Builder
	b.WriteString("{\n\t\"defaultAction\": " + actionText(p.Default, ",\n\t\"defaultErrnoRet\": "))
	var list []string
	for _, a := range p.Arches {
		list = append(list, strconv.Quote(nameOf(arches(), a)))
	}
	slices.Sort(list)
	b.WriteString(",\n\t\"architectures\": [" + strings.Join(list, ", ") + "],\n\t\"syscalls\": [\n")
	b.WriteString(strings.Join(append(p.constants(), p.conditional()...), ",\n"))
	b.WriteString("\n\t]\n}\n")
	return []byte(b.String())
}

// nameOf is the key of a value.
func nameOf[V comparable](names map[string]V, v V) string {
	for name, x := range names {
		if x == v {
			return name
		}
	}
	return ""
}

func actionText(a Action, errno string) string {
	text := strconv.Quote(nameOf(kinds(), a.Kind))
	if a.Kind == Errno {
		text += errno + strconv.Itoa(int(a.Errno))
	}
	return text
}

// constants are the groups of calls whose arguments do not matter, one for each
// action.
func (p *Profile) constants() []string {
	names := map[string][]string{}
	for _, c := range p.Calls {
		if len(c.Rules[0].Args) == 0 {
			text := actionText(c.Rules[0].Action, ", \"errnoRet\": ")
			names[text] = append(names[text], "\t\t\t\t"+strconv.Quote(c.Name))
		}
	}
	var groups []string
	for action, list := range names {
		slices.Sort(list)
		groups = append(groups, "\t\t{\n\t\t\t\"action\": "+action+",\n\t\t\t\"names\": [\n"+strings.Join(list, ",\n")+"\n\t\t\t]\n\t\t}")
	}
	slices.Sort(groups)
	return groups
}

// conditional are the groups of the others, one for each rule.
func (p *Profile) conditional() []string {
	calls := slices.Clone(p.Calls)
	slices.SortFunc(calls, func(a, b *Call) int { return strings.Compare(a.Name, b.Name) })
	var groups []string
	for _, c := range calls {
		if len(c.Rules[0].Args) == 0 {
			continue
		}
		var rules []string
		for _, r := range c.Rules {
			rules = append(rules, ruleText(c.Name, r))
		}
		slices.Sort(rules)
		if c.Otherwise != nil {
			rules[0] += ",\n\t\t\t\"otherwise\": {\"action\": " + actionText(*c.Otherwise, ", \"errnoRet\": ") + "}"
		}
		for _, r := range rules {
			groups = append(groups, r+"\n\t\t}")
		}
	}
	return groups
}

func ruleText(name string, r Rule) string {
	var args []string
	for _, a := range r.Args {
		text := "\t\t\t\t{\"index\": " + strconv.Itoa(int(a.Index)) + ", \"value\": " + strconv.FormatUint(a.Value, 10)
		if a.Op == MaskedEQ {
			text += ", \"valueTwo\": " + strconv.FormatUint(a.ValueTwo, 10)
		}
		args = append(args, text+", \"op\": "+strconv.Quote(nameOf(operators(), a.Op))+"}")
	}
	return "\t\t{\n\t\t\t\"action\": " + actionText(r.Action, ", \"errnoRet\": ") + ",\n\t\t\t\"names\": [" + strconv.Quote(name) + "],\n" +
		"\t\t\t\"args\": [\n" + strings.Join(args, ",\n") + "\n\t\t\t]"
}

// text is the condition as people write it, with arguments counted from 0.
func (a Arg) text() string {
	value := func(n uint64) string { return "0x" + strconv.FormatUint(n, 16) }
	left := "arg" + strconv.Itoa(int(a.Index))
	if a.Op == MaskedEQ {
		return left + "&" + value(a.Value) + "==" + value(a.ValueTwo)
	}
	words := map[Op]string{NE: "!=", LT: "<", LE: "<=", EQ: "==", GE: ">=", GT: ">"}
	return left + words[a.Op] + value(a.Value)
}
