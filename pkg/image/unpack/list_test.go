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
	sum := strings.Repeat("0a", 32)
	good := "f 644 0 0 0 1 " + sum + " \"a\" \"\""
	l := limits()
	if _, err := tree.Read(strings.NewReader(good+"\n"), l.Bounds()); err != nil {
		t.Errorf("%q: %v", good, err)
	}
	for _, line := range []string{
		"", "x 644 0 0 0 0 - \"a\" \"\"", "f 644 0 0 0 1 - \"a\" \"\"", "l 777 0 0 0 0 - \"a\" \"\"", good + " more",
		strings.Replace(good, "644", "10000", 1), strings.Replace(good, " 1 ", " x ", 1), strings.Replace(good, "\"a\"", "a", 1), "d 755 0 0 0 0 - \"../a\" \"\"",
		strings.Replace(good, sum, "../../x", 1), strings.Replace(good, sum, sum[1:], 1), strings.Replace(good, "f ", "d ", 1), strings.Replace(good, "\"a\"", "\"../a\"", 1),
	} {
		if _, err := tree.Read(strings.NewReader(line+"\n"), l.Bounds()); err == nil {
			t.Errorf("%q is taken for a line of a list", line)
		}
	}
}
