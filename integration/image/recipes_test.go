package image

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

func arch() string { return runtime.GOARCH }

// EnvRecipes asks for all of them: the others are hundreds of megabytes to load.
const EnvRecipes = "SANDGLASS_RECIPES"

// most is the size that a recipe's image may have, what its program prints, and how
// it is run.
var recipes = []struct {
	name  string
	big   bool
	most  int64
	flags string
	argv  []string
	want  string
	https []string // does the same as all of these, nil for none
}{
	{"static", false, 2_000_000, "", []string{"sh", "-c", "echo a b | awk '{print $2}'; id -u"}, "b\n65534\n", nil},
	{"bash", false, 40_000_000, "", []string{"bash", "-c", `a=(3 1 2); printf '%s\n' "${a[@]}" | sort | tr '\n' ' '; echo ${#a[@]}`}, "1 2 3 3\n", nil},
	{"python", false, 60_000_000, "--timeout 60s", []string{"python", "-c", pythonProgram}, "ok 2.0 ü 3 True True\n", []string{"python", "-c", pythonHTTPS}},
	{"python-science", true, 600_000_000, "-m 512m --cpus 2 --timeout 60s", []string{"python", "-c", scienceProgram}, "[5.0, 11.0] 3 0.5 True\n", nil},
	{"node", true, 200_000_000, "-m 512m --timeout 60s", []string{"node", "-e", "console.log([1,2,3].map(x => x * x).join(), require('crypto').createHash('sha256').update('').digest('hex').slice(0, 8))"}, "1,4,9 e3b0c442\n", []string{"node", "-e", nodeHTTPS}},
	{"go", true, 600_000_000, "-m 2g --disk 1g --cpus 2 --pids-limit 512 --timeout 300s -e HOME=/tmp", []string{"sh", "-c", "printf 'package main\\nfunc main() { println(6 * 7) }\\n' > main.go && go run main.go 2>&1"}, "42\n", []string{"sh", "-c", goHTTPS}},
	{"java", true, 400_000_000, "-m 1g --disk 256m --cpus 2 --pids-limit 256 --timeout 60s", []string{"sh", "-c", "echo 'class Main { public static void main(String[] a) { System.out.println(6 * 7); } }' > Main.java; java Main.java"}, "42\n", []string{"sh", "-c", javaHTTPS}},
}

const pythonProgram = `
import json, sqlite3, ssl, ctypes, lzma, bz2, zlib, hashlib, subprocess, zoneinfo, decimal, asyncio, csv, uuid, readline, curses
n = sqlite3.connect(":memory:").execute("select 1+1.0").fetchone()[0]
out = subprocess.run("echo 3", shell=True, capture_output=True, text=True).stdout.strip()
certs = len(ssl.create_default_context().get_ca_certs()) > 50
zone = zoneinfo.ZoneInfo("Europe/Stockholm").key == "Europe/Stockholm"
print("ok", n, "\u00fc", out, certs, zone)
`

const scienceProgram = `
import numpy as np, pandas as pd, scipy.stats, matplotlib
import matplotlib.pyplot as plt, io
a = (np.array([[1., 2], [3, 4]]) @ np.array([1., 2])).tolist()
n = len(pd.read_csv(io.StringIO("a,b\n1,2\n3,4\n5,6\n")))
f = io.BytesIO()
plt.plot([1, 2]); plt.savefig(f)
print(a, n, float(scipy.stats.norm.cdf(0)), f.getvalue()[:4] == b"\x89PNG")
`

// Each recipe gives an image in which its language's program runs, small and true.
func TestRecipes(t *testing.T) {
	testkit.Requires(t, "root", "apt-get", "dpkg-deb")
	testkit.Binary(t) // lies beside the tool, which compiles with it
	cache := testkit.Dir(t)
	h := newHome(t, testkit.AsRoot(t))
	h.cache = cache
	reached := false // the network, by an earlier one: from then on nothing is excused
	for _, r := range recipes {
		t.Run(r.name, func(t *testing.T) {
			if r.big && os.Getenv(EnvRecipes) != "all" {
				testkit.Skip(t, EnvRecipes+"=all", "it unset")
			}
			h.t = t
			lock := filepath.Join(cache, r.name+".lock")
			exit, out, errs := h.image("build", "--lock", lock, r.name)
			if exit == 125 && !reached && strings.Contains(errs, "failed to fetch") {
				testkit.Skip(t, "Debian's packages", "no network")
			}
			reached = true
			if exit != 0 {
				t.Fatalf("exit %d, %s", exit, errs)
			}
			m := h.sound(r.name)
			t.Logf("%s: %d packages, %d files, %d bytes", r.name, len(m.Packages), m.Image.Files, m.Image.Bytes)
			if m.Image.Bytes >= r.most {
				t.Errorf("it is %d bytes, %d or more", m.Image.Bytes, r.most)
			}
			o := h.run(append(append(strings.Fields(r.flags), r.name), r.argv...)...)
			if o.Exit != 0 || o.Stdout != r.want {
				t.Errorf("exit %d, %q, want %q (%s)", o.Exit, o.Stdout, r.want, o.Stderr)
			}
			if r.https != nil {
				h.https(r.name, r.flags, r.https, r.name == "java")
			}
			other := newHome(t, h.who)
			other.cache = cache
			if again := other.build("--lock", lock, r.name); again+" "+r.name+"\n" != out {
				t.Errorf("built twice: %q and %q", out, again)
			}
		})
	}
}

// An image of this host's own interpreters needs no network, and nothing of the
// host when it is run.
func TestFromHost(t *testing.T) {
	testkit.Requires(t, "python3", "node", "bash")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		h := newHome(t, who)
		if exit, _, errs := h.image("from-host", "--name", "mine", "/usr/bin/python3", "node", "sh", "timeout"); exit != 0 {
			t.Fatalf("exit %d, %s", exit, errs)
		}
		h.sound("mine")
		for _, c := range []struct {
			argv []string
			want string
		}{
			{[]string{"timeout", "10", "python", "-c", "import json, ssl, sqlite3, ctypes, hashlib, sys; print(json.dumps([1]), sys.version_info.major)"}, "[1] 3\n"},
			{[]string{"node", "-e", "console.log([1,2].map(x => 2 * x).join(), require('zlib').crc32 !== 0)"}, "2,4 true\n"},
			{[]string{"sh", "-c", "echo $0; command -v ls || echo none"}, "sh\nnone\n"},
		} {
			o := h.run(append([]string{"-m", "512m", "mine"}, c.argv...)...)
			if o.Exit != 0 || o.Stdout != c.want {
				t.Errorf("%q: exit %d, %q, want %q (%s)", c.argv, o.Exit, o.Stdout, c.want, o.Stderr)
			}
		}
		for name, want := range map[string]string{"no-such-command": "no-such-command: not found", "ldd": "ldd is /usr/bin/ldd, a script: only programs are taken"} {
			if exit, _, errs := h.image("from-host", name); exit == 0 || !strings.Contains(errs, want) {
				t.Errorf("%s: exit %d, %s", name, exit, errs)
			}
		}
	})
}
