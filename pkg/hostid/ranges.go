package hostid

import (
	"bytes"
	"strconv"
)

// span is ids from first on, count of them.
type span struct{ first, count int }

func (s span) end() int { return s.first + s.count }

// Nothing below lowest is ever taken, whatever a line gives: the ids of people,
// of services and of nobody lie there (and of root, which a line with a 0 in it
// would give to a sandbox). From highest on ids are negative to old programs.
const (
	lowest  = 1 << 16
	highest = 1<<31 - 1
)

// grant is one line of /etc/subuid or /etc/subgid.
type grant struct {
	owner string
	span
}

// parseGrants reads "OWNER:FIRST:COUNT" (subuid(5)). A line of another form is
// passed over, as newuidmap does, and counted.
func parseGrants(text []byte) (list []grant, malformed int) {
	for line := range bytes.Lines(text) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		if len(bytes.TrimSpace(line)) == 0 || line[0] == '#' {
			continue
		}
		f := bytes.Split(line, []byte(":"))
		if len(f) != 3 || len(f[0]) == 0 {
			malformed++
			continue
		}
		// ParseUint takes no sign and no space.
		first, err1 := strconv.ParseUint(string(f[1]), 10, 32)
		count, err2 := strconv.ParseUint(string(f[2]), 10, 32)
		if err1 != nil || err2 != nil || count == 0 || first+count > 1<<32 {
			malformed++
			continue
		}
		list = append(list, grant{string(f[0]), span{int(first), int(count)}})
	}
	return list, malformed
}

// usable are the ids of the owner's lines that a sandbox may have: in bounds, not
// root's sandboxes' and nobody else's. Two users whose lines overlap hold their
// locks in different places, so neither gets what both have.
func usable(list []grant, names []string) []span {
	var own, others []span
	for _, g := range list {
		if g.owner == names[0] || len(names) > 1 && g.owner == names[1] {
			own = append(own, g.span)
		} else {
			others = append(others, g.span)
		}
	}
	spans := within(own, span{lowest, highest - lowest})
	for _, o := range append(others, span{First, Count}) {
		spans = without(spans, o)
	}
	// A line that is there twice, or overlaps with another one of the owner's.
	var distinct []span
	for _, s := range spans {
		rest := []span{s}
		for _, d := range distinct {
			rest = without(rest, d)
		}
		distinct = append(distinct, rest...)
	}
	return distinct
}

// within cuts spans to one.
func within(spans []span, bound span) []span {
	var list []span
	for _, s := range spans {
		first, end := max(s.first, bound.first), min(s.end(), bound.end())
		if first < end {
			list = append(list, span{first, end - first})
		}
	}
	return list
}

// without takes one span out of others.
func without(spans []span, hole span) []span {
	var list []span
	for _, s := range spans {
		if hole.end() <= s.first || s.end() <= hole.first {
			list = append(list, s)
			continue
		}
		if s.first < hole.first {
			list = append(list, span{s.first, hole.first - s.first})
		}
		if hole.end() < s.end() {
			list = append(list, span{hole.end(), s.end() - hole.end()})
		}
	}
	return list
}

// mapped cuts spans to the ids that exist in this user namespace, by the text of
// /proc/self/uid_map.
func mapped(spans []span, text []byte) []span {
	var list []span
	for _, s := range mapLines(text) {
		list = append(list, within(spans, s)...)
	}
	return list
}

// mapLines are the ids inside that a uid_map or gid_map has.
func mapLines(text []byte) []span {
	var list []span
	for line := range bytes.Lines(text) {
		f := bytes.Fields(line)
		if len(f) != 3 {
			continue
		}
		first, err1 := strconv.ParseUint(string(f[0]), 10, 32)
		count, err2 := strconv.ParseUint(string(f[2]), 10, 32)
		if err1 == nil && err2 == nil {
			list = append(list, span{int(first), int(count)})
		}
	}
	return list
}

func total(spans []span) (n int) {
	for _, s := range spans {
		n += s.count
	}
	return n
}

// at is the i-th id.
func at(spans []span, i int) int {
	for _, s := range spans {
		if i < s.count {
			return s.first + i
		}
		i -= s.count
	}
	return -1
}

// free is the first of 65536 ids that no line of either file has, for a remedy.
func free(lists ...[]grant) int {
	const step = 1 << 16
	first := 100000 // shadow's SUB_UID_MIN
	for again := true; again; {
		again = false
		for _, list := range lists {
			for _, g := range list {
				if g.first < first+step && first < g.end() {
					first, again = g.end(), true
				}
			}
		}
	}
	return first
}
