package policy

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestWarm(t *testing.T) {
	s := session(t, "--warm python=4,node=2,command=512 --warm-age 30s --memory 64m")
	if want := []Warm{{"python", 4}, {"node", 2}, {"", 512}}; !reflect.DeepEqual(s.Warm, want) || s.WarmAge != 30*time.Second {
		t.Errorf("%+v %v", s.Warm, s.WarmAge)
	}
	if s.Base.Limits.Memory != 64<<20 || s.Warm[0].Kind() != "python" || s.Warm[2].Kind() != "command" {
		t.Errorf("%+v", s.Base.Limits)
	}
	if s := session(t, ""); s.Warm != nil || s.WarmAge != 10*time.Minute {
		t.Errorf("by default: %+v %v", s.Warm, s.WarmAge)
	}
	for line, want := range map[string]string{
		"--warm python=100000":     "is not a number from 1 to 512",
		"--warm python=513":        "is not a number from 1 to 512",
		"--warm python=0":          "is not a number from 1 to 512",
		"--warm python=-1":         "is not a number from 1 to 512",
		"--warm ruby=1":            "is not one of command, python, node",
		"--warm py=1":              "is not one of command, python, node",
		"--warm python":            "is not KIND=N",
		"--warm python=1,":         "is not KIND=N",
		"--warm python=1,python=2": "is given twice",
		"--warm-age 1s":            "is not between 10s and 24h",
		"--warm-age 25h":           "is not between 10s and 24h",
	} {
		_, err := testHost().parseSession(words(line), 3)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

// notOfFrame are the fields that a sandbox can be given after it was made.
var notOfFrame = map[string]bool{
	"Program": true, "Env": true, "Files": true, "Stdin": true, "Out": true, "Keep": true, "Force": true, "OutputLimit": true,
	"Limits.Timeout": true, "Limits.CPUTime": true, "Limits.Output": true, "Limits.OutFiles": true, "Limits.OutBytes": true,
	"Home": true, "ImageName": true, // one only judges, the other is for messages, see Digest
}

// TestFrame: every field of a policy counts but those, and fields that will be
// added count.
func TestFrame(t *testing.T) {
	var s Spec
	eachField(reflect.ValueOf(&s).Elem(), "", func(name string, v reflect.Value) {
		before := s.Frame()
		old := reflect.New(v.Type()).Elem()
		old.Set(v)
		alter(v)
		if same := s.Frame() == before; same != (notOfFrame[name] || notOfFrame[strings.SplitN(name, ".", 2)[0]]) {
			t.Errorf("%s: the same frame: %v", name, same)
		}
		v.Set(old)
	})
}

func eachField(v reflect.Value, prefix string, do func(string, reflect.Value)) {
	for i := range v.NumField() {
		name, f := prefix+v.Type().Field(i).Name, v.Field(i)
		if f.Kind() == reflect.Struct {
			eachField(f, name+".", do)
			continue
		}
		do(name, f)
	}
}

func alter(v reflect.Value) {
	switch v.Kind() {
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int64:
		v.SetInt(v.Int() + 1)
	default:
		v.SetUint(v.Uint() + 1)
	}
}

// A pool that is made without a command line has the same bounds.
func TestCheckWarm(t *testing.T) {
	for _, c := range []struct {
		list []Warm
		age  time.Duration
		want string
	}{
		{[]Warm{{"python", 1}, {"", 512}}, 0, ""},
		{nil, time.Minute, ""},
		{[]Warm{{"python", 0}}, 0, `"0" is not a number from 1 to 512`},
		{[]Warm{{"", -1}}, 0, `"-1" is not a number from 1 to 512`},
		{[]Warm{{"node", 513}}, 0, `"513" is not a number from 1 to 512`},
		{[]Warm{{"ruby", 1}}, 0, `"ruby" is not one of command, python, node`},
		{[]Warm{{"node", 1}, {"node", 1}}, 0, "a kind of sandbox is to be kept ready twice"},
		{nil, time.Second, `"1s" is not between 10s and 24h`},
		{nil, -time.Minute, `"-1m0s" is not a limit: a duration must be above 0`},
	} {
		age := c.age
		err := CheckWarm(c.list, &age)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != c.want || got == "" && c.age == 0 && age != 10*time.Minute {
			t.Errorf("%v %v: %q, age %v, want %q", c.list, c.age, got, age, c.want)
		}
	}
}
