package policy

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/hostpath"
)

// MaxCode is the largest code that -c or stdin may give, in bytes.
const MaxCode = 16 << 20

// MaxCaptured is the largest --output-limit with --json: the supervisor then
// holds both streams in its own memory.
const MaxCaptured = 256 << 20

const maxEnvFile = 1 << 20

// complete fills what depends on several flags or on the host, and validates.
// program says what is run.
func (h Host) complete(p *Parsed, program func() error) error {
	s := &p.Spec
	if err := h.absolutePaths(p); err != nil {
		return err
	}
	s.Home = h.home(p)
	// First of all, so that every refusal below can be written there.
	if err := s.checkReach("--result", p.ResultFile); err != nil {
		return err
	}
	p.pending.fileChecked = true
	if err := program(); err != nil {
		return err
	}
	if err := h.environment(p); err != nil {
		return err
	}
	if err := h.absolutePaths(p); err != nil { // program may have found a file or an image
		return err
	}
	s.Home = h.home(p)
	if err := p.network(); err != nil {
		return err
	}
	swap := p.pending.memorySwap
	switch {
	case swap != 0 && swap != s.Limits.Memory:
		return refusal.Newf("--memory-swap: %s is not --memory's %s, and swap is always off", FormatSize(swap), FormatSize(s.Limits.Memory)).
			Hint("leave --memory-swap out, or --memory-swap %s", FormatSize(s.Limits.Memory))
	case p.JSON && (p.OCI || p.Bundle != ""):
		return refusal.Newf("--json and --oci are two forms of one plan").Hint("leave one of them out")
	case p.JSON && s.Limits.Output > MaxCaptured:
		return refusal.Newf("--output-limit: %s is too much to hold for --json: at most %s", FormatSize(s.Limits.Output), FormatSize(MaxCaptured)).
			Hint("--output-limit %s, or --result FILE instead of --json", FormatSize(MaxCaptured))
	}
	return s.Validate()
}

// home is the caller's home with its links resolved, because resolved sources
// are compared with it. It is only looked up when a path has to be judged.
func (h Host) home(p *Parsed) string {
	s := &p.Spec
	name, _ := h.LookupEnv("HOME")
	if name == "" || s.Image == "host" && len(s.Mounts) == 0 && s.Venv == "" && s.Out == "" && s.Program.File == "" && len(s.Files) == 0 &&
		p.ResultFile == "" && p.Bundle == "" && p.Output == "" && p.Merge == "" && len(p.pending.envFiles) == 0 {
		return name
	}
	if resolved, err := h.Resolve(name); err == nil {
		return resolved
	}
	return name
}

// absolutePaths makes host paths mean the same to every later reader.
func (h Host) absolutePaths(p *Parsed) error {
	s := &p.Spec
	list := []*string{&s.Venv, &s.Out, &s.Program.File, &p.ResultFile, &p.Bundle, &p.Output, &p.Merge}
	if s.Image != "host" && !Imported(s.Image) {
		list = append(list, &s.Image)
	}
	if seccompIsFile(s.Seccomp) {
		list = append(list, &s.Seccomp)
	}
	for i := range s.Mounts {
		list = append(list, &s.Mounts[i].Source)
	}
	for i := range s.Files {
		list = append(list, &s.Files[i].Source)
	}
	defer s.dropRepeats()
	for i := range s.AllowMounts {
		list = append(list, &s.AllowMounts[i])
	}
	for _, at := range list {
		if *at == "" {
			continue
		}
		abs, err := h.abs(*at)
		if err != nil {
			return err
		}
		*at = abs
	}
	return nil
}

// dropRepeats takes the same mount given twice for one, as it does any other
// flag with the same value.
func (s *Spec) dropRepeats() {
	kept := s.Mounts[:0]
	for _, m := range s.Mounts {
		if !slices.Contains(kept, m) {
			kept = append(kept, m)
		}
	}
	s.Mounts = kept
}

func (h Host) abs(name string) (string, error) {
	if strings.HasPrefix(name, "/") {
		return path.Clean(name), nil
	}
	cwd, err := h.Getwd()
	if err != nil {
		what := "cannot be told"
		if errors.Is(err, fs.ErrNotExist) {
			what = "is gone"
		}
		return "", refusal.Newf("%s is relative and the working directory %s: %s", quote(name), what, refusal.Cause(err)).
			Hint("cd /   # and name the file by its whole path")
	}
	return path.Join(cwd, name), nil
}

