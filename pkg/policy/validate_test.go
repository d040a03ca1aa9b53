package policy

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestDefaultIsValidWithAProgram(t *testing.T) {
	s := okSpec()
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
	zero := Spec{}
	if err := zero.Validate(); err == nil {
		t.Error("the zero Spec is valid")
	}
}

// The edges that flags cannot reach, because a Spec may come from Go code.
func TestValidate(t *testing.T) {
	long := strings.Repeat("a", maxArgString)
	many := func(n int) []string { return strings.Split(strings.Repeat("x ", n-1)+"x", " ") }
	for _, c := range []struct {
		name   string
		change func(*Spec)
		want   string // "" is valid
	}{
		{"least of all", func(s *Spec) {
			s.Limits = Limits{Timeout: time.Millisecond, CPUTime: time.Millisecond, Memory: 6 << 20, MilliCPU: 10, Pids: 1, Disk: 64 << 10,
				DiskInodes: 64, Output: 1, OpenFiles: 16, FileSize: 1024, Stack: 128 << 10, OutFiles: 1, OutBytes: 1}
		}, ""},
		{"most of all", func(s *Spec) {
			s.Limits = Limits{Timeout: MaxDuration, CPUTime: MaxDuration, Memory: MaxSize, MilliCPU: MaxMilliCPU, Pids: 1 << 22, Disk: MaxSize,
				DiskInodes: 1 << 31, Output: MaxSize, OpenFiles: 1 << 20, FileSize: MaxSize, Stack: 1 << 30, OutFiles: 1000000, OutBytes: MaxSize,
				IO: []IOLimit{{Device: "/dev/vda", ReadBPS: MaxSize}}}
			s.User = User{maxID, maxID}
		}, ""},
		{"timeout", func(s *Spec) { s.Limits.Timeout = 0 }, "--timeout: 0s is too short: at least 1ms"},
		{"timeout negative", func(s *Spec) { s.Limits.Timeout = -1 }, "--timeout: -1ns is too short: at least 1ms"},
		{"timeout long", func(s *Spec) { s.Limits.Timeout = MaxDuration + 1 }, "--timeout: 720h0m0.000000001s is too long: at most 720h (30 days)"},
		{"cpu time negative", func(s *Spec) { s.Limits.CPUTime = -1 }, "--cpu-time: -1ns is too short: at least 1ms"},
		{"memory", func(s *Spec) { s.Limits.Memory = 0 }, "--memory: 0 is too small: at least 6m"},
		{"memory negative", func(s *Spec) { s.Limits.Memory = -1 }, "--memory: -1 is too small: at least 6m"},
		{"memory unlimited", func(s *Spec) { s.Limits.Memory = 1<<63 - 1 }, "--memory: 9223372036854775807 is too large: at most 1024t"},
		{"disk", func(s *Spec) { s.Limits.Disk = 0 }, "--disk: 0 is too small: at least 64k"},
		{"output", func(s *Spec) { s.Limits.Output = 0 }, "--output-limit: 0 is too small: at least 1"},
		{"file size", func(s *Spec) { s.Limits.FileSize = -1 }, "--ulimit fsize: -1 is too small: at least 1k"},
		{"stack", func(s *Spec) { s.Limits.Stack = 1<<30 + 1 }, "--ulimit stack: 1073741825 is too large: at most 1g"},
		{"cpus", func(s *Spec) { s.Limits.MilliCPU = 0 }, "--cpus (thousandths): 0 is too small: at least 10"},
		{"pids", func(s *Spec) { s.Limits.Pids = 0 }, "--pids-limit: 0 is too small: at least 1"},
		{"inodes", func(s *Spec) { s.Limits.DiskInodes = 1<<31 + 1 }, "--disk-inodes: 2147483649 is too large: at most 2147483648"},
		{"files", func(s *Spec) { s.Limits.OpenFiles = -1 }, "--open-files: -1 is too small: at least 16"},
		{"out files", func(s *Spec) { s.Limits.OutFiles = 0 }, "--out-files: 0 is too small: at least 1"},
		{"out files many", func(s *Spec) { s.Limits.OutFiles = 1000001 }, "--out-files: 1000001 is too large: at most 1000000"},
		{"out bytes", func(s *Spec) { s.Limits.OutBytes = -1 }, "--out-limit: -1 is too small: at least 1"},
		{"io twice", func(s *Spec) { s.Limits.IO = []IOLimit{{Device: "/dev/a", ReadBPS: 1}, {Device: "/dev/a", ReadBPS: 1}} },
			`--device-...: "/dev/a" has two entries`},
		{"io empty", func(s *Spec) { s.Limits.IO = []IOLimit{{Device: "/dev/a"}} }, `--device-...: the rates of "/dev/a" are out of bounds`},
		{"io negative", func(s *Spec) { s.Limits.IO = []IOLimit{{Device: "/dev/a", ReadBPS: 1, WriteIOP: -1}} },
			`--device-...: the rates of "/dev/a" are out of bounds`},
		{"user", func(s *Spec) { s.User.UID = 1 << 31 }, "--user: 2147483648:65534 is out of bounds: at most 2147483647"},
		{"group", func(s *Spec) { s.User.GID = 1<<32 - 1 }, "--user: 65534:4294967295 is out of bounds: at most 2147483647"},
		{"output action", func(s *Spec) { s.OutputLimit = "" }, `--on-output-limit: "" is neither truncate nor kill`},
		{"proc", func(s *Spec) { s.Proc = "" }, `--proc: "" is neither default nor none`},
		{"seccomp", func(s *Spec) { s.Seccomp = "" }, `--seccomp: "" is not the name of a profile`},
		{"seccomp off", func(s *Spec) { s.Seccomp = "unconfined" },
			"--seccomp: unconfined is refused: the whole kernel would be within the program's reach"},
		{"degraded", func(s *Spec) { s.AllowDegraded = []string{"seccomp"} },
			`--allow-degraded: "seccomp" is not a limit that may be degraded: memory, cpu, pids, io`},
		{"two programs", func(s *Spec) { s.Program.File = "/a" }, "a command, code and a file exclude each other"},
		{"no program", func(s *Spec) { s.Program = Program{} }, "nothing to run"},
		{"empty command", func(s *Spec) { s.Program.Command = []string{"", "x"} }, "the command's name is empty"},
		{"command and args", func(s *Spec) { s.Program.Args = []string{"x"} }, "a command holds its own arguments; Args are for code and files"},
		{"file", func(s *Spec) { s.Program = Program{File: "a.py"} }, `file "a.py" is not absolute`},
		{"code of the largest size", func(s *Spec) { s.Program = Program{Code: make([]byte, MaxCode), Lang: "python"} }, ""},
		{"code", func(s *Spec) { s.Program = Program{Code: make([]byte, MaxCode+1), Lang: "python"} }, "--code: 16777217 bytes are more than 16m"},
		{"lang", func(s *Spec) { s.Program = Program{Code: []byte("x"), Lang: "-x"} }, `--lang: "-x" is not the name of a language`},
		{"c++", func(s *Spec) { s.Program = Program{Code: []byte("x"), Lang: "c++"} }, ""},
		{"NUL", func(s *Spec) { s.Program.Command = []string{"a", "b\x00c"} }, "argument 1 has a NUL byte"},
		{"NUL in code's argument", func(s *Spec) { s.Program = Program{File: "/a", Args: []string{"\x00"}} }, "argument 0 has a NUL byte"},
		{"longest argument", func(s *Spec) { s.Program.Command = []string{"a", long} }, ""},
		{"long argument", func(s *Spec) { s.Program.Command = []string{"a", long + "a"} },
			"argument list too long: argument 1 is 131072 bytes, at most 131071"},
		{"longest variable", func(s *Spec) { s.Env = []string{"A=" + long[2:]} }, ""},
		{"long variable", func(s *Spec) { s.Env = []string{"A=" + long} },
			`argument list too long: variable "A" is 131073 bytes, at most 131071`},
		{"many arguments", func(s *Spec) { s.Program.Command = many((2<<20 - argReserve) / 10) }, ""},
		{"too many arguments", func(s *Spec) { s.Program.Command = many((2<<20-argReserve)/10 + 1) },
			"argument list too long: arguments and environment are 2097162 bytes, at most 2097152"},
		{"small stack", func(s *Spec) { s.Limits.Stack = 128 << 10; s.Program.Command = many(20000) },
			"argument list too long: arguments and environment are 208192 bytes, at most 131072"},
		{"large stack", func(s *Spec) { s.Limits.Stack = 1 << 30; s.Program.Command = many(650000) },
			"argument list too long: arguments and environment are 6508192 bytes, at most 6291456"},
		{"env", func(s *Spec) { s.Env = []string{"A"} }, `--env: "A" has no value`},
		{"env no name", func(s *Spec) { s.Env = []string{"=1"} }, `--env: "=1" has no variable name`},
		{"env NUL", func(s *Spec) { s.Env = []string{"A=\x00secret"} }, `--env: variable "A" has a NUL byte`},
		{"env twice", func(s *Spec) { s.Env = []string{"A=1", "A=2"} }, `--env: "A" is given twice`},
		{"image", func(s *Spec) { s.Image = "" }, `--image: "" is empty`},
		{"image relative", func(s *Spec) { s.Image = "alpine" }, `--image: "alpine" is not absolute`},
		{"venv", func(s *Spec) { s.Venv = "v" }, `--venv: "v" is not absolute`},
		{"out", func(s *Spec) { s.Out = "/a/../b" }, `--out: "/a/../b" is not clean: no //, /./, /../ or / at the end`},
		{"workdir", func(s *Spec) { s.Workdir = "/a\nb" }, `--workdir: "/a\nb" has a control character`},
		{"long path", func(s *Spec) { s.Workdir = "/" + strings.Repeat("a", 4095) }, ""},
		{"cgroup parent", func(s *Spec) { s.CgroupParent = "/" }, `--cgroup-parent: "/" is the root itself`},
		{"allow-mount", func(s *Spec) { s.AllowMounts = []string{"etc"} }, `--allow-mount: "etc" is not absolute`},
		{"mount source", func(s *Spec) { s.Mounts = []Mount{{Source: "a", Target: "/b"}} }, `--volume: source "a" is not absolute`},
		{"mount target", func(s *Spec) { s.Mounts = []Mount{{Source: "/a", Target: "/b\x00"}} }, `--volume: target "/b\x00" has a control character`},
		{"nested", func(s *Spec) { s.Mounts = []Mount{{"/a", "/d", false}, {"/b", "/d/e", true}, {"/c", "/de", false}} }, ""},
		{"too many mounts", func(s *Spec) { s.Mounts = make([]Mount, 257) }, "--volume: 257 mounts are too many: at most 256"},
		{"a whole host by name", func(s *Spec) {
			s.AllowMounts, s.Mounts = []string{"/"}, []Mount{{Source: "/", Target: "/host"}}
		}, ""},
	} {
		s := okSpec()
		c.change(&s)
		err := s.Validate()
		switch {
		case c.name == "long path":
			if err == nil || !strings.HasSuffix(err.Error(), "is longer than a path can be") || len(err.Error()) > 200 {
				t.Errorf("%s: got %v", c.name, err)
			}
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (err == nil || err.Error() != c.want):
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
		if err != nil && strings.HasPrefix(err.Error(), "argument list too long") && !strings.HasPrefix(shown(t, err), "error 126: ") {
			t.Errorf("%s: exit code of %s", c.name, shown(t, err))
		}
	}
}

func TestDangerousSource(t *testing.T) {
	for _, c := range []struct{ path, home, read, write string }{
		{"/", "", "it is the whole host", "it is the whole host"},
		{"/srv/task", "/home/ann", "", ""},
		{"/work", "", "", ""},
		{"/home/ann/task", "/home/ann", "", ""},
		{"/proc", "", "it shows every process of the host, with its environment", "="},
		{"/proc/self", "", "it shows every process of the host, with its environment", "="},
		{"/process", "", "", ""},
		{"/sys/fs/cgroup", "", "it holds the kernel's settings", "="},
		{"/dev/vda", "", "it holds the host's devices", "="},
		{"/run/docker.sock", "", "it holds the sockets of the host's services", "="},
		{"/var/run/containerd/containerd.sock", "", "it holds the sockets of the host's services", "="},
		{"/run/user/1000/podman/podman.sock", "", "it holds the sockets of the host's services", "="},
		{"/boot", "", "it holds the kernel that starts next", "="},
		{"/etc/shadow", "", "it holds the host's accounts, keys and settings", "="},
		{"/var", "", "it contains /var/run: it holds the sockets of the host's services", "="},
		{"/var/lib", "", "it contains /var/lib/docker: it holds the containers of the host", "="},
		{"/var/lib/docker/volumes/x", "", "it holds the containers of the host", "="},
		{"/var/lib/mine", "", "", "it holds the state of the host's services"},
		{"/tmp", "", "it holds other programs' sockets and files", "="},
		{"/tmp/task", "", "", ""},
		{"/home", "", "it holds everybody's files", "="},
		{"/home/ann", "/home/ann", "it is a whole home directory", "="},
		{"/home/bob", "/home/ann", "it is a whole home directory", "="},
		{"/home/ann/", "", "it is a whole home directory", "="},
		{"/home/ann/.ssh", "/home/ann", "it holds the owner's keys, tokens or settings", "="},
		{"/home/bob/.ssh/id", "/home/ann", "it holds the owner's keys, tokens or settings", "="},
		{"/home/ann/.gnupg", "", "it holds the owner's keys, tokens or settings", "="},
		{"/home/ann/.aws/credentials", "", "it holds the owner's keys, tokens or settings", "="},
		{"/home/ann/.kube", "", "it holds the owner's keys, tokens or settings", "="},
		{"/home/ann/.docker/config.json", "", "it holds the owner's keys, tokens or settings", "="},
		{"/home/ann/.config/gcloud", "", "it holds the owner's keys, tokens or settings", "="},
		{"/home/ann/.netrc", "", "it holds the owner's keys, tokens or settings", "="},
		{"/home/ann/.git-credentials", "", "it holds the owner's keys, tokens or settings", "="},
		{"/home/ann/.local", "", "it contains /home/ann/.local/share/keyrings: it holds the owner's keys, tokens or settings", "="},
		{"/home/ann/.cargo", "", "it contains /home/ann/.cargo/credentials: it holds the owner's keys, tokens or settings", "="},
		{"/home/ann/.cargo/registry", "", "", ""},
		{"/home/ann/.sshx", "", "", ""},
		{"/home/ann/x/.ssh", "", "", ""}, // a copy in a project is the project's
		{"/var/home/ann/.ssh", "", "it holds the owner's keys, tokens or settings", "="},
		{"/srv/svc/.ssh", "/srv/svc", "it holds the owner's keys, tokens or settings", "="},
		{"/srv/svc/.ssh", "/srv/svc/", "it holds the owner's keys, tokens or settings", "="},
		{"/srv", "/srv/svc", "it contains /srv/svc: it is a whole home directory", "="},
		{"/srv/svc", "", "", ""},
		{"/srv/svc", "srv/svc", "", ""},
		{"/x", "/", "", ""},
		{"/root", "/home/ann", "it holds the administrator's files", "="},
		{"/root/task", "/home/ann", "it holds the administrator's files", "="},
		{"/root/task", "/root", "", ""},
		{"/root", "/root", "it is a whole home directory", "="},
		{"/root/.ssh", "/root/", "it holds the owner's keys, tokens or settings", "="},
		{"/srv/../etc", "", "it holds the host's accounts, keys and settings", "="},
		{"//etc//", "", "it holds the host's accounts, keys and settings", "="},
		{"/usr", "", "", "the host runs programs from it"},
		{"/usr/local/bin", "", "", "the host runs programs from it"},
		{"/lib64", "", "", "the host loads libraries from it"},
		{"/opt/app", "", "", "the host runs programs from it"},
		{"/home/ann/.bashrc", "", "the owner's shell starts with it, and may have tokens from it", "="},
		{"/home/ann/.vimrc", "", "", "the owner's shell or programs run code from it"},
		{"/home/ann/bin/x", "", "", "the owner's shell or programs run code from it"},
		{"/home/ann/binary", "", "", ""},
	} {
		if c.write == "=" {
			c.write = c.read
		}
		why, bad := DangerousSource(c.path, c.home)
		if why != c.read || bad != (why != "") {
			t.Errorf("read %s (home %s): got %q %v, want %q", c.path, c.home, why, bad, c.read)
		}
		why, bad = DangerousWrite(c.path, c.home)
		if why != c.write || bad != (why != "") {
			t.Errorf("write %s (home %s): got %q %v, want %q", c.path, c.home, why, bad, c.write)
		}
	}
}

// Only the very path helps: not its parent, not its child, not the link.
func TestCheckSource(t *testing.T) {
	for _, c := range []struct {
		allow string
		path  string
		ok    bool
	}{
		{"/etc/ssl", "/etc/ssl", true}, {"/etc/ssl", "/etc/ssl/", true}, {"/etc", "/etc/ssl", false}, {"/etc/ssl/certs", "/etc/ssl", false},
		{"/srv/link", "/etc", false}, {"/", "/etc", false}, {"", "/etc", false}, {"", "/srv", true},
	} {
		s := okSpec()
		s.AllowMounts = []string{c.allow}
		for _, write := range []bool{false, true} {
			if err := s.CheckSource(c.path, write); (err == nil) != c.ok {
				t.Errorf("allow %q, %s: got %v", c.allow, c.path, err)
			}
		}
	}
	s := okSpec()
	if s.CheckSource("/usr/local", false) != nil || s.CheckSource("/usr/local", true) == nil {
		t.Error("/usr/local is to read and not to write")
	}
}

const goldenDigest = "14dcfc607f307b931db7565eb31ab482097b44b379de0cb6f5676513eba59827"

func TestDigest(t *testing.T) {
	s := okSpec()
	if got := s.Digest(); got != goldenDigest {
		t.Errorf("got %s, want %s: a change must come with a new digestVersion", got, goldenDigest)
	}
	a, b := okSpec(), okSpec()
	a.Mounts, b.Mounts = []Mount{{"/a", "/x", false}, {"/b", "/y", true}}, []Mount{{"/b", "/y", true}, {"/a", "/x", false}}
	a.Env, b.Env = []string{"A=1", "B=2"}, []string{"B=2", "A=1"}
	a.AllowDegraded, b.AllowDegraded = []string{"cpu", "io"}, []string{"io", "cpu"}
	a.Files, b.Files = []File{{Name: "a"}, {Name: "b"}}, []File{{Name: "b"}, {Name: "a"}}
	a.AllowMounts, b.AllowMounts = []string{"/a", "/b"}, []string{"/b", "/a"}
	a.Limits.IO, b.Limits.IO = []IOLimit{{Device: "/dev/a"}, {Device: "/dev/b"}}, []IOLimit{{Device: "/dev/b"}, {Device: "/dev/a"}}
	if a.Digest() != b.Digest() {
		t.Error("the order of a set changes the digest")
	}
	if b.Mounts[0].Source != "/b" || b.Env[0] != "B=2" {
		t.Error("Digest sorted the caller's lists")
	}
	b.Home = "/elsewhere"
	if a.Digest() != b.Digest() {
		t.Error("Home changes the digest")
	}
}

// Every field but Home and ImageName changes the digest, in every struct: a field that is
// added and forgotten in Digest fails here.
func TestDigestCoversEveryField(t *testing.T) {
	base := func() Spec {
		s := okSpec()
		s.Mounts = []Mount{{"/a", "/b", false}}
		s.Limits.IO = []IOLimit{{Device: "/dev/a", ReadBPS: 1}}
		s.Files = []File{{Name: "a", Content: []byte("b")}}
		return s
	}
	plain := base()
	seen := map[string]string{plain.Digest(): "nothing"}
	var visit func(path string, at func(*Spec) reflect.Value)
	visit = func(path string, at func(*Spec) reflect.Value) {
		s := base()
		v := at(&s)
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				visit(path+"."+v.Type().Field(i).Name, func(s *Spec) reflect.Value { return at(s).Field(i) })
			}
			return
		case reflect.Slice:
			if v.Type().Elem().Kind() == reflect.Struct {
				visit(path+"[0]", func(s *Spec) reflect.Value { return at(s).Index(0) })
			}
			v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
		case reflect.String:
			v.SetString(v.String() + "~")
		case reflect.Bool:
			v.SetBool(!v.Bool())
		case reflect.Int64:
			v.SetInt(v.Int() + 1)
		case reflect.Uint32:
			v.SetUint(v.Uint() + 1)
		default:
			t.Fatalf("%s: kind %v is new to this test", path, v.Kind())
		}
		if path == "Spec.Home" || path == "Spec.ImageName" {
			return
		}
		if other, ok := seen[s.Digest()]; ok {
			t.Errorf("changing %s gives the digest of changing %s", path, other)
		}
		seen[s.Digest()] = path
	}
	visit("Spec", func(s *Spec) reflect.Value { return reflect.ValueOf(s).Elem() })
	if len(seen) != 62 {
		t.Errorf("%d changes were tried, want 62", len(seen))
	}
}

