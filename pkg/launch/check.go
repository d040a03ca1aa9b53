package launch

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"sandglass/pkg/hostpath"
	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// seccompDead is the mode of a thread that its filter has killed: a program
// whose first call is a foreign one can get there before the read-back, and
// must not be able to make its own end look like a failure of ours.
const seccompDead = "3"

// Check compares what was read with what the run was planned to be. One value
// that is weaker is an error. What a program may do to itself, such as lowering
// a limit, is none: it may have run for a while by now.
func (rb *ReadBack) Check() error {
	for _, check := range []func() error{rb.checkStatus, rb.checkIdentity, rb.checkNamespaces, rb.checkLimits, rb.checkMounts} {
		if err := check(); err != nil {
			return err
		}
	}
	return rb.groupErr
}

func (rb *ReadBack) checkStatus() error {
	want := map[string]string{"NoNewPrivs": "1", "Seccomp": "2"}
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		want[set] = "0000000000000000"
	}
	for field, value := range want {
		got := rb.Status[field]
		if field == "Seccomp" && got == seccompDead {
			continue
		}
		if got != value {
			return fmt.Errorf("%s of the program is %q, not %q", field, got, value)
		}
	}
	// A program may add filters to ours.
	if n, err := strconv.Atoi(rb.Status["Seccomp_filters"]); err != nil || n <= rb.filters {
		return fmt.Errorf("the program has %q filters, its supervisor %d: the run's own is missing", rb.Status["Seccomp_filters"], rb.filters)
	}
	return nil
}

// checkIdentity: all four ids, and for a root caller no group beside.
func (rb *ReadBack) checkIdentity() error {
	id := rb.promised.identity
	for field, n := range map[string]int{"Uid": id.HostUID, "Gid": id.HostGID} {
		if want := strings.TrimSuffix(strings.Repeat(strconv.Itoa(n)+"\t", 4), "\t"); rb.Status[field] != want {
			return fmt.Errorf("%s of the program is %q, not %q", field, rb.Status[field], want)
		}
	}
	if groups := rb.Status["Groups"]; id.Mapped && groups != "" {
		return fmt.Errorf("the program has the supplementary groups %q", groups)
	}
	return nil
}

func (rb *ReadBack) checkNamespaces() error {
	for _, ns := range namespaces {
		if rb.Namespaces[ns] == "" {
			return fmt.Errorf("the %s namespace of the program is not known", ns)
		}
	}
	dir, err := unix.Open("/proc/self/ns", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("the namespaces of the supervisor are not known: %w", err)
	}
	defer unix.Close(dir)
	for ns, inode := range rb.Namespaces {
		own, err := namespaceAt(dir, ns)
		if err == nil && own == inode && (ns != "cgroup" || !rb.exiting) {
			return fmt.Errorf("the %s namespace is the host's own", ns)
		}
	}
	return nil
}

// limitNames are the lines of /proc/PID/limits, in units of setrlimit(2).
var limitNames = [...]string{
	unix.RLIMIT_CORE: "Max core file size", unix.RLIMIT_NOFILE: "Max open files", unix.RLIMIT_FSIZE: "Max file size",
	unix.RLIMIT_NPROC: "Max processes", unix.RLIMIT_STACK: "Max stack size", unix.RLIMIT_SIGPENDING: "Max pending signals",
	unix.RLIMIT_MSGQUEUE: "Max msgqueue size", unix.RLIMIT_MEMLOCK: "Max locked memory",
	unix.RLIMIT_RTPRIO: "Max realtime priority", unix.RLIMIT_NICE: "Max nice priority",
}

// checkLimits: neither of a limit's two values is above what was asked for.
func (rb *ReadBack) checkLimits() error {
	for _, r := range rb.promised.rlimits {
		if int(r.Resource) >= len(limitNames) || limitNames[r.Resource] == "" {
			return fmt.Errorf("rlimit %d cannot be read back", r.Resource)
		}
		name := limitNames[r.Resource]
		soft, hard, ok := limit(rb.limits, name)
		if !ok {
			return fmt.Errorf("the program's limits do not tell %q", name)
		}
		if r.Resource == unix.RLIMIT_NPROC {
			// The kernel counts init's threads with the program's.
			r.Soft, r.Hard = r.Soft+uint64(rb.threads), r.Hard+uint64(rb.threads)
		}
		if soft > r.Soft || hard > r.Hard {
			return fmt.Errorf("%s of the program is %d and %d, not %d and %d", name, soft, hard, r.Soft, r.Hard)
		}
	}
	return nil
}

func limit(text []byte, name string) (soft, hard uint64, ok bool) {
	for line := range bytes.Lines(text) {
		rest, found := bytes.CutPrefix(line, []byte(name))
		if !found || len(rest) == 0 || rest[0] != ' ' {
			continue
		}
		f := bytes.Fields(rest)
		if len(f) < 2 {
			continue
		}
		s, err1 := limitValue(string(f[0]))
		h, err2 := limitValue(string(f[1]))
		return s, h, err1 == nil && err2 == nil
	}
	return 0, 0, false
}

func limitValue(text string) (uint64, error) {
	if text == "unlimited" {
		return ^uint64(0), nil
	}
	return strconv.ParseUint(text, 10, 64)
}

