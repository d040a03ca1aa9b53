package policy

import (
	"strings"
	"testing"
)

// refusedLines are command lines that are refused; what is said to each is in
// testdata/refusals.golden. A line without "--" gets "-- true".
const refusedLines = `
--no-such
--memry 64m
--time 5
--mem 64m
-memory 64m
-rm
-z
-iz
--mem=1
--
host
./root
./pipe/x.py
absent.py
./absent.py
./root/bin
./root --
host --
python:3.12 python x.py
ubuntu ls -l
alpine
-v ''
-v :/x
-v /srv/d:
-v /srv/d:/usr
-v /srv/d:/lib64
--result -
--result /dev/stdout
--result ''
--memory
-m
--memory 0
--memory -1
--memory ''
--memory 5m
--memory 12x
--memory 1e3m
--memory 1.
--memory 2000t
--memory 99999999999999999999g
--memory 64m --memory 128m
--memory 64m -m 128m
--memory-swap -1
--memory-swap 512m
--memory 1g --memory-swap 512m
--timeout 0
--timeout -5s
--timeout +5s
--timeout 1d
--timeout 31h5
--timeout 721h
--timeout 1us
--timeout 5 --timeout 6
--cpu-time forever
--cpus 0
--cpus 0.001
--cpus 500m
--cpus 5000
--cpus -1
--pids-limit 0
--pids-limit -1
--pids-limit 1.5
--pids-limit 99999999999
--pids-limit 5000000
--disk 1k
--disk-inodes 1
--output-limit 0
--json --output-limit 1g
--on-output-limit ignore
--open-files 3
--open-files 2m
--ulimit nofile
--ulimit nofile=10:20
--ulimit nofile=20 --open-files 30
--ulimit core=1
--ulimit core=-1
--ulimit nproc=10
--ulimit cpu=1
--ulimit as=1g
--ulimit fsize=10
--ulimit fsize=4k --ulimit fsize=8k
--ulimit stack=1k
--ulimit nice=1
--allow-host ''
--allow-host example.org:
--allow-host example.org:0
--allow-host example.org,example.net
--allow-host *
--allow-host *.
--allow-host 0.0.0.0/0
--allow-host 10.1.2.3/8
--allow-host https://example.org/
--allow-host localhost:8080
--allow-host example.org --network none
--allow-host example.org --tls-sni-check no
--allow-host example.org --net-connections 0
--allow-host example.org --net-rate 1
--allow-host example.org --net-rate 0
--cpu-time 0
--allow-host example.org --net-idle 1ms
--tls-sni-check off
--net-upload 1m
--device-read-bps /dev/vda
--device-read-bps vda:1m
--device-read-bps /dev/../etc:1m
--device-read-bps /dev/vda:0
--device-read-iops /dev/vda:fast
--device-read-bps /dev/vda:1m --device-read-bps /dev/vda:2m
-c
-c '' --lang python
-c x
-c x --lang python -
-c x -c y
-i - --lang python
-
--lang python
--lang ../python ./tool
--image alpine
--image /
--image /etc
--image ''
-e ''
-e =x
-e ABSENT
-e 'A B'
--env-file absent
--env-file evil.env
--env-file other.env -v /w:/w:rw
--env-file /w/other.env -v /w:/w:rw
--env-file pipe
--env-file bad1
--env-file bad2
--env-file bad3
--env-file big
--env-file ''
-w work
-w /a/../b
-w /
-w ''
-u alice
-u 1:alice
-u -1
-u +1
-u 4294967295
-u 1:
-u ''
-i=maybe
--venv /root/v
--venv ''
-v /data
-v data:/d
-v /a:/b:ro:x
-v /a:/b:rx
-v /a:/b:ro,rw
-v /a:/b:rshared
-v /a:/b:z
-v /a:b
-v /a:
-v /a:/
-v /a:/b/
-v /a:/proc
-v /a:/proc/sys
-v /a:/dev/shm
-v /a:/sys
-v /a:/code/x
-v /a:/out
-v /a:/tmp
-v /a:/etc
-v /a:/etc/passwd
-v /a:/d -v /b:/d
-v /a:/d/e -v /b:/d
-v /a:/d:rw -v /b:/d/e
-v /:/host
-v /etc:/e
-v /etc/ssl/certs:/e
-v /var:/e
-v /var/run/docker.sock:/s
-v /home/ann:/h
-v /home/ann/.ssh/id_rsa:/k
-v /usr/local:/u:rw
-v /home/ann/bin:/b:rw
-v '/home/ann/.config/a b':/c
--mount type=bind,source=/a
--mount type=bind,target=/a
--mount source=/a,target=/b
--mount type=volume,source=a,target=/b
--mount type=tmpfs,target=/b
--mount type=bind,source=/a,target=/b,readonly=2
--mount type=bind,source=/a,src=/b,target=/c
--mount type=bind,source=/a,target=/b,bind-propagation=shared
--mount type=bind,source=/a,target=/b,consistency=cached
--mount 'type=bind,"source=/a,b",target=/b'
--out /etc/cron.d
--out /usr/local/bin
--out /tmp
--out d/o -v /w/d:/d:rw
--out d -v /w/d:/d:rw
--result d/r.json -v /w/d:/d:rw
--seccomp d/f.bpf -v .:/d:rw
--force
--allow-mount ''
--network host
--network bridge
--network container:x
--network mynet
--network none --network host
--net host
--network ''
--network none:x
--seccomp unconfined
--seccomp p.json
--seccomp /a/filter
--seccomp -x
--seccomp ''
--seccomp a --security-opt seccomp=b
--security-opt seccomp=unconfined
--security-opt seccomp
--security-opt no-new-privileges:false
--security-opt apparmor=unconfined
--security-opt label=disable
--security-opt systempaths=unconfined
--security-opt writable-cgroups=true
--security-opt what
--proc full
--cgroup-parent a
--cgroup-parent /a/../b
--allow-degraded everything
--allow-degraded memory,
--result ''
--result-fd 1
--result-fd -1
--result-fd x
--json=maybe
--rm=false
--read-only=false
--init=false
--init=perhaps
--cap-drop NO_SUCH
--cap-drop ''
--tmpfs /var
--tmpfs /tmp:size=1g
--tmpfs /tmp:noexec
--hostname box
--pid host
--ipc host
--ipc shareable
--uts host
--userns host
--cgroupns host
--pull always
--restart always
--memory-swappiness 60
--privileged=maybe
-p 80:80
-d`

