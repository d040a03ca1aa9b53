package lines

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestLines(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"a\nbb\n", []string{"a", "bb"}},
		{"a\n\nb", []string{"a", "", "b"}},
		{"12345678\n123456789\nx\n", []string{"12345678", "too long", "x"}},
		{"123456789", []string{"too long"}},
		{strings.Repeat("y", 200_000) + "\nz\n", []string{"too long", "z"}},
	} {
		l, got := New(strings.NewReader(c.text), 8), []string(nil)
		for {
			line, err := l.Next()
			if err == io.EOF {
				break
			}
			if err == ErrTooLong {
				line = []byte("too long")
			} else if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(line))
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) || len(got) != len(c.want) {
			t.Errorf("%.20q: %q, want %q", c.text, got, c.want)
		}
	}
}
