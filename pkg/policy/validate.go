package policy

import (
	"path"
	"strconv"
	"strings"
	"time"

	"sandglass/internal/refusal"
)

// The bounds of the limits. What they stop is at each line; above them sit
// MaxSize, MaxDuration and MaxMilliCPU.
const (
	minTime     = time.Millisecond // results count in milliseconds
	minMemory   = int64(6) << 20   // docker's own floor; below it not even a shell starts
	minMilliCPU = int64(10)        // the kernel's least quota is 1 ms of each 100 ms
	maxPids     = int64(1) << 22   // the kernel's PID_MAX_LIMIT
	minDisk     = int64(64) << 10
	minInodes   = int64(64)
	minFiles    = int64(16) // the dynamic loader needs some before main
	maxFiles    = int64(1) << 20
	maxOutFiles = int64(1000000) // the manifest is held in memory
	minFileSize = int64(1) << 10
	minStack    = int64(128) << 10
	maxStack    = int64(1) << 30
	maxID       = 1<<31 - 1 // beyond it ids read as negative in old tools
	maxPath     = 4095      // PATH_MAX without its NUL
	maxMounts   = 256
)

// Validate refuses a Spec that is out of bounds or contradicts itself, with a
// *refusal.Error that names the flag. It opens nothing: whether a path exists
// and where its links lead is for the mount planner, see CheckSource.
func (s *Spec) Validate() error {
	for _, check := range []func(*Spec) error{
		checkProgram, checkArguments, checkTimes, checkSizes, checkCounts, checkIO,
		checkHosts, checkIdentity, checkWords, checkHostPaths, checkMounts, checkFiles, checkKept,
	} {
		if err := check(s); err != nil {
			return err
		}
	}
	return nil
}

func checkTimes(s *Spec) error {
	l := &s.Limits
	for _, f := range []struct {
		flag string
		v    time.Duration
		zero bool
	}{{"--timeout", l.Timeout, false}, {"--cpu-time", l.CPUTime, true}} {
		switch {
		case f.zero && f.v == 0:
		case f.v < minTime:
			return refusal.Newf("%s: %v is too short: at least %v", f.flag, f.v, minTime).Hint("%s %v", f.flag, minTime)
		case f.v > MaxDuration:
			return refusal.Newf("%s: %v is too long: at most 720h (30 days)", f.flag, f.v).Hint("%s 720h", f.flag)
		}
	}
	return nil
}

func checkSizes(s *Spec) error {
	l := &s.Limits
	for _, f := range []struct {
		flag       string
		v          int64
		least, top int64
		zero       bool
	}{
		{"--memory", l.Memory, minMemory, MaxSize, false},
		{"--disk", l.Disk, minDisk, MaxSize, false},
		{"--output-limit", l.Output, 1, MaxSize, false},
		{"--ulimit fsize", l.FileSize, minFileSize, MaxSize, true},
		{"--ulimit stack", l.Stack, minStack, maxStack, false},
		{"--out-limit", l.OutBytes, 1, MaxSize, false},
	} {
		switch {
		case f.zero && f.v == 0:
		case f.v < f.least:
			return refusal.Newf("%s: %s is too small: at least %s", f.flag, FormatSize(f.v), FormatSize(f.least)).
				Hint("%s", flagValue(f.flag, FormatSize(f.least)))
		case f.v > f.top:
			return refusal.Newf("%s: %s is too large: at most %s", f.flag, FormatSize(f.v), FormatSize(f.top)).
				Hint("%s", flagValue(f.flag, FormatSize(f.top)))
		}
	}
	return nil
}

func checkCounts(s *Spec) error {
	l := &s.Limits
	for _, f := range []struct {
		flag       string
		v          int64
		least, top int64
	}{
		{"--cpus (thousandths)", l.MilliCPU, minMilliCPU, MaxMilliCPU},
		{"--pids-limit", l.Pids, 1, maxPids},
		{"--disk-inodes", l.DiskInodes, minInodes, maxCount},
		{"--open-files", l.OpenFiles, minFiles, maxFiles},
		{"--out-files", l.OutFiles, 1, maxOutFiles},
	} {
		switch {
		case f.v < f.least:
			return refusal.Newf("%s: %d is too small: at least %d", f.flag, f.v, f.least).Hint("%s", flagValue(f.flag, strconv.FormatInt(f.least, 10)))
		case f.v > f.top:
			return refusal.Newf("%s: %d is too large: at most %d", f.flag, f.v, f.top).Hint("%s", flagValue(f.flag, strconv.FormatInt(f.top, 10)))
		}
	}
	return nil
}

// flagValue is a limit's flag with a value, as one types it.
func flagValue(flag, value string) string {
	switch {
	case strings.HasPrefix(flag, "--ulimit "):
		return flag + "=" + value
	case strings.HasPrefix(flag, "--cpus "):
		return "--cpus 1" // counted in thousandths here
	}
	return flag + " " + value
}

