package hostid

import (
	"slices"
	"testing"
)

func TestParseGrants(t *testing.T) {
	text := "# comment\n\na:100000:65536\n1000:5:1\n" +
		"a:1\na:1:2:3\n:1:2\na:-1:2\na:+1:2\na: 1:2\na:1:0\na:1:x\na:4294967295:2\na:99999999999999999999:1\n" + "b:4294967295:1"
	list, bad := parseGrants([]byte(text))
	want := []grant{{"a", span{100000, 65536}}, {"1000", span{5, 1}}, {"b", span{4294967295, 1}}}
	if !slices.Equal(list, want) || bad != 10 {
		t.Errorf("%v, %d malformed; want %v, 10", list, bad, want)
	}
}

func TestUsable(t *testing.T) {
	names := []string{"1000", "me"}
	for _, c := range []struct {
		list []grant
		want []span
	}{
		{[]grant{{"me", span{100000, 10}}, {"1000", span{200000, 1}}}, []span{{100000, 10}, {200000, 1}}},
		{[]grant{{"you", span{100000, 10}}, {"10001", span{200000, 1}}}, nil},
		// Root, people, services and nobody; numbers that are negative to some.
		{[]grant{{"me", span{0, 65536}}}, nil},
		{[]grant{{"me", span{0, 65537}}}, []span{{65536, 1}}},
		{[]grant{{"me", span{1<<31 - 2, 10}}}, []span{{1<<31 - 2, 1}}},
		// What another has too, and root's sandboxes.
		{[]grant{{"me", span{100000, 10}}, {"you", span{100003, 2}}}, []span{{100000, 3}, {100005, 5}}},
		{[]grant{{"me", span{100000, 10}}, {"you", span{99999, 20}}}, nil},
		{[]grant{{"me", span{First - 1, Count + 2}}}, []span{{First - 1, 1}, {First + Count, 1}}},
		// A line twice, and one within another.
		{[]grant{{"me", span{100000, 10}}, {"1000", span{100000, 10}}, {"me", span{100005, 10}}}, []span{{100000, 10}, {100010, 5}}},
	} {
		if got := usable(c.list, names); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.list, got, c.want)
		}
	}
}

func TestMapped(t *testing.T) {
	spans := []span{{100000, 10}, {200000, 10}}
	for text, want := range map[string][]span{
		"0 0 4294967295\n":                 spans,
		"0 1000 1\n1 100000 100004\n":      {{100000, 5}},
		"0 1000 1\n100003 7 2\n":           {{100003, 2}},
		"0 1000 1\n":                       nil,
		"":                                 nil,
		"x y z\n0 0\n99999999999999 1 5\n": nil,
	} {
		if got := mapped(spans, []byte(text)); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestAtAndFree(t *testing.T) {
	spans := []span{{10, 2}, {20, 1}}
	if got := []int{at(spans, 0), at(spans, 1), at(spans, 2), at(spans, 3), total(spans)}; !slices.Equal(got, []int{10, 11, 20, -1, 3}) {
		t.Errorf("%v", got)
	}
	if got := free(nil, []grant{{"a", span{165536, 65536}}, {"b", span{100000, 65536}}}); got != 231072 {
		t.Errorf("free from %d on, want 231072", got)
	}
}

func TestForeignSource(t *testing.T) {
	for text, want := range map[string]bool{"passwd: sss\n": false, "subid: files\n": false, "subid:\tsss\n": true, "#subid: sss\n": false} {
		if foreignSource([]byte(text)) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}
