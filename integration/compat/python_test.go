package compat

import (
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

const system = "/usr/bin/python3 python3:"

var python = []program{
	{file: "numpy.py", needs: system + "numpy", want: "[[5, 14], [14, 50]] 5.0\n[4.0, 0.0, 0.0, 0.0] 216000000\n"},
	{file: "blas.py", needs: system + "numpy", want: "1\n"},
	{file: "pandas.py", needs: system + "pandas", want: "{'a': 4, 'b': 2}\n2024-02-29T12:00:00+01:00\n"},
	{file: "matplotlib.py", needs: system + "matplotlib",
		want: "agg b'\\x89PNG\\r\\n\\x1a\\n'\n/home/sandbox/.cache/matplotlib ['fontlist']\n"},
	{file: "scipy.py", needs: system + "scipy", want: "1.414214 0.5\n3 0.5 [[0.5]]\n"},
	{file: "sqlite.py", needs: system + "sqlite3", want: "('wal',)\n(499500,)\n"},
	{file: "lxml.py", needs: system + "lxml", want: "2\nxy\n"},
	{file: "pillow.py", needs: system + "PIL", want: "PNG JPEG WEBP GIF TIFF (8, 8)\n"},
	{file: "requests.py", needs: system + "requests", want: "ConnectionError\n200\n"},
	{file: "multiprocessing.py", needs: "/usr/bin/python3", want: "fork [0, 1, 4, 9, 16] put\n" +
		"spawn [0, 1, 4, 9, 16] put\nforkserver [0, 1, 4, 9, 16] put\n7\n[0, 1, 4] 1 1\n"},
	{file: "asyncio.py", needs: "/usr/bin/python3", want: "[b'0\\n', b'1\\n', b'2\\n']\nb'x' 3\n3\n"},
	{file: "venv.sh", needs: system + "ensurepip bash", want: "/work/env\n1\na package of one's own\n"},
}

func TestPython(t *testing.T) { each(t, python) }

// TestBLASThreads: the pool of a numeric library has as many threads as there
// are CPUs, and not the host's number.
func TestBLASThreads(t *testing.T) {
	p := named(t, python, "blas.py")
	testkit.Requires(t, "/usr/bin/python3", "python3:numpy")
	if runtime.NumCPU() < 2 {
		testkit.Skip(t, "two CPUs", "one")
	}
	out, err := exec.Command("/usr/bin/python3", onHost(t, "set/try_blas.py")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if string(out) == "1\n" {
		testkit.Skip(t, "openblas", "a BLAS without threads")
	}
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		for _, cpus := range []int{1, 2} {
			p.want = strconv.Itoa(cpus) + "\n"
			p.printed(t, p.run(t, who, "--cpus", strconv.Itoa(cpus)))
		}
	})
}

// TestFontCacheIsInHome: without a HOME that can be written, Matplotlib has its
// cache elsewhere, and what the set compares shows it.
func TestFontCacheIsInHome(t *testing.T) {
	p := named(t, python, "matplotlib.py")
	testkit.Requires(t, strings.Fields(p.needs)...)
	if o := p.run(t, testkit.AsUser(t), "-e", "HOME=/nonexistent"); o.Exit != 0 || !strings.Contains(o.Stdout, "/tmp/matplotlib-") {
		t.Errorf("exit %d, stdout %q\nstderr: %s", o.Exit, o.Stdout, o.Stderr)
	}
}
