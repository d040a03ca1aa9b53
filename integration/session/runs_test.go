package session

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
)

func TestRuns(t *testing.T) {
	testkit.Requires(t, "python3")
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		c := open(t, who, "--max-running", "1", "--max-queued", "16", "-e", "A=session", "--timeout", "20s")
		h := c.hello
		if h.Protocol != 1 || h.Version != "dev" || h.Limits["running"] != 1 || h.Limits["queued"] != 16 || !strings.Contains(fmt.Sprint(h.Languages), "python") {
			t.Errorf("%+v", h)
		}
		c.send(`{"type":"run","id":"1","code":"import sys,os\nprint(sys.argv[1:], sys.stdin.read(), os.environ['A'], os.environ['B'])","lang":"python",` +
			`"args":["a","b c"],"stdin":"in","env":{"B":"b=\n"}}`)
		r := c.ended("1")
		if want := "['a', 'b c'] in session b=\n\n"; r.Stdout.Text != want || r.ExitCode != 0 || r.Limits["timeout"].Value != 20000 {
			t.Errorf("%q, want %q; %+v", r.Stdout.Text, want, r.Limits["timeout"])
		}
		c.send(`{"type":"run","id":"2","command":["sh","-c","cat; printf '\\377\\000' >&2; exit 7"],"stdin_base64":"AP8K","options":{"timeout":"60s","memory":"64m"}}`)
		r = c.ended("2")
		if r.ExitCode != 7 || r.Stdout.Base64 != "AP8K" || r.Stderr.Base64 != "/wA=" || r.Limits["timeout"].Value != 60_000 || r.Limits["memory"].Value != 64<<20 {
			t.Errorf("%+v", r)
		}
		c.sh("3", "read x; echo \"[$x]\"; sleep 100", `,"options":{"timeout":"soon"}`)
		if r := c.wrong("3", "refused"); r.ExitCode != 125 || !strings.HasPrefix(r.Error, "--timeout: ") || len(r.Hints) == 0 {
			t.Errorf("%+v", r)
		}
		c.sh("3", "read x; echo \"[$x]\"; sleep 100", `,"options":{"timeout":3}`)
		if r := c.want("result", "3").Result; r.Outcome != result.Timeout || r.ExitCode != 124 || r.Stdout.Text != "[]\n" {
			t.Errorf("%+v", r)
		}
		c.send(`{"type":"run","id":"4","command":["no-such-command"]}`)
		if r := c.wrong("4", "refused"); r.ExitCode != 127 || r.To != "run" {
			t.Errorf("%+v", r)
		}
		c.close()
	})
}

// TestFiles: what a request brings is there, the program's own, in the scratch.
func TestFiles(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir := testkit.Dir(t)
		host := filepath.Join(dir, "host.txt")
		if err := os.WriteFile(host, []byte("from the host\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		c := open(t, who)
		c.sh("1", "cat a/b/c d host; ./x; stat -c '%n %a %U' a a/b/c x host; echo own >>host; rm -r a d && ls", `,"files":[`+
			`{"path":"a/b/c","text":"text é\n"},{"path":"d","base64":"YmFzZTY0Cg=="},{"path":"host","from":"`+host+`"},`+
			`{"path":"x","text":"#!/bin/sh\necho run\n","executable":true},{"path":"empty","text":""}]`)
		want := "text é\nbase64\nfrom the host\nrun\na 755 nobody\na/b/c 644 nobody\nx 755 nobody\nhost 644 nobody\nempty\nhost\nx\n"
		if r := c.ended("1"); r.Stdout.Text != want || r.Stderr.Text != "" {
			t.Errorf("got  %q\nwant %q, stderr %q", r.Stdout.Text, want, r.Stderr.Text)
		}
		if text, err := os.ReadFile(host); string(text) != "from the host\n" {
			t.Errorf("the host's file is %q now, %v", text, err)
		}
		c.many()
		c.close()
	})
}

