package policy

import (
	"path"
	"strings"

	"sandglass/internal/refusal"
)

// Bounds of Spec.Files. Each file of the host's is a descriptor of the
// supervisor's until init has it.
const (
	MaxFiles    = 1000
	maxSources  = 100
	maxFileName = 1024
	maxNameElem = 255 // NAME_MAX
	maxFileDirs = 32
	// fileInodes is what the scratch has in it before.
	fileInodes = 16
)

// MaxKept is the largest Limits.OutBytes with Keep: the supervisor then holds the
// artefacts in its own memory.
const MaxKept = 8 << 20

// workDir is where Files go, see rootfs.Work.
const workDir = "/work"

// checkFiles refuses what init could not put into the scratch, or would put
// anywhere else: a name is a way below /work and nothing more.
func checkFiles(s *Spec) error {
	if len(s.Files) > MaxFiles {
		return refusal.Newf("files: %d are more than %d", len(s.Files), MaxFiles).
			Hint("-v \"$PWD/data:/data:ro\"   # shows a whole directory")
	}
	var size int64
	sources, names, dirs := 0, map[string]bool{}, map[string]bool{}
	for i := range s.Files {
		f := &s.Files[i]
		if why := badFileName(f.Name); why != "" {
			return refusal.Newf("file %s: the name %s", quote(f.Name), why).Hint("data/input.txt is /work/data/input.txt inside")
		}
		if names[f.Name] {
			return refusal.Newf("file %s is given twice", quote(f.Name))
		}
		names[f.Name] = true
		for d := path.Dir(f.Name); d != "."; d = path.Dir(d) {
			dirs[d] = true
		}
		if f.Source != "" {
			sources++
			if why := badPath(f.Source); why != "" {
				return refusal.Newf("file %s: the source %s %s", quote(f.Name), quote(f.Source), why)
			}
			if len(f.Content) > 0 {
				return refusal.Newf("file %s has both a source and content", quote(f.Name))
			}
		}
		size += int64(len(f.Content))
	}
	switch {
	case sources > maxSources:
		return refusal.Newf("files: %d come from the host, more than %d", sources, maxSources).
			Hint("-v \"$PWD/data:/data:ro\"   # shows a whole directory")
	case len(names) > 0 && int64(len(names)+len(dirs)+fileInodes) > s.Limits.DiskInodes:
		return refusal.Newf("--disk-inodes: %d files do not fit into %d", len(names), s.Limits.DiskInodes).
			Hint("--disk-inodes %d", 2*(len(names)+len(dirs)+fileInodes))
	}
	if err := s.FilesFit(size); err != nil {
		return err
	}
	return s.filesApart(names, dirs)
}

// FilesFit refuses files whose bytes are more than the scratch, or leave a program
// no memory: the scratch counts as that.
func (s *Spec) FilesFit(size int64) error {
	switch l := &s.Limits; {
	case size > l.Disk:
		return refusal.Newf("--disk: the files are %d bytes and do not fit into %s", size, FormatSize(l.Disk)).
			Hint("--disk %s", FormatSize(min(MaxSize, 2*size)))
	case size > l.Memory-minMemory && size > 0:
		return refusal.Newf("--memory: the files are %d bytes, which count as memory, and leave too little of %s", size, FormatSize(l.Memory)).
			Hint("--memory %s", FormatSize(min(MaxSize, 2*size+4*minMemory)))
	}
	return nil
}

// filesApart refuses a name that is something else as well: a directory of
// another one's, a mount's or the working directory's.
func (s *Spec) filesApart(names, dirs map[string]bool) error {
	for name := range names {
		inside := workDir + "/" + name
		if dirs[name] {
			return refusal.Newf("file %s is a directory of another file as well", quote(name))
		}
		if within(s.Workdir, inside) {
			return refusal.Newf("file %s: --workdir is there", quote(name)).Hint("--workdir /work")
		}
		for _, m := range s.Mounts {
			if within(inside, m.Target) || within(m.Target, inside) {
				return refusal.Newf("file %s: the mount %s is there", quote(name), quote(m.Target)).Hint("-v SRC:/data")
			}
		}
	}
	return nil
}

func within(p, dir string) bool { return p == dir || below(p, dir) }

// badFileName says what is wrong with a name below /work, or "".
func badFileName(name string) string {
	switch {
	case name == "" || name == ".":
		return "is empty"
	case name[0] == '/':
		return "is absolute: it must be relative to /work"
	case len(name) > maxFileName:
		return "is longer than 1024 bytes"
	case strings.IndexFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) >= 0:
		return "has a control character"
	}
	elems := strings.Split(name, "/")
	for _, e := range elems {
		switch {
		case e == "..":
			return "leads out of /work by .."
		case e == "" || e == ".":
			return "is not clean: no //, /./ or / at the end"
		case len(e) > maxNameElem:
			return "has a part of more than 255 bytes"
		}
	}
	if len(elems) > maxFileDirs {
		return "has more than 32 parts"
	}
	return ""
}

// checkKept refuses artefacts in memory that are too large for it.
func checkKept(s *Spec) error {
	switch {
	case s.Keep && s.Out != "":
		return refusal.Newf("--out: artifacts go into a directory or into the result, not both")
	case s.Keep && s.Limits.OutBytes > MaxKept:
		return refusal.Newf("--out-limit: %s is too much to hold in the result: at most %s", FormatSize(s.Limits.OutBytes), FormatSize(MaxKept)).
			Hint("--out-limit %s", FormatSize(MaxKept))
	}
	return nil
}
