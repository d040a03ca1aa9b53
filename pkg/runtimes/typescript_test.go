package runtimes

import (
	"strings"
	"testing"
)

// TestTypeScript: a node that is known to take none is passed over, and one that is
// not known to take it is not offered.
func TestTypeScript(t *testing.T) {
	for _, tt := range []struct {
		header string
		found  bool
		runs   bool
	}{
		{"#define NODE_MAJOR_VERSION 20\n#define NODE_MINOR_VERSION 20\n", false, false},
		{"#define NODE_MAJOR_VERSION 22\n#define NODE_MINOR_VERSION 17\n", false, false},
		{"#define NODE_MAJOR_VERSION 22\n#define NODE_MINOR_VERSION 18\n", true, true},
		{"#define NODE_MAJOR_VERSION 23\n#define NODE_MINOR_VERSION 5\n", false, false},
		{"#define NODE_MAJOR_VERSION 23\n#define NODE_MINOR_VERSION 6\n", true, true},
		{"#define NODE_MAJOR_VERSION 24\r\n#define NODE_MINOR_VERSION 0\r\n", true, true},
		{"#define NODE_MAJOR_VERSION -1\n#define NODE_MINOR_VERSION 0\n", true, false},
		{"", true, false},
	} {
		root := tree(t, map[string]string{"n/bin/node": "x", "n/include/node/node_version.h": tt.header})
		got, err := finder(root, []string{"n/bin"}, "").Find("typescript")
		if tt.found {
			if err != nil || got.Exe != root+"/n/bin/node" || RunsTypeScript(got.Exe) != tt.runs {
				t.Errorf("%q: %s, %v, known to run it %v", tt.header, got.Exe, err, RunsTypeScript(got.Exe))
			}
			continue
		}
		if r := wantRefusal(t, err, 127, "takes no TypeScript, 22.18 does"); !strings.Contains(r.What, root+"/n/bin/node: Node 2") {
			t.Errorf("%q: %s", tt.header, r.What)
		}
		root = tree(t, map[string]string{"n/bin/node": "x", "n/include/node/node_version.h": tt.header, "d/bin/deno": "x"})
		if got, err := finder(root, []string{"n/bin", "d/bin"}, "").Find("ts"); err != nil || got.Exe != root+"/d/bin/deno" || !RunsTypeScript(got.Exe) {
			t.Errorf("beside deno: %s, %v", got.Exe, err)
		}
	}
}
