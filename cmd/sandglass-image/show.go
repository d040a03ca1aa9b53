package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/image"
	"sandglass/pkg/image/manifest"
	"sandglass/pkg/image/store"
)

// listed is one image of list --json.
type listed struct {
	Name  string `json:"name"`
	ID    string `json:"id"`
	Files int64  `json:"files"`
	Bytes int64  `json:"bytes"`
	Error string `json:"error,omitempty"`
}

func listVerb(args []string) (int, error) {
	o, err := parse("list", args, none, "json")
	if err != nil {
		return 0, err
	}
	s, err := open()
	if err != nil {
		return 0, err
	}
	all := []listed{}
	if s != nil {
		if all, err = listAll(s); err != nil {
			return 0, err
		}
	}
	if o.json {
		return emitJSON(map[string]any{"schema": 1, "images": all})
	}
	var b strings.Builder
	for _, l := range all {
		if l.Error != "" {
			fmt.Fprintf(&b, "%-24s %s\n", l.Name, refusal.Line(l.Error))
			continue
		}
		fmt.Fprintf(&b, "%-24s %s %14s %9s\n", l.Name, l.ID[:len(image.DigestPrefix)+12], plural(int(l.Files), "file"), size(l.Bytes))
	}
	return emit(b.String()), nil
}

// listAll has a line for each name, and one for each image that has none.
func listAll(s *image.Store) ([]listed, error) {
	names, err := s.Names()
	if err != nil {
		return nil, err
	}
	list, named := []listed{}, map[string]bool{}
	add := func(name, ref string) {
		l := listed{Name: name}
		img, err := s.Find(ref)
		if err != nil {
			l.Error = err.Error()
		} else {
			img.Close()
			l.ID, l.Files, l.Bytes = img.ID, img.Files, img.Bytes
			named[img.ID] = true
		}
		list = append(list, l)
	}
	for _, n := range names {
		add(n, n)
	}
	ids, err := s.Images()
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if !named[id] {
			add("-", id)
		}
	}
	return list, nil
}

func emitJSON(v any) (int, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return 0, err
	}
	return emit(string(text) + "\n"), nil
}

func showVerb(args []string) (int, error) {
	o, err := parse("show", args, words{1, "IMAGE"}, "json")
	if err != nil {
		return 0, err
	}
	s, img, err := openImage(o.rest[0])
	if err != nil {
		return 0, err
	}
	defer img.Close()
	m, err := store.Manifest(s, img)
	if err != nil {
		return 0, err
	}
	if o.json {
		return emitJSON(map[string]any{"id": img.ID, "image": &img.Meta, "origin": m.Origin, "packages": m.Packages, "manifest": m.Files})
	}
	return emit(describe(img, m)), nil
}

// size is for people.
func size(n int64) string {
	f, unit := float64(n), "B"
	for _, u := range []string{"kB", "MB", "GB", "TB"} {
		if f < 1000 {
			break
		}
		f, unit = f/1000, u
	}
	if unit == "B" {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, unit)
}

// describe is an image for people. Every word of the image's own is quoted.
func describe(img *image.Image, m *manifest.Manifest) string {
	var b strings.Builder
	line := func(name string, format string, args ...any) {
		fmt.Fprintf(&b, "%-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	words := func(list []string) string {
		out := make([]string, len(list))
		for i, w := range list {
			out[i] = refusal.Word(w)
		}
		return strings.Join(out, " ")
	}
	line("digest", "%s", img.ID)
	if img.OS != "" {
		line("for", "%s/%s", refusal.Word(img.OS), refusal.Word(img.Architecture))
	}
	line("files", "%d, %s, in %d directories, and %d links", img.Files, size(img.Bytes), img.Dirs, img.Links)
	c := &img.Config
	for _, e := range c.Env {
		line("env", "%s", refusal.Word(e))
	}
	set := func(name string, list []string, without string) {
		if len(list) > 0 {
			without = words(list)
		}
		line(name, "%s", without)
	}
	set("entrypoint", c.Entrypoint, "none")
	set("command", c.Cmd, "none")
	if c.WorkingDir == "" {
		set("workdir", nil, "/work, for it names none")
	} else {
		set("workdir", []string{c.WorkingDir}, "")
	}
	if c.User != "" {
		line("user", "%s: not obeyed, --user says who a program is", refusal.Word(c.User))
	}
	if m.Origin != "" {
		line("from", "%s", refusal.Line(m.Origin))
	}
	for _, p := range m.Packages {
		line("package", "%s %s %s", refusal.Word(p.Name), refusal.Word(p.Version), refusal.Word(p.Architecture))
	}
	for i, l := range img.Layers {
		line("layer", "%d %s %s", i+1, l.Digest, size(l.Bytes))
	}
	some := func(name, what string, s *image.Some) {
		if s.Count == 0 {
			return
		}
		line(name, "%d %s", s.Count, what)
		for _, f := range s.First {
			line("", "%s", refusal.Line(f))
		}
	}
	some("inert", "with a set-uid or set-gid bit or capabilities, which they have not got here:", &img.Inert)
	some("left out", "that are neither files, directories nor links:", &img.Skipped)
	some("note", "that differ from the archive:", &img.Notes)
	return b.String()
}
