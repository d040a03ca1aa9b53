package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sandglass/internal/refusal"
	"sandglass/pkg/hostpath"
	"sandglass/pkg/policy"
	"sandglass/pkg/seccomp"
	"sandglass/pkg/seccomp/compile"
	"sandglass/pkg/seccomp/profile"
	profiles "sandglass/seccomp-profiles"
)

func profileCommand(args []string) int {
	if len(args) == 0 {
		return fail(refusal.Newf("profile: what to do is missing").Hint("sandglass profile list").Hint("sandglass profile --help"))
	}
	if slices.Contains([]string{"-h", "--help"}, args[0]) || len(args) == 2 && slices.Contains([]string{"-h", "--help"}, args[1]) {
		return emit(usage("profile"))
	}
	verb, args := args[0], args[1:]
	switch {
	case verb == "list" && len(args) == 0:
		return emit(profileList())
	case verb == "show" && len(args) == 1:
		return profileShow(args[0])
	case verb == "diff" && len(args) == 2:
		return profileDiff(args[0], args[1])
	case verb == "compile":
		return profileCompile(args)
	case verb == "learn":
		return learnCommand(args)
	}
	return fail(refusal.Newf("profile: no such command, or not its arguments: %s", refusal.Word(verb)).Hint("sandglass profile --help"))
}

func profileList() string {
	what := map[string]string{
		"default": "what every run has where nothing else is said",
		"debug":   "the default one, and tracing of the sandbox's own processes",
		"minimal": "a static C program that reads, computes and writes",
	}
	var b strings.Builder
	for _, name := range profiles.Names() {
		fmt.Fprintf(&b, "%-10s %s\n", name, what[name])
	}
	return b.String()
}

// loadProfile reads a profile by name, or from a JSON file.
func loadProfile(name string) (*profile.Profile, error) {
	if source := profiles.Source(name); source != "" {
		return profile.Parse([]byte(source))
	}
	if !strings.HasSuffix(name, ".json") {
		return nil, refusal.Newf("profile %s is unknown, there is: %s", refusal.Word(name), strings.Join(profiles.Names(), ", ")).
			Hint("a file is given by a name that ends in .json")
	}
	text, err := readSource(name)
	var bad *refusal.Error
	if errors.As(err, &bad) {
		return nil, bad
	}
	if err != nil {
		return nil, refusal.Newf("profile %s: %v", refusal.Word(name), refusal.Cause(err)).Hint("ls -l -- %s", refusal.Shell(name))
	}
	p, err := profile.Parse(text)
	if errors.As(err, &bad) {
		return nil, refusal.Newf("%s: %s", refusal.Word(name), bad.What)
	}
	return p, err
}

// maxSource is more than a profile may be: Parse refuses what is longer.
const maxSource = 1<<20 + 1

// readSource follows no link that a program could have put there: a project that
// was a writable mount has its profile.json turned into one to what only the
// caller may read, of which the refusals would tell. A link proves nothing by its
// owner, for an ordinary user's sandboxes have that user's id.
func readSource(name string) ([]byte, error) {
	abs, err := absolute(name)
	if err != nil {
		return nil, err
	}
	s := policy.Default()
	s.Home = os.Getenv("HOME")
	real, err := hostpath.Walk(abs, s.MayFollow)
	var link *hostpath.LinkError
	switch {
	case errors.As(err, &link) && link.Nowhere:
		return nil, refusal.Newf("profile %s: %s is a symbolic link to nothing", refusal.Word(name), strconv.Quote(link.Link)).
			Hint("ls -l -- %s", refusal.Shell(link.Link))
	case errors.As(err, &link):
		return nil, refusal.Newf("profile %s: %s is a symbolic link, which a program could have made: name the place that it leads to", refusal.Word(name), strconv.Quote(link.Link)).
			Hint("%s", policy.WhereALinkLeads(name))
	case err != nil:
		return nil, err
	}
	f, _, err := hostpath.OpenRegular(real)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxSource))
}

// absolute is a path of the command line's, told from where we really are: a
// $PWD of the caller's may lead through links.
func absolute(name string) (string, error) {
	if filepath.IsAbs(name) {
		return filepath.Clean(name), nil
	}
	cwd, err := unix.Getwd()
	if err != nil {
		return "", refusal.Newf("%s is relative and the working directory cannot be told: %v", refusal.Word(name), err).
			Hint("cd /   # and name the file by its whole path")
	}
	return filepath.Join(cwd, name), nil
}

func profileShow(name string) int {
	if source := profiles.Source(name); source != "" {
		return emit(source)
	}
	p, err := loadProfile(name)
	if err != nil {
		return fail(err)
	}
	return emit(string(p.Format()))
}

func profileDiff(a, b string) int {
	p, err := loadProfile(a)
	if err != nil {
		return fail(err)
	}
	q, err := loadProfile(b)
	if err != nil {
		return fail(err)
	}
	lines := profile.Diff(p, q)
	if len(lines) == 0 {
		return 0
	}
	if code := emit(strings.Join(lines, "\n") + "\n"); code != 0 {
		return code
	}
	return 1
}

func profileCompile(args []string) int {
	source, out, force := "", "", false
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		switch {
		case a == "--force":
			force = true
		case a == "-o" && len(args) > 0:
			out, args = args[0], args[1:]
		case strings.HasPrefix(a, "-") || source != "":
			return fail(refusal.Newf("profile compile: unexpected argument %s", refusal.Word(a)).Hint("sandglass profile --help"))
		default:
			source = a
		}
	}
	if !strings.HasSuffix(source, ".json") {
		return fail(refusal.Newf("profile compile: a FILE.json is missing").Hint("sandglass profile compile my.json"))
	}
	if out == "" {
		out = strings.TrimSuffix(source, ".json") + ".bpf"
	}
	p, err := loadProfile(source)
	if err != nil {
		return fail(err)
	}
	bpf, err := compile.Filter(p, runtime.GOARCH)
	if err != nil {
		return fail(err)
	}
	if err := seccomp.Validate(bpf); err != nil {
		return fail(refusal.Newf("%s: the compiled filter %v", refusal.Word(source), err))
	}
	if err := writeFilter(source, out, bpf, force); err != nil {
		return fail(err)
	}
	return 0
}

func writeFilter(source, out string, bpf []byte, force bool) error {
	abs, err := absolute(out)
	if err != nil {
		return err
	}
	if err := free("-o", abs, force); err != nil {
		return err.Hint("sandglass profile compile --force -o %s %s   # to replace it", refusal.Shell(out), refusal.Shell(source))
	}
	f, err := openFile(&policy.Parsed{Spec: policy.Default()}, "-o", abs)
	if err != nil {
		return err
	}
	if err := f.Put(bytes.NewReader(bpf)); err != nil {
		f.Close()
		return refusal.Newf("-o: writing %s: %v", refusal.Word(abs), err)
	}
	return f.Close()
}
