package artifacts

import (
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// countMost bounds how many names are counted of a directory that is not
// collected: the program may have made a million of them.
const countMost = 100_000

// LimitError says that entries were left out because of Limits. Without it a
// caller would take half of a large result for all of it.
type LimitError struct {
	Count int      // entries left out; what a directory among them holds is not counted
	Least bool     // there are more than Count
	Bytes int64    // of the files among them whose size was known
	Why   []Excess // the limits, each once
}

// Excess is one limit that was passed.
type Excess struct {
	Limit Kind
	Text  string
}

// Kind is one field of Limits, or two that count the same.
type Kind int

const (
	KindFiles Kind = iota
	KindBytes      // of one file, or of all together
	KindDepth
)

func (e *LimitError) Error() string {
	count := entries(e.Count) + " were not collected: "
	if e.Count == 1 {
		count = "1 entry was not collected: "
	}
	if e.Least {
		count = "at least " + count
	}
	for i, why := range e.Why {
		if i > 0 {
			count += "; "
		}
		count += why.Text
	}
	return count
}

func (c *collector) noteLimit(n int, limit Kind, text string) {
	why := Excess{limit, text}
	if c.beyond == nil {
		c.beyond = &LimitError{}
	}
	c.beyond.Count += n
	if !slices.Contains(c.beyond.Why, why) {
		c.beyond.Why = append(c.beyond.Why, why)
	}
}

// noteRest counts what is left of a directory, of which done names were looked
// at, when a limit has ended the walk.
func (c *collector) noteRest(dir, done int) {
	if c.rest == "" {
		return // the clock or the caller did, which has an error of its own
	}
	n := max(1, countNames(dir, done+countMost)-done)
	c.noteLimit(n, KindFiles, c.rest)
	c.beyond.Least = c.beyond.Least || n > countMost
}

// countNames counts the names of dir, up to a bit more than most.
func countNames(dir, most int) int {
	if _, err := unix.Seek(dir, 0, unix.SEEK_SET); err != nil {
		return 0
	}
	buf := make([]byte, 8<<10)
	n := 0
	for n <= most {
		got, err := retry(func() (int, error) { return unix.Getdents(dir, buf) })
		if err != nil || got <= 0 {
			break
		}
		_, more, _ := unix.ParseDirent(buf[:got], -1, nil)
		n += more
	}
	return n
}

func entries(n int) string {
	if n == 1 {
		return "1 entry"
	}
	return strconv.Itoa(n) + " entries"
}
