package denials

import (
	"slices"
	"strings"
	"sync"

	"sandglass/pkg/result"
)

// maxRows bounds the table: a program can refuse itself something in more ways
// than anybody would read.
const maxRows = 64

// row is what makes two denials the same.
type row struct{ kind, what, args, errno, program string }

// table counts denials.
type table struct {
	mu   sync.Mutex
	rows map[row]int64
	more int64
}

func (t *table) add(r row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.rows[r]; !ok && len(t.rows) >= maxRows {
		t.more++
		return
	}
	if t.rows == nil {
		t.rows = map[row]int64{}
	}
	t.rows[r]++
}

// list is the rows, the most frequent first, and how many denials found no room.
func (t *table) list() ([]result.Denial, int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []result.Denial
	for r, n := range t.rows {
		list = append(list, result.Denial{Kind: r.kind, What: r.what, Args: r.args, Errno: r.errno, Program: r.program, Count: n})
	}
	slices.SortFunc(list, func(a, b result.Denial) int {
		if a.Count != b.Count {
			return int(min(max(b.Count-a.Count, -1), 1))
		}
		for _, c := range []int{
			strings.Compare(a.Kind, b.Kind), strings.Compare(a.What, b.What), strings.Compare(a.Args, b.Args),
			strings.Compare(a.Errno, b.Errno), strings.Compare(a.Program, b.Program),
		} {
			if c != 0 {
				return c
			}
		}
		return 0
	})
	return list, t.more
}