// No field can be read as the end of the one before.
func TestDigestKeepsFieldsApart(t *testing.T) {
	a, b := okSpec(), okSpec()
	a.Program.Command, b.Program.Command = []string{"ab", "c"}, []string{"a", "bc"}
	if a.Digest() == b.Digest() {
		t.Error("moving a byte between arguments keeps the digest")
	}
	a.Program, b.Program = Program{Command: []string{"x"}}, Program{Args: []string{"x"}}
	if a.Digest() == b.Digest() {
		t.Error("command and args are the same to the digest")
	}
}

// A link is followed on the way to what is written only where no program can
// have made it.
func TestMayFollow(t *testing.T) {
	s := okSpec()
	s.AllowMounts = []string{"/home/ann/.config/app", "/opt/"}
	for dir, want := range map[string]bool{
		"/": true, "/var": true, "/home": true, "/home/ann": true, "/usr/share": true, "/home/ann/.config": true, "/dev": true,
		"/home/ann/proj": false, "/srv": false, "/srv/data": false, "/data": false,
		"/home/ann/.config/app": false, "/home/ann/.config/app/x": false, "/opt": false, "/opt/x": false, // allowed to a program
	} {
		if got := s.MayFollow(dir); got != want {
			t.Errorf("%s: %v, want %v", dir, got, want)
		}
	}
}

