package session

import (
	"slices"
	"strings"
	"unicode/utf8"

	"sandglass/internal/refusal"
	"sandglass/pkg/policy"
)

// The types of requests.
const (
	typeRun    = "run"
	typeCancel = "cancel"
	typeMore   = "more"
)

var requestTypes = []string{typeRun, typeCancel, typeMore}

// request is one line of the client's.
type request struct {
	kind string
	id   string
	policy.Request
	stdin  []byte
	stream bool  // output is sent as it comes
	window int64 // in bytes, 0 for none
	pieces int64 // that a more gives back

	given []string // the fields, to tell those that the type has not
}

// field reads the value of one field into r; known is false for one that no
// request has.
func (r *request) field(name string, d *decoder) (known bool, err error) {
	var s string
	p := &r.Program
	switch name {
	case "type":
		r.kind, err = d.str(name)
	case "id":
		err = r.readID(d)
	case "command":
		p.Command, err = d.strings(name)
	case "code":
		s, err = d.str(name)
		p.Code = []byte(s)
	case "lang":
		p.Lang, err = d.str(name)
	case "file":
		p.File, err = d.str(name)
	case "args":
		p.Args, err = d.strings(name)
	case "env":
		err = r.readEnv(d)
	case "stdin":
		s, err = d.str(name)
		r.stdin = []byte(s)
	case "stdin_base64":
		r.stdin, err = d.bytes(name)
	case "files":
		err = r.readFiles(d)
	case "options":
		err = r.readOptions(d)
	case "output":
		err = r.readOutput(d)
	case "artifacts":
		err = r.readArtifacts(d)
	case "window":
		r.window, err = d.whole(name, minWindow, MaxWindow)
	case "pieces":
		r.pieces, err = d.whole(name, 1, WindowPieces)
	default:
		return false, nil
	}
	return true, err
}

func (r *request) readID(d *decoder) error {
	id, err := d.str("id")
	if err == nil && !validID(id) {
		return d.fail("id is not 1 to 64 of the characters A-Z a-z 0-9 . _ : -")
	}
	r.id = id
	return err
}

// invalidAt is where text stops being UTF-8. U+FFFD itself may be in it.
func invalidAt(text string) int {
	for i, c := range text {
		if c == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(text[i:]); size == 1 {
				return i
			}
		}
	}
	return len(text)
}

// decode reads one line. What was read before an error is in the request, so that
// the reply can name it. An error is a *syntaxError, or a *refusal.Error.
func decode(line []byte) (r request, err error) {
	d := &decoder{text: string(line)}
	if !utf8.ValidString(d.text) {
		d.at = invalidAt(d.text)
		return r, d.fail("the line is not UTF-8")
	}
	err = d.object("the request", func(name string) error {
		r.given = append(r.given, name)
		known, err := r.field(name, d)
		if !known {
			return d.fail("unknown field " + quote(name))
		}
		return err
	})
	if err == nil {
		err = d.end()
	}
	if err == nil {
		err = r.check(d)
	}
	return r, err
}

// check refuses what a request of its type must or may not have.
func (r *request) check(d *decoder) error {
	has := func(names ...string) (n int) {
		for _, name := range names {
			if slices.Contains(r.given, name) {
				n++
			}
		}
		return n
	}
	switch {
	case r.kind == "":
		return d.fail("the field type is missing")
	case !slices.Contains(requestTypes, r.kind):
		return nil // told apart by its reply
	case r.id == "":
		return d.fail("the field id is missing")
	case r.kind == typeCancel && len(r.given) > 2:
		return d.fail("a cancel has no other fields than type and id")
	case r.kind == typeMore && (len(r.given) > 3 || has("pieces") == 0):
		return d.fail("a more has the fields type, id and pieces")
	case r.kind == typeRun && has("pieces") > 0:
		return d.fail("pieces is for a more")
	case has("window") > 0 && !r.stream:
		return d.fail("a window is for a run whose output is stream")
	case r.kind == typeRun && has("command", "code", "file") != 1:
		return d.fail("a run has one of the fields command, code and file")
	case has("stdin", "stdin_base64") == 2:
		return d.fail("stdin and stdin_base64 exclude each other")
	}
	r.Stdin = has("stdin", "stdin_base64") > 0
	return nil
}