// entry is one line of mountinfo.
type entry struct {
	id, parent, at string
	options, super string
}

// has says whether the mount or its file system has an option.
func (e *entry) has(option string) bool { return listed(e.options, option) || listed(e.super, option) }

func listed(options, option string) bool {
	for o := range strings.SplitSeq(options, ",") {
		if o == option {
			return true
		}
	}
	return false
}

func entries(mountinfo []byte) ([]entry, error) {
	text := string(mountinfo)
	list := make([]entry, 0, strings.Count(text, "\n"))
	for line := range strings.Lines(text) {
		var e entry
		n, dash := 0, -1
		for f := range strings.FieldsSeq(line) {
			switch {
			case n == 0:
				e.id = f
			case n == 1:
				e.parent = f
			case n == 4:
				e.at = hostpath.Unescape(f)
			case n == 5:
				e.options = f
			case dash < 0 && n >= 6 && f == "-":
				dash = n
			case dash >= 0 && n == dash+3:
				e.super = f
			}
			n++
		}
		if dash < 0 || n < dash+4 {
			return nil, fmt.Errorf("mountinfo of the sandbox: %q", line)
		}
		list = append(list, e)
	}
	return list, nil
}

// checkMounts: every mount is nosuid, and read-only but for those that were
// planned to be writable; what was planned is there, with its options. A mount
// below another one at the same place is out of reach, whatever it is: the
// lines' order does not tell, the parent does.
func (rb *ReadBack) checkMounts() error {
	if rb.mountsHeld {
		return nil
	}
	list, err := entries(rb.mounts)
	if err != nil {
		return err
	}
	places, trees := rb.promised.places()
	for i := range list {
		e := &list[i]
		if !listed(e.options, "nosuid") {
			return fmt.Errorf("the mount at %s is not nosuid", e.at)
		}
		writable, planned := places[e.at]
		if !planned {
			writable = slices.ContainsFunc(trees, func(top string) bool { return under(e.at, top) })
		}
		if !writable && !listed(e.options, "ro") && !covered(e, list) {
			return fmt.Errorf("the mount at %s is not read-only", e.at)
		}
	}
	return rb.promised.present(list)
}

// covered says whether another mount lies on top of e.
func covered(e *entry, list []entry) bool {
	return slices.ContainsFunc(list, func(o entry) bool { return o.parent == e.id && o.at == e.at })
}

// under says whether path lies below dir.
func under(path, dir string) bool {
	return len(path) > len(dir) && path[len(dir)] == '/' && path[:len(dir)] == dir
}

// places are where something is mounted, and whether it may be written to; trees
// those below which there may be writable ones at places that are not planned:
// what a writable one brings along, and where a directory of the caller's has
// another mount in it, which moves when somebody renames its place there.
func (p *promise) places() (places map[string]bool, trees []string) {
	places = map[string]bool{}
	frozen := false
	for i := range p.mounts {
		o := &p.mounts[i]
		frozen = frozen || o.Kind == wire.OpFreeze
		write := frozen && o.Attr&wire.ReadOnly == 0
		switch o.Kind {
		case wire.OpBind, wire.OpTree, wire.OpInner, wire.OpTmpfs, wire.OpProc, wire.OpDevpts:
			places[o.Target] = write
		}
		if write && o.Recursive {
			trees = append(trees, o.Target)
		}
		if write {
			if outer := p.outer(o.Target); outer != "" {
				trees = append(trees, outer)
			}
		}
	}
	return places, trees
}

// outer is the mount of the caller's that has another one's place in it, "" for
// none: it is a directory of the host's.
func (p *promise) outer(target string) string {
	for i := range p.mounts {
		o := &p.mounts[i]
		if (o.Kind == wire.OpBind || o.Kind == wire.OpTree) && under(target, o.Target) {
			return o.Target
		}
	}
	return ""
}

// present: each planned mount is there, and those that have options have them.
func (p *promise) present(list []entry) error {
	for i := range p.mounts {
		o := &p.mounts[i]
		var want []string
		switch o.Kind {
		case wire.OpRoot:
			if !slices.ContainsFunc(list, func(e entry) bool { return e.at == "/" }) {
				return fmt.Errorf("the sandbox has no root of its own")
			}
			continue
		case wire.OpBind, wire.OpTree, wire.OpInner:
		case wire.OpTmpfs:
			want = []string{"size=" + strconv.FormatUint(pages(o.Size)>>10, 10) + "k", "nr_inodes=" + strconv.FormatUint(o.Inodes, 10)}
		case wire.OpProc:
			want = strings.Split(string(o.Data), ",")
		default:
			continue
		}
		if !slices.ContainsFunc(list, func(e entry) bool { return e.at == o.Target }) {
			if p.outer(o.Target) != "" {
				continue // its place was renamed on the host
			}
			return fmt.Errorf("nothing is mounted at %s", o.Target)
		}
		for _, option := range want {
			if option != "" && !slices.ContainsFunc(list, func(e entry) bool { return e.at == o.Target && e.has(option) }) {
				return fmt.Errorf("the mount at %s has not the option %s", o.Target, option)
			}
		}
	}
	return nil
}

// pages rounds up to whole pages, as tmpfs does with its size.
func pages(n uint64) uint64 {
	page := uint64(os.Getpagesize())
	return (n + page - 1) / page * page
}
