package sessionclient

import (
	"encoding/json"
	"errors"
	"reflect"
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
	// a bool, or []string for one that may be repeated.
	Options map[string]any
	// Inline is how many bytes of the files in /out come with the result, Out a
	// directory of the host's that they are copied to instead.
	Inline int64
	Out    string
	Force  bool
}

// File is one that is in /work when the program starts: Data, or the host's file
// From.
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
	w := wireRequest{Type: "run", ID: id, Command: q.Command, Lang: q.Lang, File: q.File, Args: q.Args, Env: q.Env, Options: q.Options}
	if !q.valid() {
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

func (q *Request) valid() bool {
	texts := append([]string{q.Code, q.Lang, q.File, q.Out}, q.Command...)
	texts = append(texts, q.Args...)
	for k, v := range q.Env {
		texts = append(texts, k, v)
	}
	for _, f := range q.Files {
		texts = append(texts, f.Path, f.From)
	}
	for k, v := range q.Options {
		texts = append(texts, k)
		texts = appendTexts(texts, reflect.ValueOf(v))
	}
	for _, s := range texts {
		if !utf8.ValidString(s) {
			return false
		}
	}
	return true
}

// appendTexts adds the strings of an option's value, of whatever type it is.
func appendTexts(texts []string, v reflect.Value) []string {
	switch v.Kind() {
	case reflect.String:
		texts = append(texts, v.String())
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			texts = appendTexts(texts, v.Index(i))
		}
	case reflect.Interface, reflect.Pointer:
		texts = appendTexts(texts, v.Elem())
	}
	return texts
}
