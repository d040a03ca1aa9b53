package main

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"sandglass/internal/deliver"
	"sandglass/internal/refusal"
	"sandglass/pkg/hostpath"
	"sandglass/pkg/policy"
)

// sink is where the result goes at the end.
type sink interface {
	Put(from io.WriterTo) error
	Close() error
}

// descriptor is the sink of --result-fd.
type descriptor struct{ *os.File }

func (d descriptor) Put(from io.WriterTo) error { return deliver.All(d.File, from) }

// openSink opens where the result goes before anything runs; nil for nowhere.
func openSink(p *policy.Parsed) (sink, error) {
	if p.ResultFD >= 0 {
		f := os.NewFile(uintptr(p.ResultFD), "result")
		if _, err := f.Stat(); err != nil {
			return nil, refusal.Newf("--result-fd %d is not open", p.ResultFD).Hint("sandglass run --result-fd 3 script.py 3>result.json")
		}
		syscall.CloseOnExec(p.ResultFD)
		return descriptor{f}, nil
	}
	if p.ResultFile == "" {
		return nil, nil
	}
	return openFile(p, "--result", p.ResultFile)
}

// openFile opens the directory of the file that a flag names, by what it really
// is and once. The file appears whole at the end, in place of whatever stands at its
// name: never through a link that a program has put there, and never in the
// inode of a file that has a second name elsewhere.
func openFile(p *policy.Parsed, flag, file string) (sink, error) {
	real, err := hostpath.Walk(file, p.Spec.MayFollow)
	if err != nil {
		return nil, refuseFile(flag, file, err)
	}
	r, err := hostpath.Replace(real)
	if err != nil {
		return nil, refuseFile(flag, real, err)
	}
	source, err := writable(p).Holds(r.Dir(), r.Name(), real)
	switch {
	case err != nil:
		err = refuseFile(flag, real, err)
	case source != "":
		err = policy.InReach(flag, real, source)
	default:
		return r, nil
	}
	r.Close()
	return nil, err
}

// writable is what the program could write to. A source that cannot be looked
// at is left out: the run is refused when its turn comes.
func writable(p *policy.Parsed) *hostpath.Reach {
	r := &hostpath.Reach{}
	for _, m := range p.Spec.Mounts {
		real, err := filepath.EvalSymlinks(m.Source)
		var st unix.Stat_t
		if m.Write && err == nil && unix.Stat(real, &st) == nil {
			r.Add(real, uint64(st.Dev), st.Ino, st.Mode&unix.S_IFMT == unix.S_IFDIR)
		}
	}
	return r
}

func refuseFile(flag, file string, err error) *refusal.Error {
	r := refusal.Newf("%s: open %s: %v", flag, refusal.Word(file), err).Hint("%s must name a file that can be written", flag)
	if link, ok := err.(*hostpath.LinkError); ok && !link.Nowhere {
		r = refusal.Newf("%s: %s is a symbolic link, which a program could have made: name the place that it leads to", flag, strconv.Quote(link.Link)).
			Hint("readlink -f -- %s   # where it leads now", refusal.Shell(file))
	}
	if flag == "--result" {
		r.Hint("sandglass run --result-fd 3 script.py 3>result.json   # or is opened by the shell")
	}
	return r
}
