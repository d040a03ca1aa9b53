package compat

import "testing"

var java = []program{
	{file: "java.sh", needs: "bash java javac", want: "500500 1\na child\n500500 1\na child\n"},
}

// TestJava compiles, runs, and runs a source file.
func TestJava(t *testing.T) { each(t, java) }
