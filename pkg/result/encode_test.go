package result

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"
)

// reference is the result as encoding/json has it, all at once.
func reference(t testing.TB, r Result) string {
	t.Helper()
	if r.Schema == 0 {
		r.Schema = Schema
	}
	if r.Limits == nil {
		r.Limits = map[string]Limit{}
	}
	r.Layers, r.Denied, r.Artifacts = append([]Layer{}, r.Layers...), append([]Denial{}, r.Denied...), append([]Artifact{}, r.Artifacts...)
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(&r); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, r := range b.String() {
		if steers(r) {
			fmt.Fprintf(&out, `\u%04x`, r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}

func compare(t testing.TB, name string, r *Result, want string) {
	t.Helper()
	got, err := r.JSON()
	if err != nil || string(got) != want {
		t.Errorf("%s: %v\ngot  %q\nwant %q", name, err, got, want)
	}
}

// fill sets whatever there is, so that a field which the encoder lacks is missed.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("é\"\\\u2028\x01<&>\x7f\u202e\U0001f600")
	case reflect.Int, reflect.Int64:
		v.SetInt(math.MinInt64 + 7)
	case reflect.Uint16:
		v.SetUint(math.MaxUint16 - 1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0))
		fill(v.Index(1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for _, key := range []string{"b", "é", "a", "ab", "\xff", ""} {
			e := reflect.New(v.Type().Elem()).Elem()
			fill(e)
			v.SetMapIndex(reflect.ValueOf(key), e)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	default:
		panic(v.Kind())
	}
}

// The encoder is ours, the bytes are encoding/json's.
func TestJSONIsAsEncodingJSONWritesIt(t *testing.T) {
	var full Result
	fill(reflect.ValueOf(&full).Elem())
	compare(t, "every field", &full, reference(t, full))
	for name, r := range samples() {
		compare(t, name, r, reference(t, *r))
	}
	var all strings.Builder
	for r := rune(0); r <= utf8.MaxRune; r += 1 + r>>12 {
		all.WriteRune(r)
	}
	for _, s := range []string{all.String(), "\xff", "\xe6\xbc", "a\xe6\xbcb", "\ufffd", "\xed\xa0\x80", strings.Repeat("\x80", 10000), "x" + strings.Repeat("漢", 5000)} {
		r := Result{Error: s, Artifacts: []Artifact{{Path: s, Target: s}, {}}}
		compare(t, fmt.Sprintf("%.20q", s), &r, reference(t, r))
	}
}

// captured writes in pieces of n bytes.
func captured(s string, n int) *Capture {
	c := &Capture{}
	for len(s) > 0 {
		k := min(n, len(s))
		io.WriteString(c, s[:k])
		s = s[k:]
	}
	return c
}

// What is attached is written as what is taken, wherever its chunks end.
func TestCapture(t *testing.T) {
	long := strings.Repeat("漢é\U0001f600\x01x", 60000)
	for _, s := range []string{"", "a\nß", "\xff\x00", "cut \xe6\xbc", long, "x" + long, "xx" + long, "xxx" + long, long + "\xf0\x9f", long[:70000] + "\xff" + long} {
		for _, n := range []int{1, 4095, 65536, len(s) + 1} {
			var attached, taken Result
			attached.Stdout.Attach(captured(s, n))
			taken.Stdout.Take(captured(s, n))
			var set Stream
			set.SetCaptured([]byte(s))
			if taken.Stdout != set {
				t.Errorf("%.9q by %d: taken in pieces it differs", s, n)
			}
			want := Stream{Kept: int64(len(s)), Text: s}
			if !utf8.ValidString(s) {
				want.Text, want.Base64 = "", base64.StdEncoding.EncodeToString([]byte(s))
			}
			if set != want {
				t.Errorf("%.9q: %d %d %d", s, set.Kept, len(set.Text), len(set.Base64))
			}
			got, err := attached.JSON()
			if err != nil || string(got) != reference(t, taken) {
				t.Errorf("%.9q by %d: attached it is written in another way, %v", s, n, err)
			}
		}
	}
	c := captured("a", 1)
	(&Stream{}).Attach(c)
	if n, err := c.Write([]byte("late")); n != 0 || err != io.ErrClosedPipe || c.size != 1 {
		t.Errorf("a late write: %d, %v, %d bytes", n, err, c.size)
	}
}

// A byte that takes six in JSON costs no memory of ours: neither when it is kept
// nor when it is written.
func TestMemory(t *testing.T) {
	const size, rows = 8 << 20, 1000
	for _, s := range []string{"\x01", "\xff", "漢"} {
		var before, kept, written runtime.MemStats
		var r Result
		block := []byte(strings.Repeat(s, 64<<10/len(s)))
		for range rows {
			r.Artifacts = append(r.Artifacts, Artifact{Path: strings.Repeat("\x01", 1000)})
		}
		runtime.ReadMemStats(&before)
		c := &Capture{}
		for n := 0; n < size; n += len(block) {
			c.Write(block)
		}
		runtime.ReadMemStats(&kept)
		r.Stdout.Attach(c)
		n, err := r.WriteTo(io.Discard)
		runtime.ReadMemStats(&written)
		if got := kept.TotalAlloc - before.TotalAlloc; got > size+size/8 {
			t.Errorf("%q: %d bytes allocated to keep %d", s, got, size)
		}
		if got := written.TotalAlloc - kept.TotalAlloc; err != nil || n < size || got > 256<<10 {
			t.Errorf("%q: %d bytes allocated to write %d, %v", s, got, n, err)
		}
	}
}

type failing struct{ left int }

var errFull = errors.New("full")

func (f *failing) Write(b []byte) (int, error) {
	if len(b) > f.left {
		return f.left, errFull
	}
	f.left -= len(b)
	return len(b), nil
}

func TestWriteToTellsTheError(t *testing.T) {
	var r Result
	r.Stdout.SetCaptured(bytes.Repeat([]byte("x"), 1<<20))
	for _, left := range []int{0, 100_000} {
		if n, err := r.WriteTo(&failing{left}); err != errFull || n > int64(left) {
			t.Errorf("%d: %d, %v", left, n, err)
		}
	}
}
