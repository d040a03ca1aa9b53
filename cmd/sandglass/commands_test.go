package main

import (
	"testing"

	"sandglass/pkg/verbs"
)

// What can be run and what is described are the same.
func TestEachCommandHasItsWords(t *testing.T) {
	all := verbs.All()
	if len(commands()) != len(all) {
		t.Fatalf("%d commands, %d descriptions", len(commands()), len(all))
	}
	for i, c := range commands() {
		if v := all[i]; c.name != v.Name || v.Help == "" || v.About == "" || len(v.Forms) == 0 {
			t.Errorf("%s is described by %+v", c.name, v)
		}
	}
}
