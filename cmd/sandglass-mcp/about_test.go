package main

import (
	"strings"
	"testing"
)

// TestAbout: a description is true of what the operator has mounted and allowed, is
// short whatever that is, and never says where it is on the host.
func TestAbout(t *testing.T) {
	dir := t.TempDir()
	const limits = " Limits: timeout_seconds 10, memory_mb 256, disk_mb 64, cpus 1, processes 64."
	var many, mounts []string
	for _, n := range strings.Fields("a b c d e f g h i j k l m n") {
		many = append(many, "--allow-host", n+".test.example.org")
		mounts = append(mounts, "-v", dir+":/"+n)
	}
	long := strings.Repeat("l", 200)
	for _, x := range []struct {
		flags []string
		want  string
	}{
		{nil, "The working directory is /work. It sees the installed programs (read-only), and nothing else of the host's. It has no network." + limits},
		{[]string{"-v", dir + ":/data:ro", "-v", dir + ":/kept:rw", "-w", "/data", "--timeout", "20s", "--ceiling", "timeout=5m", "--cpus", "0.5"},
			"The working directory is /data. It sees the installed programs (read-only), /data (read-only), /kept (writable, and later calls see what is written), " +
				"and nothing else of the host's. It has no network. Limits: timeout_seconds 20 (at most 300), memory_mb 256, disk_mb 64, cpus 0.5, processes 64."},
		{[]string{"-v", dir + ":/a b.\" It", "-v", dir + ":/" + long}, `(read-only), "/a b.\" It" (read-only), /` + long[:99] + "… (read-only), and nothing else"},
		{mounts, "/k (read-only), 3 more, and nothing else of the host's."},
		{[]string{"--venv", dir}, "the installed programs (read-only), a Python environment (read-only), and nothing else"},
		{[]string{"--image", dir}, "It sees an image (read-only), and nothing else of the host's."},
		{[]string{"--allow-host", "one.test.example.org:8443"}, "It has no network but TCP to one.test.example.org:8443." + limits},
		{[]string{"--offer-host", "one.test.example.org"}, "It has no network but the allow_hosts of a call." + limits},
		{append(many, "--offer-host", "o.test.example.org"), "It has no network but TCP to a.test.example.org, b.test.example.org, c.test.example.org, d.test.example.org, " +
			"e.test.example.org, f.test.example.org, g.test.example.org, h.test.example.org, i.test.example.org, j.test.example.org, k.test.example.org, " +
			"l.test.example.org, 2 more and to the allow_hosts of a call."},
	} {
		o, err := parse(append(x.flags, "--sandglass", "/bin/sh"))
		if err != nil {
			t.Fatalf("%q: %v", x.flags, err)
		}
		if got := o.about(); !strings.HasPrefix(got, "a fresh sandbox, which is thrown away afterwards. ") || !strings.Contains(got, x.want) || strings.Contains(got, dir) {
			t.Errorf("%q: %s, want %s", x.flags, got, x.want)
		}
	}
}

// TestInFields: flags are put into the words of the tools, and what is quoted is not.
func TestInFields(t *testing.T) {
	for what, want := range map[string]string{
		"--memory: 1m is too small":                     "memory_mb: 1m is too small",
		"--disk-inodes: 9 files do not fit into 8":      "the server's --disk-inodes: 9 files do not fit into 8",
		`file "--memory \" --cpus": --workdir is there`: `file "--memory \" --cpus": the server's --workdir is there`,
		"--allow-host: a--memory -- --":                 "allow_hosts: a--memory -- --",
		`"`:                                             `"`, "": "", "-": "-", "x --": "x --",
	} {
		if got := inFields(what); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
}

// TestOfServer: what goes before the session's command goes before the server's.
func TestOfServer(t *testing.T) {
	session, args := []string{"-e", "A=b"}, []string{"-e", "A=b", "--artifacts", "none"}
	for hint, want := range map[string]string{
		"sudo sandglass session -e A=b":                 "sudo sandglass mcp -e A=b --artifacts none",
		"sudo sandglass run script.py   # why":          "sudo sandglass mcp -e A=b --artifacts none   # why",
		"x; sandglass run --cgroup-parent /y script.py": "x; sandglass mcp --cgroup-parent /y -e A=b --artifacts none",
		"--allow-degraded memory":                       "--allow-degraded memory",
	} {
		if got := ofServer(hint, session, args); got != want {
			t.Errorf("%s: %s, want %s", hint, got, want)
		}
	}
}