// validID keeps ids short and plain: each reply repeats it.
func validID(id string) bool { return refusal.Plain(id, "._:-", "", 64) }

func (r *request) readEnv(d *decoder) error {
	return d.object("env", func(name string) error {
		if strings.Contains(name, "=") {
			return d.fail("env: " + quote(name) + " is not the name of a variable")
		}
		value, err := d.str("env: the value of " + quote(name))
		r.Env = append(r.Env, name+"="+value)
		return err
	})
}

func (r *request) readFiles(d *decoder) error {
	return d.array("files", func() error {
		if len(r.Files) == policy.MaxFiles {
			return refusal.Newf("files: there are more than %d", policy.MaxFiles).
				Hint(`"options": {"volume": "/srv/data:/data:ro"}   # shows a whole directory`)
		}
		f, err := readFile(d)
		r.Files = append(r.Files, f)
		return err
	})
}

// readFile reads {"path": NAME, "executable": true} with text, base64 or from.
func readFile(d *decoder) (f policy.File, err error) {
	ways := 0
	err = d.object("a file", func(name string) (err error) {
		switch name {
		case "path":
			f.Name, err = d.str(name)
			return err
		case "executable":
			f.Exec, err = d.flag(name)
			return err
		case "text":
			var s string
			s, err = d.str(name)
			f.Content = []byte(s)
		case "base64":
			f.Content, err = d.bytes(name)
		case "from":
			if f.Source, err = d.str(name); err == nil && f.Source == "" {
				return d.fail("from is empty")
			}
		default:
			return d.fail("files: unknown field " + quote(name))
		}
		ways++
		return err
	})
	if err == nil && ways != 1 {
		err = d.fail("a file has one of the fields text, base64 and from")
	}
	return f, err
}

func (r *request) readOptions(d *decoder) error {
	return d.object("options", func(name string) error {
		o := policy.Option{Name: name}
		value := func() error {
			v, err := d.scalar("option " + quote(name))
			o.Values = append(o.Values, v)
			return err
		}
		var err error
		if o.List = d.next() == '['; o.List {
			err = d.array("option "+quote(name), value)
		} else {
			err = value()
		}
		r.Options = append(r.Options, o)
		return err
	})
}

func (r *request) readOutput(d *decoder) error {
	s, err := d.str("output")
	if err == nil && s != "collect" && s != "stream" {
		return d.fail("output is neither collect nor stream")
	}
	r.stream = s == "stream"
	return err
}

// readInline reads how much may come with the result. What it would be refused for
// later would be called --out-limit there.
func readInline(s string) (int64, error) {
	n, err := policy.ParseSize(s)
	if err == nil && n > policy.MaxKept {
		most := policy.FormatSize(policy.MaxKept)
		err = refusal.Newf("%s is too much to hold in the result: at most %s", policy.FormatSize(n), most).Hint(`"artifacts": {"inline": "%s"}`, most)
	}
	if err != nil {
		return 0, refusal.Within("artifacts: inline", err)
	}
	return n, nil
}

// readArtifacts reads {"inline": SIZE} or {"dir": PATH, "force": true}.
func (r *request) readArtifacts(d *decoder) error {
	err := d.object("artifacts", func(name string) (err error) {
		switch name {
		case "dir":
			if r.Out, err = d.str(name); err == nil && r.Out == "" {
				return d.fail("dir is empty")
			}
		case "force":
			r.Force, err = d.flag(name)
		case "inline":
			var s string
			if s, err = d.scalar(name); err != nil {
				return err
			}
			r.Keep, err = readInline(s)
		default:
			return d.fail("artifacts: unknown field " + quote(name))
		}
		return err
	})
	if err == nil && (r.Out == "") == (r.Keep == 0) {
		err = d.fail("artifacts has one of the fields inline and dir")
	}
	return err
}
