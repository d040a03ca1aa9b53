package policy

import (
	"slices"
	"strings"
)

// Flag is one option of run and plan. The flag package of the standard library
// is not used: it has no short forms, no grouped -it and no reasons to refuse.
type Flag struct {
	Name    string // without dashes
	Short   string // one letter, or ""
	Arg     string // what the value is called in the help text
	Default string // as a caller would write it, "" for none
	Help    string // one sentence; "" hides an alias from the help text
	Group   string
	Bool    bool // takes no value, or =true and =false
	Many    bool // may be given again; any other flag may not change its mind
	Set     func(*Parsed, string) error
	Refused string // why the flag is refused whatever its value
	Instead string // what to paste instead of a refused flag
}

// The groups of the help text, in its order.
const (
	groupProgram   = "Program"
	groupFiles     = "Files"
	groupLimits    = "Limits"
	groupIsolation = "Isolation"
	groupNetwork   = "Network"
	groupResult    = "Result"
	groupAlways    = "Accepted because docker run has them (always so here)"
)

// RunFlags are the flags of sandglass run and plan, refused ones included. The
// table is made on each call: init pays for package-level work in every sandbox.
func RunFlags() []Flag {
	return slices.Concat(
		programFlags(), fileFlags(), limitFlags(), ioFlags(),
		isolationFlags(), networkFlags(), resultFlags(), alwaysFlags(), refusedFlags(),
	)
}

// long and short find a flag by name; nil when there is none.
func long(flags []Flag, name string) *Flag {
	for i := range flags {
		if flags[i].Name == name {
			return &flags[i]
		}
	}
	return nil
}

func short(flags []Flag, letter string) *Flag {
	for i := range flags {
		if flags[i].Short == letter {
			return &flags[i]
		}
	}
	return nil
}

// nearest is the accepted flag that name was most likely meant to be, or "".
func nearest(flags []Flag, name string) string {
	best, least := "", 1+max(1, len(name)/3) // as Near
	for _, f := range flags {
		if f.Refused != "" || f.Help == "" {
			continue
		}
		if d := distance(name, f.Name); d < least {
			best, least = f.Name, d
		}
	}
	if best == "" && len(name) >= 3 {
		for _, f := range flags {
			if f.Refused == "" && strings.HasPrefix(f.Name, name) {
				return f.Name
			}
		}
	}
	return best
}

// Near says whether one word was likely meant to be the other.
func Near(typed, word string) bool { return distance(typed, word) <= max(1, len(typed)/3) }

// distance is the edit distance of two short words: letters that are other ones, too
// many or missing, and two that have changed places.
func distance(a, b string) int {
	if len(a) > 64 {
		return len(a) // not a slip of the finger, and not worth the time
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range len(b) {
			change := last[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