// many brings as many files as may be, which are one descriptor for init.
func (c *client) many() {
	c.t.Helper()
	var files, size strings.Builder
	total := 0
	for i := range 1000 {
		fmt.Fprintf(&files, `,{"path":"d%d/f%d","text":"%s"}`, i%7, i, strings.Repeat("x", i))
		total += i
	}
	fmt.Fprintf(&size, "%d\n", total)
	c.sh("many", "cat d*/f* | wc -c; cat d1/f246 d2/f9; ls d*/f* | wc -l", `,"files":[`+files.String()[1:]+"]")
	if r := c.ended("many"); r.Stdout.Text != size.String()+strings.Repeat("x", 246+9)+"1000\n" {
		c.t.Errorf("%.300q", r.Stdout.Text)
	}
}

// TestFilesThatAreRefused: no name leads anywhere else, and no file of the host's
// comes in that a mount would not show.
func TestFilesThatAreRefused(t *testing.T) {
	who := testkit.AsUser(t)
	dir := testkit.Dir(t)
	for name, to := range map[string]string{"link": "/etc/passwd", "dir": "/etc"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	c := open(t, who)
	for i, f := range []struct{ file, want string }{
		{`{"path":"../etc/x","text":""}`, "leads out of /work"},
		{`{"path":"/etc/x","text":""}`, "is absolute"},
		{`{"path":"x\u0000","text":""}`, "control character"},
		{`{"path":"x","from":"/etc/shadow"}`, "is refused"},
		{`{"path":"x","from":"` + dir + `/link"}`, "/etc"},
		{`{"path":"x","from":"` + dir + `/dir/passwd"}`, "/etc"},
		{`{"path":"x","from":"/proc/self/environ"}`, "/proc"},
		{`{"path":"x","from":"/dev/null"}`, "/dev"},
		{`{"path":"x","from":"` + dir + `"}`, "not a regular file"},
		{`{"path":"x","text":""},{"path":"x","text":""}`, "given twice"},
		{`{"path":"x","text":""},{"path":"x/y","text":""}`, "directory of another"},
	} {
		id := fmt.Sprint(i)
		c.sh(id, "true", `,"files":[`+f.file+"]")
		if r := c.wrong(id, "refused"); !strings.Contains(r.Error, f.want) {
			t.Errorf("%s: %q, want %q", f.file, r.Error, f.want)
		}
	}
	c.close()
}

// TestArtifacts: inline, with nothing on the host; and into a directory.
func TestArtifacts(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir := testkit.Dir(t)
		if err := os.Chown(dir, who.UID, who.GID); err != nil && os.Geteuid() == 0 {
			t.Fatal(err)
		}
		c := open(t, who)
		const script = `mkdir /out/d; printf 'text\n' >/out/d/t; printf '\377\376' >/out/b; ln -s /etc/passwd /out/l; : >/out/e; chmod 0 /out/b`
		c.sh("inline", script, `,"artifacts":{"inline":"8k"}`)
		r := c.ended("inline")
		want := "b file 2 base64 //4=|d dir 0  |d/t file 5 text text\n|e file 0  |l symlink 11  "
		if got := rows(r.Artifacts); got != want || r.Artifacts[4].Skipped != "symbolic link" {
			t.Errorf("got  %q\nwant %q", got, want)
		}
		c.sh("large", `head -c 9000 /dev/zero >/out/x; echo y >/out/y`, `,"artifacts":{"inline":"8k"}`)
		r = c.want("result", "large").Result
		if r.Outcome != result.Exited || !strings.HasPrefix(r.Error, "artifacts: 1 entry was not collected: ") || r.Artifacts[0].Text != "" || r.Artifacts[1].Text != "y\n" {
			t.Errorf("%q %+v", r.Error, r.Artifacts)
		}
		c.sh("dir", script, `,"artifacts":{"dir":"`+dir+`/new"}`)
		r = c.ended("dir")
		if text, err := os.ReadFile(dir + "/new/d/t"); string(text) != "text\n" || r.Artifacts[2].Text != "" {
			t.Errorf("%q %v %+v", text, err, r.Artifacts)
		}
		c.sh("again", script, `,"artifacts":{"dir":"`+dir+`/new"}`)
		if r := c.want("result", "again").Result; !strings.Contains(r.Error, "the destination already has ") {
			t.Errorf("%q", r.Error)
		}
		c.sh("force", script, `,"artifacts":{"dir":"`+dir+`/new","force":true}`)
		c.ended("force")
		c.close()
	})
}

