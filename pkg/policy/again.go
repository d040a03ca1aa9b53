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

// Hinted gives the hints of a refusal what the caller's own line has. Who finds a
// fault in a path or an interpreter knows neither the root nor the weaker limits, and
// a hint without them would be refused, or answer for another root.
func (s *Spec) Hinted(err error, entrypoint bool) error {
	return begin(err, func(rest string) string {
		if strings.HasPrefix(rest, "host ") {
			return s.Flags()
		}
		return s.Again(entrypoint && strings.Contains(rest, "-- "))
	})
}

// begin has the runs in the hints begin as line says for what follows, but for those
// that somebody has seen to.
func begin(err error, line func(rest string) string) error {
	r, ok := err.(*refusal.Error)
	if !ok {
		return err
	}
	for i, hint := range r.Hints {
		before, rest, found := strings.Cut(hint, "sandglass run ")
		if found && !strings.Contains(rest, "--allow-degraded ") && !strings.Contains(rest, "--image ") {
			r.Hints[i] = before + line(rest) + " " + rest
		}
	}
	return r
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
