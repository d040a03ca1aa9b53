package policy

import (
	"cmp"
	"strings"

	"sandglass/internal/refusal"
)

// Flags is how a command line in the host's view begins that is not refused where
// this one was not: a hint without the caller's --allow-degraded would be.
func (s *Spec) Flags() string {
	if len(s.AllowDegraded) == 0 {
		return "sandglass run"
	}
	return "sandglass run --allow-degraded " + refusal.Shell(strings.Join(s.AllowDegraded, ","))
}

// Again is the same in this root. Its command follows "--"; entrypoint says that the
// image has one, which would take the command for its arguments.
func (s *Spec) Again(entrypoint bool) string {
	line := s.Flags()
	if entrypoint {
		line += " --entrypoint ''"
	}
	if s.Image == "host" {
		return line
	}
	return line + " --image " + refusal.Shell(s.called())
}

// called is the root as the caller calls it.
func (s *Spec) called() string { return cmp.Or(s.ImageName, s.Image) }

// ImageWord is the root in a sentence, "" for the host's view.
func (s *Spec) ImageWord() string {
	switch {
	case s.Image == "host":
		return ""
	case s.ImageName != "":
		return "image " + refusal.Word(s.ImageName)
	case Imported(s.Image):
		return "image " + s.Image
	}
	return refusal.Word(s.Image)
}
