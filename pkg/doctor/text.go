package doctor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sandglass/internal/refusal"
)

// Text is the report for people: a line for each layer, and below one that does
// not work, or works with less, what to paste. Layers with one cause are one.
func (r *Report) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Linux %s %s, uid %d, cgroup %s", r.Host.Kernel, r.Host.Machine, r.Host.UID, r.Host.Cgroup)
	for _, k := range r.Host.Kind {
		b.WriteString(", " + k)
	}
	b.WriteString("\n\n")
	told := map[string]string{}
	for _, g := range grouped(r.Layers) {
		writeLayer(&b, g, told)
	}
	b.WriteString("\n" + r.verdict())
	return b.String()
}

// grouped joins layers that stand beside each other and lack the same.
func grouped(layers []Layer) []Layer {
	var list []Layer
	for _, l := range layers {
		if n := len(list) - 1; n >= 0 && list[n].says(&l) {
			list[n].Name += ", " + l.Name
			if l.Flag != "" {
				list[n].Flag += "," + strings.TrimPrefix(l.Flag, allowFlag)
			}
			continue
		}
		list = append(list, l)
	}
	return list
}

const allowFlag = "--allow-degraded "

// says compares what a person would paste. Limits that lack one thing name
// different files after it, and the first stands for all, as in a run's refusal.
func (l *Layer) says(other *Layer) bool {
	why, _, _ := strings.Cut(l.Cause, ": ")
	whyOther, _, _ := strings.Cut(other.Cause, ": ")
	same := l.Cause == other.Cause || l.Flag != "" && other.Flag != "" && why == whyOther
	return l.Cause != "" && same && l.State == other.State && l.Detail == other.Detail && slices.Equal(l.remedies(), other.remedies())
}

// remedies are those without the flag, which is told in its own place.
func (l *Layer) remedies() []string {
	return slices.DeleteFunc(slices.Clone(l.Remedies), func(s string) bool { return strings.HasPrefix(s, allowFlag) })
}

// writeLayer tells remedies once; told has where they stand.
func writeLayer(b *strings.Builder, l Layer, told map[string]string) {
	what := l.Cause
	if what == "" {
		what = l.Detail
	} else if l.Detail != "" {
		what = l.Detail + ": " + what
	}
	fmt.Fprintf(b, "%-16s %s", l.State, l.Name)
	if what != "" {
		b.WriteString(": " + refusal.Line(what))
	}
	b.WriteString("\n")
	lines := l.remedies()
	all := strings.Join(lines, "\n")
	if first, ok := told[all]; ok && all != "" {
		lines = []string{"the same as for " + first}
	} else {
		told[all], _, _ = strings.Cut(l.Name, ",")
	}
	for _, s := range lines {
		b.WriteString("    " + refusal.Line(s) + "\n")
	}
	if l.Flag != "" {
		b.WriteString("    " + l.Flag + "   # weaker means, by name\n")
	}
}

// verdict is the last line.
func (r *Report) verdict() string {
	switch r.Run.State {
	case Works:
		return "A run starts here.\n"
	case Less:
		return "A run starts here with " + r.Run.Flags + "; without it is refused.\n"
	}
	return "No run starts here: " + refusal.Line(r.Run.Error) + "\n"
}

// JSON is the report as one line of JSON.
func (r *Report) JSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
