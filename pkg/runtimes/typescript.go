package runtimes

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// Node runs TypeScript by itself from these versions on, 23.0 to 23.5 left out
// (https://nodejs.org/api/typescript.html). An older one takes the file for
// JavaScript and tells of a syntax error, which no reader would take for a want of
// a newer Node.
const stripsFrom, strips23From = 22<<8 | 18, 23<<8 | 6

// RunsTypeScript is whether an executable is known to.
func RunsTypeScript(exe string) bool {
	if !isNode(exe) {
		return true // deno, bun
	}
	v, known := nodeVersion(exe)
	return known && strips(v)
}

func strips(v int) bool { return v >= stripsFrom && (v>>8 != 23 || v >= strips23From) }

func isNode(exe string) bool { return strings.HasPrefix(filepath.Base(exe), "node") }

// tooOld is why a node cannot run TypeScript, "" where that is not known.
func tooOld(exe string) skip {
	if !isNode(exe) {
		return ""
	}
	if v, known := nodeVersion(exe); known && !strips(v) {
		return skip(fmt.Sprintf("%s: Node %d.%d takes no TypeScript, 22.18 does", quote(exe), v>>8, v&0xff))
	}
	return ""
}

// nodeVersion is major<<8 | minor as the header says that an installation has,
// and false where there is none. Nothing is started to ask.
func nodeVersion(exe string) (v int, known bool) {
	text, err := readFile(filepath.Dir(filepath.Dir(exe))+"/include/node/node_version.h", 4096, true)
	if err != nil {
		return 0, false
	}
	var n [2]int
	for i, name := range [...]string{"NODE_MAJOR_VERSION", "NODE_MINOR_VERSION"} {
		_, rest, _ := strings.Cut(string(text), "#define "+name+" ")
		digits, _, _ := strings.Cut(rest, "\n")
		if n[i], err = strconv.Atoi(strings.TrimSpace(digits)); err != nil || n[i] < 0 || n[i] > 0xff {
			return 0, false
		}
	}
	return n[0]<<8 | n[1], true
}