func TestHomesHoldSecretsOfTools(t *testing.T) {
	for _, name := range []string{".claude", ".codex", ".dockercfg", ".tsh", ".cloudflared", ".vscode", ".var", "snap", ".config/gh", ".claude.json", "snap/firefox/common",
		".databrickscfg", ".ollama", ".pulumi", ".huggingface", ".cache/huggingface/token", ".netrc.gpg", ".op", ".doppler", ".vercel", ".gsutil",
		".cvspass", ".bundle/config", ".nuget", ".nuget/NuGet/NuGet.Config", ".openai", ".anthropic", ".gemini", ".copilot", ".bundle",
		".bashrc", ".zshrc", ".zshenv", ".profile", ".bash_profile", ".bash_history", ".zsh_history", ".python_history", ".envrc"} {
		for _, home := range []string{"/home/ann", "/home/bob"} {
			if why, bad := DangerousSource(home+"/"+name, "/home/ann"); !bad || why == "" {
				t.Errorf("%s/%s may be mounted", home, name)
			}
		}
	}
	for _, fine := range []string{"/home/ann/proj/.vscode", "/home/ann/.claudette", "/home/ann/snapshots", "/home/ann/proj/.bashrc", "/home/ann/.opt", "/home/ann/.bundle/cache"} {
		if why, bad := DangerousSource(fine, "/home/ann"); bad {
			t.Errorf("%s may not be mounted: %s", fine, why)
		}
	}
}
