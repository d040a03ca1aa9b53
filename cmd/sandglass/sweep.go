package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/check"
	"sandglass/pkg/sandbox"
)

// swept is the object of --json.
type swept struct {
	Schema  int       `json:"schema"`
	Removed []removed `json:"removed"`
	// Live counts the runs that go on.
	Live  int    `json:"live"`
	Error string `json:"error,omitempty"`
}

type removed struct {
	Kind string `json:"kind"` // cgroup or file
	Path string `json:"path"`
}

func sweepCommand(args []string) int {
	asJSON, help, err := onlyJSON("sweep", args)
	switch {
	case err != nil:
		return fail(err)
	case help:
		return emit(usage("sweep"))
	}
	groups, err := sandbox.Sweep()
	s := swept{Schema: 1, Removed: []removed{}, Live: groups.Live}
	for _, path := range groups.Removed {
		s.Removed = append(s.Removed, removed{"cgroup", path})
	}
	for _, path := range check.Sweep() {
		s.Removed = append(s.Removed, removed{"file", path})
	}
	text := s.text()
	if asJSON {
		if err != nil {
			s.Error = err.Error()
		}
		raw, jsonErr := json.Marshal(s)
		if jsonErr != nil {
			return fail(jsonErr)
		}
		text = string(raw) + "\n"
	}
	code := emit(text)
	if err != nil {
		return fail(refusal.Newf("%s", strings.ReplaceAll(err.Error(), "\n", "; ")).Hint("sandglass sweep   # again, when nothing waits in the kernel any more"))
	}
	return code
}

// text names what was removed. Paths are quoted where others could have chosen them.
func (s *swept) text() string {
	var b strings.Builder
	for _, r := range s.Removed {
		fmt.Fprintf(&b, "removed %s %s\n", r.Kind, refusal.Word(r.Path))
	}
	fmt.Fprintf(&b, "%d removed, %d live runs untouched\n", len(s.Removed), s.Live)
	return b.String()
}
