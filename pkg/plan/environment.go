package plan

import (
	"strconv"
	"strings"

	"sandglass/pkg/rootfs"
)

// standardPath is PATH inside, after the caller's interpreters.
const standardPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environment is the program's whole environment: nothing of the caller's but
// what -e names. What -e sets wins over ours.
func (b *builder) environment() error {
	s := &b.plan.Spec
	home := rootfs.Home
	if !b.host() {
		home = rootfs.Work
	}
	env := []string{
		"PATH=" + b.path(),
		"HOME=" + home,
		"LANG=C.UTF-8",
		"USER=" + rootfs.UserName(s.User.UID),
		"TMPDIR=/tmp",
	}
	if s.TTY {
		env = append(env, "TERM=xterm") // as docker run -t
	}
	env = append(env, b.presets()...)
	if b.venv != "" {
		env = append(env, "VIRTUAL_ENV="+b.venv)
	}
	p := &b.plan.Program
	p.Env = merge(env, s.Env)
	p.Dir = s.Workdir
	p.Paths = candidates(p.Argv[0], p.Env)
	return nil
}

// presets keep ordinary programs from failing at the limits. Numeric libraries
// start a thread for each CPU of the host when they are loaded, which on a
// large one is more than the pids limit and, at any size, more than the CPU
// limit can feed. LeakSanitizer traces its own process, which the filter
// refuses, and would end a good program with an error.
func (b *builder) presets() []string {
	l := &b.plan.Spec.Limits
	threads := max(1, min((l.MilliCPU+999)/1000, l.Pids/2))
	n := strconv.FormatInt(threads, 10)
	return []string{
		"OMP_NUM_THREADS=" + n, "OPENBLAS_NUM_THREADS=" + n, "MKL_NUM_THREADS=" + n, "NUMEXPR_NUM_THREADS=" + n,
		"LSAN_OPTIONS=detect_leaks=0",
	}
}

func (b *builder) path() string {
	path := strings.Join(append(append([]string{}, b.dirs...), standardPath), ":")
	if b.host() {
		path += ":" + rootfs.NamesDir
	}
	return path
}

func merge(base, over []string) []string {
	var out []string
	for _, kv := range base {
		name, _, _ := strings.Cut(kv, "=")
		replaced := false
		for _, o := range over {
			replaced = replaced || strings.HasPrefix(o, name+"=")
		}
		if !replaced {
			out = append(out, kv)
		}
	}
	return append(out, over...)
}

// candidates are the paths that execvp(3) would try. Entries of PATH that are
// not absolute are left out: they would mean the working directory.
func candidates(name string, env []string) []string {
	if strings.Contains(name, "/") {
		return []string{name}
	}
	var paths []string
	for _, kv := range env {
		value, ok := strings.CutPrefix(kv, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range strings.Split(value, ":") {
			if strings.HasPrefix(dir, "/") {
				paths = append(paths, dir+"/"+name)
			}
		}
	}
	return paths
}