func TestRefusals(t *testing.T) {
	lines := strings.Split(strings.TrimPrefix(refusedLines, "\n"), "\n")
	for _, f := range RunFlags() {
		if f.Refused != "" && f.Bool {
			lines = append(lines, "--"+f.Name)
		} else if f.Refused != "" {
			lines = append(lines, "--"+f.Name+" x", "--"+f.Name+"=x")
		}
	}
	var b strings.Builder
	for _, line := range lines {
		args := words(line)
		if strings.HasPrefix(line, "-") && line != "--" && line != "-" && line != "-m" && line != "-c" &&
			line != "--memory" && !strings.Contains(line, " ./") && !strings.Contains(line, " - ") && !strings.HasSuffix(line, " -") {
			if !strings.HasPrefix(line, "-c") {
				args = append(args, "--", "true")
			}
		}
		h := testHost()
		if line == "-" {
			args = append(args, "-q")
		}
		p, err := h.Parse("run", args)
		if err == nil {
			t.Errorf("%s: accepted as %+v", line, p.Spec)
			continue
		}
		text := shown(t, err)
		checkText(t, line, text)
		b.WriteString("$ " + line + "\n" + text + "\n")
	}
	golden(t, "refusals.golden", b.String())
}

// checkText keeps the house rules of messages.
func checkText(t *testing.T, line, text string) {
	t.Helper()
	for l := range strings.Lines(text) {
		l = strings.TrimSuffix(l, "\n")
		if strings.HasPrefix(l, "error") && strings.HasSuffix(l, ".") {
			t.Errorf("%s: full stop: %s", line, l)
		}
		if len(l) > 200 || strings.ContainsFunc(l, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			t.Errorf("%s: long or with a control character: %q", line, l)
		}
	}
}

// What the caller gives cannot steer the terminal that shows the refusal.
func TestRefusalsQuoteHostileText(t *testing.T) {
	evil := "\x1b]0;x\x07\u202e\n" + strings.Repeat("A", 500)
	for _, args := range [][]string{
		{"--" + evil}, {"-" + evil}, {"--memory", evil}, {"--network", evil}, {"-v", evil}, {"-v", evil + ":/b"}, {"-v", "/a:" + evil},
		{"-v", "/a:/b:" + evil}, {"--mount", evil}, {"--mount", "type=" + evil}, {"-u", evil}, {"--user", "1:" + evil}, {"-e", evil},
		{"--env-file", evil}, {"--image", evil}, {"--image", "/etc/" + evil}, {"--lang", evil, "./tool"}, {"-w", evil}, {"--proc", evil},
		{"--seccomp", evil}, {"--seccomp", evil + ".json"}, {"--security-opt", evil}, {"--ulimit", evil}, {"--ulimit", "nofile=1:" + evil},
		{"--ulimit", evil + "=1"}, {"--tmpfs", evil}, {"--cap-drop", evil}, {"--allow-degraded", evil}, {"--result-fd", evil},
		{"--device-read-bps", evil + ":1"}, {"--cgroup-parent", evil}, {"--out", "/etc/" + evil}, {"-v", "/etc/" + evil + ":/e"},
		{"./" + evil + ".py"}, {"--cpus", evil}, {"--timeout", evil}, {"--pids-limit", evil}, {"--on-output-limit", evil},
		{"--allow-mount", evil, "--", "true"}, {"--venv", evil, "--", "true"}, {"--json=" + evil}, {"--hostname", evil},
		{"--privileged=" + evil}, {"-c", evil, "--lang", evil},
	} {
		_, err := testHost().Parse("run", append(args, "--", "true"))
		if err == nil {
			t.Errorf("%q: accepted", args)
			continue
		}
		text := shown(t, err)
		for l := range strings.Lines(text) {
			l = strings.TrimSuffix(l, "\n")
			if len(l) > 300 || strings.ContainsFunc(l, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x202e }) {
				t.Errorf("%q: reaches the terminal: %q", args[0], l)
			}
		}
	}
}