func rows(list []result.Artifact) string {
	var out []string
	for _, a := range list {
		kind, text := "", ""
		if a.Text != "" {
			kind, text = "text", a.Text
		} else if a.Base64 != "" {
			kind, text = "base64", a.Base64
		}
		out = append(out, fmt.Sprintf("%s %s %d %s %s", a.Path, a.Type, a.Size, kind, text))
	}
	return strings.Join(out, "|")
}

// TestStream: every byte comes in its order, before the result, text as text.
func TestStream(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		c := open(t, who)
		c.sh("1", `i=0; while [ $i -lt 2000 ]; do echo "$i é"; i=$((i+1)); done; head -c 300000 /dev/zero | tr '\0' '\377'; echo err >&2`, `,"output":"stream"`)
		c.want("started", "1")
		got := map[string]string{}
		for {
			r := c.read()
			if r.Type == "result" {
				if r.Result.Stdout.Kept != int64(len(got["stdout"])) || r.Result.Stdout.Text+r.Result.Stdout.Base64 != "" {
					t.Errorf("%+v, %d came", r.Result.Stdout, len(got["stdout"]))
				}
				break
			}
			b, err := base64.StdEncoding.DecodeString(r.Base64)
			if err != nil || r.Type != "output" || r.Text != "" && r.Base64 != "" {
				t.Fatalf("%v %+v", err, r)
			}
			got[r.Stream] += r.Text + string(b)
		}
		var want strings.Builder
		for i := range 2000 {
			fmt.Fprintf(&want, "%d é\n", i)
		}
		want.WriteString(strings.Repeat("\xff", 300000))
		if got["stdout"] != want.String() || got["stderr"] != "err\n" {
			t.Errorf("%d bytes, want %d; stderr %q", len(got["stdout"]), want.Len(), got["stderr"])
		}
		c.close()
	})
}

// TestLongWordsComeBackShort: what a request says at length is not repeated whole in the
// reply that refuses it.
func TestLongWordsComeBackShort(t *testing.T) {
	c := open(t, testkit.AsUser(t), "--max-running", "1")
	long := strings.Repeat("x/", 1<<19)
	for i, fields := range []string{
		`"command":["true"],"options":{"image":%q}`, `"code":"1","lang":%q`, `"command":["true"],"options":{"workdir":%q}`,
		`"command":["true"],"options":{"volume":[%q]}`, `"command":["true"],"options":{"volume":["/%s:/x"]}`, `"command":["true"],"options":{"allow-host":[%q]}`,
		`"command":["true"],"env":{%q:"x"}`, `"command":["true"],"files":[{"path":%q,"text":""}]`, `"command":["true"],"files":[{"path":"x","from":"/%s"}]`,
		`"command":["true"],"options":{%q:"x"}`, `"command":["true"],"options":{"memory":%q}`, `"command":[%q]`, `"file":%q`,
		`"command":["true"],%q:"x"`, `"command":["true"],"options":{"user":%q}`, `"command":["true"],"options":{"seccomp":%q}`,
		`"command":["true"],"options":{"ulimit":[%q]}`, `"command":["true"],"options":{"venv":%q}`, `"command":["true"],"artifacts":{"dir":%q}`,
		`"command":["true"],"output":%q`, `"command":["true"],"options":{"env-file":[%q]}`,
	} {
		c.send(`{"type":"run","id":"%d",`+fields+`}`, i, long)
		r := c.read()
		size := len(r.Error) + len(r.To) + len(r.Result.Error)
		for _, h := range append(r.Hints, r.Result.Hints...) {
			size += len(h)
		}
		if size == 0 || size > 64<<10 {
			t.Errorf("%s: %d bytes come back: %.200s", fields, size, r.Error)
		}
	}
	c.close()
}