func checkIO(s *Spec) error {
	for i, d := range s.Limits.IO {
		if why := badPath(d.Device); why != "" || !below(d.Device, "/dev") {
			return refusal.Newf("--device-...: %s is not the path of a device below /dev", quote(d.Device)).
				Hint("--device-read-bps /dev/vda:10m")
		}
		for _, other := range s.Limits.IO[:i] {
			if other.Device == d.Device {
				return refusal.Newf("--device-...: %s has two entries", quote(d.Device))
			}
		}
		least := min(d.ReadBPS, d.WriteBPS, d.ReadIOPS, d.WriteIOP)
		most := max(d.ReadBPS, d.WriteBPS, d.ReadIOPS, d.WriteIOP)
		if least < 0 || most == 0 || most > MaxSize {
			return refusal.Newf("--device-...: the rates of %s are out of bounds", quote(d.Device))
		}
	}
	return nil
}

func checkIdentity(s *Spec) error {
	if s.User.UID > maxID || s.User.GID > maxID {
		return refusal.Newf("--user: %d:%d is out of bounds: at most %d", s.User.UID, s.User.GID, maxID)
	}
	return nil
}

// checkWords are the fields that are one of a few words.
func checkWords(s *Spec) error {
	if err := checkSeccomp(s.Seccomp); err != nil {
		return where("--seccomp", err)
	}
	for _, name := range s.AllowDegraded {
		if err := checkDegraded(name); err != nil {
			return where("--allow-degraded", err)
		}
	}
	switch {
	case s.OutputLimit != OutputTruncate && s.OutputLimit != OutputKill:
		return refusal.Newf("--on-output-limit: %s is neither truncate nor kill", quote(string(s.OutputLimit)))
	case s.Proc != "default" && s.Proc != "none":
		return refusal.Newf("--proc: %s is neither default nor none", quote(s.Proc))
	case s.HostID != HostIDAuto && s.HostID != HostIDOwn && s.HostID != HostIDCaller:
		return refusal.Newf("--host-id: %s is none of auto, own, caller", quote(string(s.HostID))).Hint("--host-id auto")
	case s.Force && s.Out == "":
		return refusal.Newf("--force: there is no --out whose files it could overwrite").Hint("--out DIR --force")
	}
	if s.CgroupParent != "" {
		if why := badPath(s.CgroupParent); why != "" {
			return refusal.Newf("--cgroup-parent: %s %s", quote(s.CgroupParent), why).
				Hint("give the path below the cgroup mount: --cgroup-parent /sandglass")
		}
	}
	return nil
}

// seccompIsFile tells a compiled filter from a profile's name.
func seccompIsFile(v string) bool { return strings.Contains(v, "/") || strings.HasSuffix(v, ".bpf") }

func checkSeccomp(v string) error {
	switch {
	case v == "unconfined":
		return refusal.Newf("unconfined is refused: the whole kernel would be within the program's reach").
			Hint("--seccomp default")
	case strings.HasSuffix(v, ".json"):
		return refusal.Newf("%s is a source; only compiled filters are loaded", quote(v)).
			Hint("sandglass profile compile -o %s %s", refusal.Shell(strings.TrimSuffix(v, ".json")+".bpf"), refusal.Shell(v))
	case seccompIsFile(v):
		if !strings.HasSuffix(v, ".bpf") || strings.ContainsRune(v, 0) {
			return refusal.Newf("%s is not a compiled filter: the name must end in .bpf", quote(v)).
				Hint("sandglass profile compile -o PROFILE.bpf PROFILE.json")
		}
		return nil
	case !isName(v):
		return refusal.Newf("%s is not the name of a profile", quote(v)).Hint("--seccomp default")
	}
	return nil
}

func checkDegraded(name string) error {
	switch name {
	case "memory", "cpu", "pids", "io":
		return nil
	}
	return refusal.Newf("%s is not a limit that may be degraded: memory, cpu, pids, io", quote(name)).
		Hint("--allow-degraded memory,cpu")
}

// isName is a word that can be looked up without becoming a path or an option.
func isName(s string) bool { return refusal.Plain(s, "-_.+#", "-.", 64) }

// badPath says what is wrong with a path that must be absolute and clean, or "".
func badPath(p string) string {
	switch {
	case p == "":
		return "is empty"
	case p[0] != '/':
		return "is not absolute"
	case p == "/":
		return "is the root itself"
	case len(p) > maxPath:
		return "is longer than a path can be"
	case strings.IndexFunc(p, func(r rune) bool { return r < ' ' || r == 0x7f }) >= 0:
		return "has a control character" // a newline could forge a line of mountinfo or of a plan
	case path.Clean(p) != p:
		return "is not clean: no //, /./, /../ or / at the end"
	}
	return ""
}
