// Command seccompc compiles seccomp profiles, JSON in the form of OCI runtimes,
// into the raw filters that sandglass loads. It links libseccomp through cgo
// and so needs the build tag libseccomp; sandglass itself links neither.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/seccomp"
	"sandglass/pkg/seccomp/bpfvm"
	"sandglass/pkg/seccomp/profile"
	"sandglass/pkg/seccomp/sysnum"
)

const usage = `usage: seccompc [-arch ARCH] [-o FILE] PROFILE.json
       seccompc -all [-check] PROFILE.json...

Compiles seccomp profiles into filters for sandglass run --security-opt seccomp=FILE.

  -arch ARCH  amd64 or arm64, default this machine's
  -o FILE     where to write, default PROFILE.ARCH.bpf beside the source
  -all        every architecture that each profile lists, beside the sources
  -check      write nothing, compare with the files that are there: exit 1 if they differ
  -q          do not report sizes

The form of a profile is described in seccomp-profiles/README.md. What is not
known, or said twice, is an error.

example: seccompc -o my.bpf my.json && sandglass run --security-opt seccomp=./my.bpf -- true
`

// options are the command line.
type options struct {
	arch, out         string
	all, check, quiet bool
	sources           []string
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is the whole command; its result is the exit code: 0, 1 when something
// is wrong with a profile or a check fails, 2 for wrong usage.
func run(args []string, stdout, stderr io.Writer) int {
	opt, err := parseFlags(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, usage)
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "seccompc: error: %v\nhint: seccompc -h\n", err)
		return 2
	}
	for _, source := range opt.sources {
		if err := compileSource(opt, source, stdout); err != nil {
			fmt.Fprintf(stderr, "seccompc: error: %s: %v\n", source, err)
			var bad *refusal.Error
			if errors.As(err, &bad) {
				for _, hint := range bad.Hints {
					fmt.Fprintf(stderr, "hint: %s\n", hint)
				}
			}
			return 1
		}
	}
	return 0
}

func parseFlags(args []string) (options, error) {
	opt := options{}
	fs := flag.NewFlagSet("seccompc", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&opt.arch, "arch", runtime.GOARCH, "")
	fs.StringVar(&opt.out, "o", "", "")
	fs.BoolVar(&opt.all, "all", false, "")
	fs.BoolVar(&opt.check, "check", false, "")
	fs.BoolVar(&opt.quiet, "q", false, "")
	if err := fs.Parse(args); err != nil {
		return opt, err
	}
	opt.sources = fs.Args()
	switch {
	case len(opt.sources) == 0:
		return opt, errors.New("no profile given")
	case opt.all && opt.out != "":
		return opt, errors.New("-o and -all exclude each other")
	case !opt.all && len(opt.sources) > 1:
		return opt, errors.New("more than one profile needs -all")
	case sysnum.AuditArch(opt.arch) == 0:
		return opt, fmt.Errorf("architecture %q is not supported, use amd64 or arm64", opt.arch)
	}
	return opt, nil
}

func compileSource(opt options, source string, stdout io.Writer) error {
	text, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	p, err := profile.Parse(text)
	if err != nil {
		return err
	}
	wanted := []string{opt.arch}
	if opt.all {
		wanted = p.Arches
	}
	for _, arch := range wanted {
		bpf, err := compileProfile(p, arch, libseccompBody)
		if err != nil {
			return err
		}
		if err := seccomp.ValidateFor(arch, bpf); err != nil {
			return fmt.Errorf("%s: the compiled filter %w", arch, err)
		}
		out := opt.out
		if out == "" {
			out = strings.TrimSuffix(source, filepath.Ext(source)) + "." + arch + ".bpf"
		}
		if err := deliver(out, bpf, opt.check); err != nil {
			return err
		}
		if !opt.quiet {
			fmt.Fprintf(stdout, "%s: %d instructions\n", out, len(bpf)/bpfvm.InsnSize)
		}
	}
	return nil
}

// deliver writes the filter, or compares it with what is there.
func deliver(out string, bpf []byte, check bool) error {
	if !check {
		return os.WriteFile(out, bpf, 0o644)
	}
	there, err := os.ReadFile(out)
	if err != nil {
		return err
	}
	if !bytes.Equal(there, bpf) {
		return refusal.Newf("%s is not what this profile compiles to", out).Hint("seccompc -all seccomp-profiles/*.json")
	}
	return nil
}
