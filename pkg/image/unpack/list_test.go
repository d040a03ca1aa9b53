package unpack

import (
	"bytes"
	"strings"
	"testing"

	"sandglass/pkg/image/tree"
)

// checkList reads a tree's list back, and compares.
func checkList(t *testing.T, u *Unpacked) {
	t.Helper()
	l := limits()
	var once, again bytes.Buffer
	if err := u.Tree.Write(&once); err != nil {
		t.Fatal(err)
	}
	back, err := tree.Read(bytes.NewReader(once.Bytes()), l.Bounds())
	if err != nil {
		t.Fatalf("%v\n%s", err, once.String())
	}
	if err := back.Write(&again); err != nil || !bytes.Equal(once.Bytes(), again.Bytes()) {
		t.Fatalf("the list differs (%v)\n%s\n%s", err, once.String(), again.String())
	}
}

// No name can end its line in the list of files.
func TestList(t *testing.T) {
	u, _, err := bring(t, archive(t, file("a\nd 755 0 0 0 0 - \"x\" \"\"", "1"), file("b\xff\"'\\ ", "22"), link("l", "x\n\" caps"), dir("d")))
	if err != nil {
		t.Fatal(err)
	}
	checkList(t, u)
	for _, line := range []string{
		"", "x 644 0 0 0 0 - \"a\" \"\"", "f 644 0 0 0 1 - \"a\" \"\"", "l 777 0 0 0 0 - \"a\" \"\"", "f 644 0 0 0 1 00 \"a\" \"\" more",
		"f 10000 0 0 0 1 00 \"a\" \"\"", "f 644 0 0 0 x 00 \"a\" \"\"", "f 644 0 0 0 1 00 a \"\"", "d 755 0 0 0 0 - \"../a\" \"\"",
	} {
		l := limits()
		if _, err := tree.Read(strings.NewReader(line+"\n"), l.Bounds()); err == nil {
			t.Errorf("%q is taken for a line of a list", line)
		}
	}
}
