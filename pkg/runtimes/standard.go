package runtimes

import (
	"path/filepath"
	"slices"

	"sandglass/internal/refusal"
)

// Standard lists the files and directories that an interpreter consists of beside
// its executable and the libraries that the loader finds: its own prefix, or the
// standard library where a distribution keeps that. It is for who takes the
// interpreter elsewhere; a run is shown all of /usr, or the prefix.
func Standard(in Interpreter) ([]string, error) {
	if slices.Contains(stores[:], in.Prefix) {
		return nil, refusal.Newf("%s lies in %s, which is everybody's: what it needs of that cannot be told", quote(in.Exe), in.Prefix)
	}
	list := slices.Clone(in.Extra)
	if in.Prefix != "" {
		if !in.FileOnly {
			list = append(list, in.Prefix)
		}
		return list, nil
	}
	lang := ofCommand(filepath.Base(in.Exe))
	if lang == nil {
		return list, nil
	}
	p := filepath.Dir(filepath.Dir(in.Exe))
	if lang.Name == "python" {
		if dir := landmark(lang, p, filepath.Base(in.Exe)); dir != "" {
			list = append(list, dir)
		}
	}
	for _, pattern := range lang.lib {
		if found := match(p, pattern); found != "" && !slices.Contains(list, found) {
			list = append(list, found)
		}
	}
	return list, nil
}
