package sessionclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"
	"unicode/utf8"
)

// Request is one run: one of Command, File and Code, which goes with Lang.
type Request struct {
	Command []string
	Code    string
	Lang    string
	File    string // of the host's
	Args    []string
	Env     map[string]string
	Stdin   []byte // nil for a stdin at its end
	Files   []File
	// Options are flags of sandglass run by their long names: a string, a number,
	// a bool, a time.Duration, or a slice of these for one that may be repeated; nil
	// is the default.
	Options map[string]any
	// Inline is how many bytes of the files in /out come with the result, Out a
	// directory of the host's that they are copied to instead; Force replaces what
	// is there.
	Inline int64
	Out    string
	Force  bool
}

// File is one that is in /work when the program starts: Data, or the host's file
// From, and not both.
type File struct {
	Path string
	Data []byte
	From string
	Exec bool
}

// The forms of a request's parts. []byte is base64 in JSON.
type (
	wireRequest struct {
		Type      string            `json:"type"`
		ID        string            `json:"id"`
		Command   []string          `json:"command,omitempty"`
		Code      *string           `json:"code,omitempty"`
		Lang      string            `json:"lang,omitempty"`
		File      string            `json:"file,omitempty"`
		Args      []string          `json:"args,omitempty"`
		Env       map[string]string `json:"env,omitempty"`
		Stdin     *[]byte           `json:"stdin_base64,omitempty"`
		Files     []wireFile        `json:"files,omitempty"`
		Options   map[string]any    `json:"options,omitempty"`
		Output    string            `json:"output,omitempty"`
		Window    int64             `json:"window,omitempty"`
		Artifacts *wireArtifacts    `json:"artifacts,omitempty"`
	}
	wireFile struct {
		Path string  `json:"path"`
		Data *[]byte `json:"base64,omitempty"`
		From string  `json:"from,omitempty"`
		Exec bool    `json:"executable,omitempty"`
	}
	wireArtifacts struct {
		Inline int64  `json:"inline,omitempty"`
		Dir    string `json:"dir,omitempty"`
		Force  bool   `json:"force,omitempty"`
	}
)

// line is the request as it is sent, with the window of a run that streams, if it
// has one.
func (q *Request) line(id string, stream bool, window int64) ([]byte, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	options, err := plainOptions(q.Options)
	if err != nil {
		return nil, err
	}
	w := wireRequest{Type: "run", ID: id, Command: q.Command, Lang: q.Lang, File: q.File, Args: q.Args, Env: q.Env, Options: options}
	if !q.valid(options) {
		// encoding/json would put another text in its place.
		return nil, errors.New("the request has text that is not UTF-8")
	}
	if q.Lang != "" && q.File == "" || q.Code != "" {
		w.Code = &q.Code
	}
	if q.Stdin != nil {
		w.Stdin = &q.Stdin
	}
	for _, f := range q.Files {
		wf := wireFile{Path: f.Path, From: f.From, Exec: f.Exec}
		if f.From == "" {
			if f.Data == nil {
				f.Data = []byte{}
			}
			wf.Data = &f.Data
		}
		w.Files = append(w.Files, wf)
	}
	if stream {
		w.Output, w.Window = "stream", window
	}
	if q.Inline != 0 || q.Out != "" {
		w.Artifacts = &wireArtifacts{q.Inline, q.Out, q.Force}
	}
	line, err := json.Marshal(w)
	return append(line, '\n'), err
}

// check names the field that asks for two things or for none: the session would say
// what it met in its own words, or send a file of the host's in place of Data.
func (q *Request) check() error {
	for i, f := range q.Files {
		if f.From != "" && f.Data != nil {
			return fmt.Errorf("the request's Files[%d] has both Data and From", i)
		}
	}
	switch {
	case q.Inline < 0:
		return fmt.Errorf("the request's Inline is %d, and must be a number of bytes", q.Inline)
	case q.Inline != 0 && q.Out != "":
		return errors.New("the request's Inline and Out exclude each other")
	case q.Force && q.Out == "":
		return errors.New("the request's Force is for Out: what is there is replaced")
	}
	return nil
}

// plainOptions are options as JSON has them. In it a time.Duration would be a number
// of nanoseconds, which the session reads as seconds, and []byte a text in base64.
func plainOptions(options map[string]any) (map[string]any, error) {
	plain := map[string]any{}
	for name, v := range options {
		p, err := plainOption(reflect.ValueOf(v))
		if err != nil {
			return nil, fmt.Errorf("option %s is %v, and must be a string, a number, a bool, a time.Duration or a slice of these", name, err)
		}
		if p != nil {
			plain[name] = p
		}
	}
	return plain, nil
}

func plainOption(v reflect.Value) (any, error) {
	switch v.Kind() {
	case reflect.Invalid:
		return nil, nil
	case reflect.Interface, reflect.Pointer:
		return plainOption(v.Elem())
	case reflect.String:
		if n, ok := v.Interface().(json.Number); ok {
			return n, nil
		}
		return v.String(), nil
	case reflect.Bool:
		return v.Bool(), nil
	case reflect.Float32, reflect.Float64:
		if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, fmt.Errorf("%v", f)
		}
		return v.Interface(), nil
	case reflect.Slice, reflect.Array:
		return plainSlice(v)
	}
	if d, ok := v.Interface().(time.Duration); ok {
		return d.String(), nil
	}
	if v.CanInt() || v.CanUint() {
		return v.Interface(), nil
	}
	return nil, errors.New("of type " + v.Type().String())
}

func plainSlice(v reflect.Value) (any, error) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		return nil, errors.New("of type " + v.Type().String())
	}
	list := []any{}
	for i := range v.Len() {
		p, err := plainOption(v.Index(i))
		if err == nil && p == nil {
			err = fmt.Errorf("a slice with nil in [%d]", i)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

func (q *Request) valid(options map[string]any) bool {
	texts := append([]string{q.Code, q.Lang, q.File, q.Out}, q.Command...)
	texts = append(texts, q.Args...)
	for k, v := range q.Env {
		texts = append(texts, k, v)
	}
	for _, f := range q.Files {
		texts = append(texts, f.Path, f.From)
	}
	for k, v := range options {
		texts = appendTexts(append(texts, k), v)
	}
	for _, s := range texts {
		if !utf8.ValidString(s) {
			return false
		}
	}
	return true
}

// appendTexts adds the strings of an option's value.
func appendTexts(texts []string, v any) []string {
	switch v := v.(type) {
	case string:
		return append(texts, v)
	case []any:
		for _, e := range v {
			texts = appendTexts(texts, e)
		}
	}
	return texts
}