// readCode takes the program from stdin, all of it before anything starts.
func (h Host) readCode() ([]byte, error) {
	code, err := io.ReadAll(io.LimitReader(h.Stdin, MaxCode+1))
	switch {
	case err != nil:
		return nil, refusal.Newf("cannot read the code from stdin: %v", err)
	case len(code) > MaxCode:
		return nil, refusal.Newf("the code on stdin is more than %s", FormatSize(MaxCode)).
			Hint("sandglass run -v \"$PWD:/task:ro\" host COMMAND /task/FILE")
	case len(code) == 0:
		return nil, refusal.Newf("the code on stdin is empty").
			Hint("echo 'print(1)' | sandglass run - --lang python")
	}
	return code, nil
}

// environment joins --env-file and --env; of one name the last wins, as in
// docker run. Only variables that are named one by one come from the caller.
func (h Host) environment(p *Parsed) error {
	all := slices.Clone(p.pending.config.Env) // an image's own are the first to be replaced
	for _, name := range p.pending.envFiles {
		lines, err := h.envFile(&p.Spec, name)
		if err != nil {
			return where("--env-file", err)
		}
		all = append(all, lines...)
	}
	for _, e := range p.pending.env {
		if !strings.Contains(e, "=") {
			v, ok := h.LookupEnv(e)
			if !ok {
				return refusal.Newf("--env: %s is not set here, so it cannot be passed on", quote(e)).
					Hint("-e %s=", refusal.Shell(e))
			}
			e += "=" + v
		}
		all = append(all, e)
	}
	at := map[string]int{}
	for _, e := range all {
		name, _, _ := strings.Cut(e, "=")
		if i, ok := at[name]; ok {
			p.Spec.Env[i] = e
			continue
		}
		at[name] = len(p.Spec.Env)
		p.Spec.Env = append(p.Spec.Env, e)
	}
	return nil
}

// envFile reads K=V lines. A name alone is refused, unlike docker: a file must
// not be able to pull the caller's secrets in without being seen on the line.
func (h Host) envFile(s *Spec, name string) ([]string, error) {
	real, err := h.really(s, name)
	if err != nil {
		return nil, err
	}
	data, err := h.readSmall(name, real, maxEnvFile)
	if err != nil {
		return nil, err
	}
	var env []string
	n := 0
	for line := range bytes.Lines(data) {
		n++
		text := strings.TrimRight(string(line), "\r\n")
		if t := strings.TrimSpace(text); t == "" || t[0] == '#' {
			continue
		}
		key, _, ok := strings.Cut(text, "=")
		if !ok || key == "" || strings.ContainsAny(key, " \t") {
			return nil, refusal.Newf("%s line %d: not NAME=value", quote(name), n)
		}
		env = append(env, text)
	}
	return env, nil
}

// really is where a file's links lead. A file of settings may lie anywhere that
// the caller names; a link may have been put there by a program, to have it
// read another.
func (h Host) really(s *Spec, name string) (string, error) {
	abs, err := h.abs(name)
	if err != nil {
		return "", err
	}
	real, err := h.Resolve(abs)
	if err != nil {
		return "", refusal.Newf("cannot read %s: %s", quote(name), refusal.Cause(err))
	}
	if real == abs {
		return real, nil
	}
	if e := s.danger(real, false); e != nil {
		if below(real, "/proc") {
			return "", e.Hint("-e NAME   # passes on one variable of yours")
		}
		return "", ByLink(quote(name), name, e)
	}
	return real, s.CheckLink(quote(name), abs, real, h.Resolve)
}

// readSmall reads the regular file that name really is.
func (h Host) readSmall(name, real string, most int64) ([]byte, error) {
	f, err := h.Open(real)
	if err == hostpath.ErrNotRegular {
		return nil, refusal.Newf("%s is not a regular file", quote(name))
	}
	if err != nil {
		return nil, refusal.Newf("cannot read %s: %s", quote(name), refusal.Cause(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return nil, refusal.Newf("cannot read %s: %s", quote(name), refusal.Cause(err))
	case int64(len(data)) > most:
		return nil, refusal.Newf("%s is more than %s", quote(name), FormatSize(most))
	}
	return data, nil
}
