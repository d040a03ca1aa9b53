package rootfs

import (
	"reflect"
	"testing"

	"sandglass/pkg/wire"
)

// later are the fields that say what comes later, or differ by the run.
var later = map[string]bool{"Code": true, "Files": true, "Cgroup": true, "Waits": true}

// TestSame: every field counts, those that will be added too.
func TestSame(t *testing.T) {
	kind := reflect.TypeOf(Input{})
	for i := range kind.NumField() {
		var a, b Input
		change(reflect.ValueOf(&b).Elem().Field(i))
		if name := kind.Field(i).Name; a.Same(&b) != later[name] {
			t.Errorf("%s: %v", name, a.Same(&b))
		}
	}
	a := Input{Mounts: []Bind{{Target: "/a"}, {Target: "/b", Write: true}}}
	b := Input{Mounts: []Bind{a.Mounts[1], a.Mounts[0]}}
	if !a.Same(&b) {
		t.Error("the order of mounts counts")
	}
	if b.Mounts[0].Write = false; a.Same(&b) {
		t.Error("a writable mount is as one that is not")
	}
}

// change gives a field a value that is not its zero value.
func change(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Struct:
		change(v.Field(0))
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	default:
		v.SetUint(1)
	}
}

// TestExtends: a name may be added, and none taken away or led elsewhere.
func TestExtends(t *testing.T) {
	a, b := Link{"/opt/a", "/usr/bin/x"}, Link{"/opt/b", "/usr/bin/y"}
	had, in := Input{Names: []Link{a}}, Input{Names: []Link{b, a}}
	if !had.Extends(&in) || in.Extends(&had) || had.Extends(&Input{Names: []Link{{"/opt/a", "/usr/bin/y"}, b}}) {
		t.Error("names are not compared")
	}
	if in.Pty = true; had.Extends(&in) {
		t.Error("only names are compared")
	}
	if code, _ := Later(&had, &in); len(code) != 1 || code[0].Kind != wire.OpLink || code[0].Target != b.Target || code[0].Source != b.Text {
		t.Errorf("%+v", code)
	}
}

// TestLater: what is put in later is what an ordinary run has at the same places.
func TestLater(t *testing.T) {
	in := Input{Code: &Code{Name: "main.py", Content: []byte("x"), Size: 1}, Files: []Code{{Name: "a/b", Exec: true}}}
	code, files := Later(&Input{}, &in)
	if len(code) != 1 || code[0].Kind != wire.OpCopy || code[0].Target != "/code/main.py" || code[0].Mode != 0o444 {
		t.Errorf("%+v", code)
	}
	if len(files) != 1 || files[0].Kind != wire.OpCopy || files[0].Target != "/work/a/b" || files[0].Mode != 0o755 {
		t.Errorf("%+v", files)
	}
}
