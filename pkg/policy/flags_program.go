package policy

import (
	"strconv"
	"strings"

	"sandglass/internal/refusal"
)

func programFlags() []Flag {
	return []Flag{
		{Name: "code", Short: "c", Arg: "CODE", Group: groupProgram, Set: setCode,
			Help: "run CODE; needs --lang; what follows the flags are its arguments"},
		{Name: "lang", Arg: "NAME", Group: groupProgram, Set: text(func(p *Parsed) *string { return &p.Spec.Program.Lang }),
			Help: "language of the code, or of a script instead of its extension"},
		{Name: "image", Arg: "host|DIR|NAME", Default: "host", Group: groupProgram, Set: setImage,
			Help: "root to run in; the first word is then never taken for one"},
		{Name: "entrypoint", Arg: "COMMAND", Group: groupProgram, Set: setEntrypoint,
			Help: "run COMMAND before the words of the command line, instead of what the image says; \"\" for nothing"},
		{Name: "env", Short: "e", Arg: "K[=V]", Group: groupProgram, Many: true, Set: setEnv,
			Help: "set a variable; K alone passes on the caller's value of that one"},
		{Name: "env-file", Arg: "FILE", Group: groupProgram, Many: true, Set: setEnvFile,
			Help: "set the variables of FILE, a K=V a line; --env wins over it"},
		{Name: "workdir", Short: "w", Arg: "DIR", Default: "/work", Group: groupProgram,
			Set: setWorkdir, Help: "working directory inside"},
		{Name: "user", Short: "u", Arg: "UID[:GID]", Default: "65534", Group: groupProgram, Set: setUser,
			Help: "identity inside, never the host's: numbers, or nobody, sandbox, root"},
		{Name: "interactive", Short: "i", Bool: true, Group: groupProgram,
			Set: boolean(func(p *Parsed) *bool { return &p.Spec.Stdin }), Help: "pass stdin on; otherwise it is at end of file"},
		{Name: "tty", Short: "t", Bool: true, Group: groupProgram,
			Set: boolean(func(p *Parsed) *bool { return &p.Spec.TTY }), Help: "give the program a terminal of the sandbox's own; -it joins yours to it"},
		{Name: "venv", Arg: "DIR", Group: groupProgram, Set: text(func(p *Parsed) *string { return &p.Spec.Venv }),
			Help: "Python virtual environment of the host, read-only"},
		{Name: "help", Short: "h", Bool: true, Group: groupProgram,
			Set: boolean(func(p *Parsed) *bool { return &p.Help }), Help: "print this text"},
	}
}

func setCode(p *Parsed, v string) error {
	if v == "" {
		return refusal.Newf("the code is empty")
	}
	p.Spec.Program.Code = []byte(v)
	return nil
}

func setImage(p *Parsed, v string) error {
	if v == "" {
		return refusal.Newf("the value is empty")
	}
	p.pending.image, p.pending.named = true, ""
	if v != "host" && !strings.Contains(v, "/") {
		p.pending.named = v // looked up when the rest of the line is read
		return nil
	}
	p.Spec.Image = v
	return nil
}

func setEntrypoint(p *Parsed, v string) error {
	p.pending.entrypoint = &v
	return nil
}

// setWorkdir notes that it was given: an image's own then counts no more.
func setWorkdir(p *Parsed, v string) error {
	p.pending.workdir = true
	return text(func(p *Parsed) *string { return &p.Spec.Workdir })(p, v)
}

func setEnv(p *Parsed, v string) error {
	if v == "" || v[0] == '=' {
		return refusal.Newf("%s has no variable name", quote(v)).Hint("-e NAME=value")
	}
	p.pending.env = append(p.pending.env, v)
	return nil
}

func setEnvFile(p *Parsed, v string) error {
	if v == "" {
		return refusal.Newf("the file name is empty")
	}
	p.pending.envFiles = append(p.pending.envFiles, v)
	return nil
}

// setUser reads UID[:GID]. The group defaults to the same number: docker's
// default of group 0 would give a bare --user 65534 the root group's files.
func setUser(p *Parsed, v string) error {
	user, group, both := strings.Cut(v, ":")
	uid, err := identity(user, "nobody", "sandbox")
	if err != nil {
		return err
	}
	gid := uid
	if both {
		if gid, err = identity(group, "nobody", "nogroup", "sandbox"); err != nil {
			return err
		}
	}
	p.Spec.User = User{UID: uid, GID: gid}
	return nil
}

// identity is a number, root, or one of the names that the sandbox's own
// /etc/passwd and group give 65534. The host's are never asked.
func identity(s string, unprivileged ...string) (uint32, error) {
	if s == "root" {
		return 0, nil
	}
	for _, name := range unprivileged {
		if s == name {
			return 65534, nil
		}
	}
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || n > maxID || s[0] == '+' {
		return 0, refusal.Newf("%s is not an id: a number up to %d, root or %s", quote(s), maxID, strings.Join(unprivileged, ", ")).
			Hint("--user 65534").Hint("the host's user names do not exist inside: --user \"$(id -u)\"")
	}
	return uint32(n), nil
}
