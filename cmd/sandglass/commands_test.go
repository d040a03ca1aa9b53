package main

import (
	"errors"
	"strings"
	"testing"

	"sandglass/internal/refusal"
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

// Who knows docker is led to the command that does what is meant.
func TestDockersCommands(t *testing.T) {
	const help = "|sandglass image --help"
	for line, want := range map[string]string{
		"build -t x .":   "sandglass image build python   # or another recipe: Dockerfiles are not read" + help,
		"load x.tar":     "sandglass image import x.tar" + help,
		"load -i x;.tar": "sandglass image import 'x;.tar'" + help,
		"images x":       "sandglass image list" + help,
		"rmi -f x y":     "sandglass image rm x y" + help,
		"save x":         "sandglass image export NAME DIR   # an OCI layout" + help,
		"inspect x":      "sandglass image show x" + help,
		"pull python": "sandglass image import --name NAME FILE   # of docker save or skopeo: there is no registry here" +
			"|sandglass image build python   # of Debian's packages" + help,
		"ls -l": "sandglass run -- ls -l   # to run it in a sandbox|sandglass --help",
	} {
		args := strings.Fields(line)
		var r *refusal.Error
		if err := notACommand(args); !errors.As(err, &r) || r.What != `unknown command "`+args[0]+`"` || r.Exit != 125 || strings.Join(r.Hints, "|") != want {
			t.Errorf("%s: %+v, want %s", line, err, want)
		}
	}
}
