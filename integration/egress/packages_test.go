package egress

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/cgi"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

// sh runs a script with hosts and the authority.
func (w *world) sh(t *testing.T, who testkit.Who, flags []string, script string) testkit.Output {
	t.Helper()
	return testkit.Run(t, testkit.Opts{Who: who}, slices.Concat(flags, w.ca.flags(), []string{"--timeout", "100s", "--", "sh", "-c", script})...)
}

func text(s string) http.HandlerFunc {
	return func(out http.ResponseWriter, _ *http.Request) { fmt.Fprint(out, s) }
}

func bytesOf(b []byte) http.HandlerFunc {
	return func(out http.ResponseWriter, _ *http.Request) { out.Write(b) }
}

// TestGit clones over https, by the smart protocol, and pushes.
func TestGit(t *testing.T) {
	const backend = "/usr/lib/git-core/git-http-backend"
	testkit.Requires(t, "git", backend)
	top := testkit.Dir(t)
	script := `set -e; export HOME=` + top + ` GIT_CONFIG_NOSYSTEM=1
git init -q -b main src; cd src; echo one >file; git add file
git -c user.name=n -c user.email=e@example.org commit -q -m first
cd ..; git clone -q --bare src repo.git; git -C repo.git config http.receivepack true`
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = top
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git: %v\n%s", err, text)
	}
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		if who.IsRoot() {
			w.web.mux.Handle("/git/", &cgi.Handler{Path: backend, Root: "/git", Dir: top,
				Env: []string{"GIT_PROJECT_ROOT=" + top, "GIT_HTTP_EXPORT_ALL=1", "HOME=" + top, "REMOTE_USER=n"}})
		}
		o := w.sh(t, who, allow("good.example"), `set -e; cd /tmp
git clone -q https://good.example/git/repo.git; cat repo/file; cd repo; echo two >>file
git -c user.name=n -c user.email=e@example.org commit -q -a -m `+who.Name+`; git push -q; git fetch -q; git log --format=%s -n 1 origin/main`)
		want := "one\n" + who.Name + "\n"
		if !who.IsRoot() {
			want = "one\ntwo\n" + who.Name + "\n"
		}
		printed(t, o, want)
	})
}

// wheel is a package of Python's.
func wheel(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range [][2]string{
		{"fromindex.py", "print('a module of the index')\n"},
		{"fromindex-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: fromindex\nVersion: 1.0\n"},
		{"fromindex-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{"fromindex-1.0.dist-info/RECORD", "fromindex.py,,\nfromindex-1.0.dist-info/METADATA,,\nfromindex-1.0.dist-info/WHEEL,,\nfromindex-1.0.dist-info/RECORD,,\n"},
	} {
		out, err := z.Create(f[0])
		if err != nil {
			t.Fatal(err)
		}
		out.Write([]byte(f[1]))
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestPip installs from an index that is listed.
func TestPip(t *testing.T) {
	testkit.Requires(t, "python3:pip")
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		if who.IsRoot() {
			w.web.mux.HandleFunc("/simple/fromindex/", text(`<a href="/wheels/fromindex-1.0-py3-none-any.whl">fromindex-1.0-py3-none-any.whl</a>`))
			w.web.mux.HandleFunc("/wheels/fromindex-1.0-py3-none-any.whl", bytesOf(wheel(t)))
		}
		o := w.sh(t, who, allow("good.example"), `/usr/bin/python3 -m pip install -q --no-cache-dir --disable-pip-version-check --root-user-action=ignore --index-url https://good.example/simple/ --target /tmp/m fromindex >&2 &&
PYTHONPATH=/tmp/m /usr/bin/python3 -m fromindex`)
		printed(t, o, "a module of the index\n")
	})
}

// tarball is a package of npm's.
func tarball(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	g := gzip.NewWriter(&b)
	a := tar.NewWriter(g)
	for _, f := range [][2]string{
		{"package/package.json", `{"name":"fromregistry","version":"1.0.0","main":"index.js"}`},
		{"package/index.js", "console.log('a module of the registry')\n"},
	} {
		if err := a.WriteHeader(&tar.Header{Name: f[0], Mode: 0o644, Size: int64(len(f[1]))}); err != nil {
			t.Fatal(err)
		}
		a.Write([]byte(f[1]))
	}
	a.Close()
	g.Close()
	return b.Bytes()
}

// TestNpm installs from a registry that is listed.
func TestNpm(t *testing.T) {
	testkit.Requires(t, "node", "npm")
	each(t, func(t *testing.T, w *world, who testkit.Who) {
		if who.IsRoot() {
			tgz := tarball(t)
			sum := sha512.Sum512(tgz)
			w.web.mux.HandleFunc("/npm/fromregistry", text(fmt.Sprintf(`{"name":"fromregistry","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":"fromregistry","version":"1.0.0","dist":{"tarball":"https://good.example/npm/f.tgz","integrity":"sha512-%s"}}}}`,
				base64.StdEncoding.EncodeToString(sum[:]))))
			w.web.mux.HandleFunc("/npm/f.tgz", bytesOf(tgz))
		}
		o := w.sh(t, who, append(allow("good.example"), "--memory", "1g"), `mkdir /tmp/m && cd /tmp/m && echo '{}' >package.json &&
npm install --no-audit --no-fund --no-update-notifier --registry https://good.example/npm/ fromregistry >&2 && node -e 'require("fromregistry")'`)
		printed(t, o, "a module of the registry\n")
	})
}

func lines(s string) []string { return strings.Split(strings.TrimSuffix(s, "\n"), "\n") }
