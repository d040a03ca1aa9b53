package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/policy"
	"sandglass/pkg/sessionclient"
)

// limitField is a limit that a model may choose, up to its ceiling.
type limitField struct {
	field, flag, unit string
	of                func(*wishes) *float64       // nil for no wish
	value             func(*policy.Limits) float64 // in the field's unit
}

var limitFields = []limitField{
	{"timeout_seconds", "timeout", "s", func(w *wishes) *float64 { return w.TimeoutSeconds }, func(l *policy.Limits) float64 { return l.Timeout.Seconds() }},
	{"memory_mb", "memory", "m", func(w *wishes) *float64 { return w.MemoryMB }, func(l *policy.Limits) float64 { return float64(l.Memory) / (1 << 20) }},
	{"disk_mb", "disk", "m", func(w *wishes) *float64 { return w.DiskMB }, func(l *policy.Limits) float64 { return float64(l.Disk) / (1 << 20) }},
	{"cpus", "cpus", "", func(w *wishes) *float64 { return w.CPUs }, func(l *policy.Limits) float64 { return float64(l.MilliCPU) / 1000 }},
	{"processes", "pids-limit", "", func(w *wishes) *float64 { return w.Processes }, func(l *policy.Limits) float64 { return float64(l.Pids) }},
}

// in is a field's limit as one reads it.
func (f *limitField) in(l *policy.Limits) string {
	return strconv.FormatFloat(f.value(l), 'g', 6, 64)
}

// grant puts into a request what the model wishes and may have, and nothing else.
func (o *options) grant(q *sessionclient.Request, w *wishes) error {
	q.Env, q.Options = w.Env, map[string]any{}
	if w.Stdin != "" {
		q.Stdin = []byte(w.Stdin)
	}
	for _, f := range w.Files {
		file := sessionclient.File{Path: f.Path, Exec: f.Executable}
		switch {
		case (f.Text == nil) == (f.Base64 == nil):
			return fmt.Errorf("the file %q has one of text and base64", f.Path)
		case f.Text != nil:
			file.Data = []byte(*f.Text)
		default:
			var err error
			if file.Data, err = base64.StdEncoding.DecodeString(*f.Base64); err != nil {
				return fmt.Errorf("the file %q: %v", f.Path, err)
			}
		}
		q.Files = append(q.Files, file)
	}
	if w.Artifacts && o.artifacts > 0 {
		q.Inline = o.artifacts
	}
	if err := o.grantLimits(q, w); err != nil {
		return err
	}
	for _, h := range w.AllowHosts {
		// Word for word: a host that is read anew here and by the session could be two.
		if !slices.Contains(o.offered, h) {
			return fmt.Errorf("the host %q is not offered; offered are: %s", h, strings.Join(o.offered, ", "))
		}
	}
	if len(w.AllowHosts) > 0 {
		q.Options["allow-host"] = w.AllowHosts
	}
	return nil
}

// grantLimits holds the model's wishes against the ceilings by what the session
// will make of them, and not by the text of a number.
func (o *options) grantLimits(q *sessionclient.Request, w *wishes) error {
	var list []policy.Option
	for i := range limitFields {
		f := &limitFields[i]
		v := f.of(w)
		if v == nil {
			continue
		}
		wish, err := o.wish(f, *v)
		if err != nil {
			return err
		}
		list = append(list, wish)
		q.Options[f.flag] = wish.Values[0]
	}
	have, err := o.limits(list...)
	if err != nil {
		return errors.New(inFields(err.Error()))
	}
	if have.Output == policy.Default().Limits.Output {
		q.Options["output-limit"] = strconv.Itoa(outputBytes)
	}
	if name := beyond(&have, &o.most); name != "" {
		i := slices.IndexFunc(limitFields, func(f limitField) bool { return f.flag == name })
		if i < 0 {
			return fmt.Errorf("these limits together make the server's --%s larger than it may be", name)
		}
		return o.tooMuch(&limitFields[i])
	}
	return nil
}

// wish is one field's limit as an option. Nothing in it means "no limit": 0 is refused
// as everywhere, and not taken for a field that is left out.
func (o *options) wish(f *limitField, v float64) (policy.Option, error) {
	wish := policy.Option{Name: f.flag, Values: []string{strconv.FormatFloat(v, 'f', -1, 64) + f.unit}}
	if !(v > 0) {
		return wish, fmt.Errorf("%s is %v, and has to be above 0: without it a call has %s", f.field, v, f.in(&o.base.Limits))
	}
	_, err := o.limits(wish)
	if err != nil && v > f.value(&o.most) {
		return wish, o.tooMuch(f)
	} else if err != nil {
		return wish, errors.New(inFields(err.Error()))
	}
	return wish, nil
}

func (o *options) tooMuch(f *limitField) error {
	return fmt.Errorf("%s is more than this server allows: at most %s", f.field, f.in(&o.most))
}

// fieldOf is what a model knows a flag by.
var fieldOf = func() map[string]string {
	m := map[string]string{"env": "env", "lang": "language", "code": "code", "allow-host": "allow_hosts", "out": "artifacts", "out-limit": "artifacts"}
	for _, f := range limitFields {
		m[f.flag] = f.field
	}
	return m
}()

// inFields is a refusal in the words of the tools. Of flags a model knows nothing:
// those that are no field of its are the server's. What is quoted may be its own text.
func inFields(what string) string {
	var b strings.Builder
	for what != "" {
		i := strings.IndexAny(what, `"-`)
		if i < 0 {
			break
		}
		b.WriteString(what[:i])
		before := i == 0 && b.Len() == 0 || i > 0 && what[i-1] == ' '
		what = what[i:]
		if quoted, err := strconv.QuotedPrefix(what); err == nil {
			b.WriteString(quoted)
			what = what[len(quoted):]
			continue
		}
		name, isFlag := strings.CutPrefix(what, "--")
		name = name[:len(name)-len(strings.TrimLeft(name, "abcdefghijklmnopqrstuvwxyz-"))]
		if !before || !isFlag || name == "" {
			b.WriteByte(what[0])
			what = what[1:]
			continue
		}
		what = what[2+len(name):]
		if field := fieldOf[name]; field != "" {
			b.WriteString(field)
		} else {
			b.WriteString("the server's --" + name)
		}
	}
	return b.String() + what
}

// told is an error as a model can use it.
func told(err error) error {
	var e *sessionclient.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code {
	case "busy":
		return fmt.Errorf("busy: %s; nothing was run, try again when a call has ended", e.What)
	case "canceled":
		return errors.New("the call was canceled before its run was started")
	case "closing":
		return errEnds
	}
	what := e.What
	if i := strings.LastIndex(what, ", at byte "); i >= 0 && e.Code == "malformed" {
		what = what[:i] // of a line that the model has not written
	}
	if e.ExitCode == refusal.ExitRefused {
		what = inFields(what)
	}
	return errors.New(what)
}
