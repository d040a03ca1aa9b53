package policy

import (
	"strings"

	"sandglass/internal/refusal"
)

// setVolume reads -v SRC:DST[:ro|rw]. Without a mode it is read-only: docker's
// default is rw, and a forgotten word must not hand files to hostile code.
func setVolume(p *Parsed, v string) error {
	parts := strings.Split(v, ":")
	switch {
	case v == "":
		return refusal.Newf("the value is empty").Hint(`-v "$PWD:/task"`)
	case parts[0] == "":
		return refusal.Newf("%s has no source: is a variable empty?", quote(v)).Hint(`-v "$PWD:/task"`)
	case len(parts) == 1:
		return refusal.Newf("%s has no target inside", quote(v)).Hint("-v %s", refusal.Shell(v+":/task:ro"))
	case len(parts) > 3:
		return refusal.Newf("%s has more than two colons", quote(v)).
			Hint("a path with a colon: --mount type=bind,source=SRC,target=DST,readonly")
	}
	m := Mount{Source: parts[0], Target: parts[1]}
	if m.Target == "" {
		return refusal.Newf("%s has no target inside", quote(v)).Hint("-v %s", refusal.Shell(m.Source+":/task"))
	}
	if !strings.Contains(m.Source, "/") && m.Source != "." && m.Source != ".." {
		return refusal.Newf("%s is the name of a volume, and there are none here: only paths", quote(m.Source)).
			Hint("-v %s", refusal.Shell("./"+m.Source+":"+m.Target))
	}
	if len(parts) == 3 {
		if err := m.options(parts[2]); err != nil {
			return err
		}
	}
	p.Spec.Mounts = append(p.Spec.Mounts, m)
	return nil
}

// options reads the third part of -v.
func (m *Mount) options(list string) error {
	mode := ""
	for o := range strings.SplitSeq(list, ",") {
		switch o {
		case "ro", "rw":
			if mode != "" && mode != o {
				return refusal.Newf("both ro and rw")
			}
			mode = o
		case "private", "rprivate": // always so
		case "shared", "rshared", "slave", "rslave":
			return refusal.Newf("%s is refused: mounts would travel between the host and the sandbox", o)
		case "z", "Z":
			return refusal.Newf("%s is refused: it changes the labels of the host's files", o)
		default:
			return refusal.Newf("%s is neither ro nor rw", quote(o))
		}
	}
	m.Write = mode == "rw"
	return nil
}

// setMount reads --mount type=bind,source=SRC,target=DST[,readonly[=BOOL]].
func setMount(p *Parsed, v string) error {
	if strings.Contains(v, `"`) {
		return refusal.Newf("%s: quotes are not understood here", quote(v)).Hint("a path with a comma: -v SRC:DST:ro")
	}
	m, kind, seen := Mount{}, "", map[string]bool{}
	for field := range strings.SplitSeq(v, ",") {
		key, value, has := strings.Cut(field, "=")
		key = canonicalKey(key)
		if seen[key] {
			return refusal.Newf("%s is given twice", quote(key))
		}
		seen[key] = true
		var err error
		switch key {
		case "type":
			kind = value
		case "source":
			m.Source = value
		case "target":
			m.Target = value
		case "readonly":
			m.Write, err = writable(value, has)
		case "bind-propagation":
			err = only("mounts would travel between the host and the sandbox", "private", "rprivate")(p, value)
		default:
			err = refusal.Newf("%s is not known here: type, source, target, readonly", quote(key))
		}
		if err != nil {
			return err
		}
	}
	if err := m.complete(kind); err != nil {
		return err
	}
	p.Spec.Mounts = append(p.Spec.Mounts, m)
	return nil
}

func (m *Mount) complete(kind string) error {
	switch {
	case kind == "tmpfs":
		return refusal.Newf("type=tmpfs: the scratch is one for all of it").Hint("--disk 64m")
	case kind != "bind":
		return refusal.Newf("type %s: only bind is known here", quote(kind)).
			Hint("--mount type=bind,source=SRC,target=DST,readonly")
	case m.Source == "":
		return refusal.Newf("no source").Hint("--mount type=bind,source=SRC,target=DST,readonly")
	case m.Target == "":
		return refusal.Newf("no target").Hint("--mount type=bind,source=SRC,target=DST,readonly")
	}
	return nil
}

func canonicalKey(key string) string {
	switch key {
	case "src":
		return "source"
	case "dst", "destination":
		return "target"
	case "ro":
		return "readonly"
	}
	return key
}

// writable is the opposite of readonly[=BOOL].
func writable(value string, has bool) (bool, error) {
	if !has {
		return false, nil
	}
	readonly, err := parseBool(value)
	return err == nil && !readonly, err
}
