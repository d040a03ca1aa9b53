package cli

import (
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/policy"
)

// Every flag of docker run that can only weaken the sandbox is refused by its
// name with the reason, whatever its value and wherever it stands.
func TestDockerFlagsRefused(t *testing.T) {
	who := testkit.AsUser(t)
	n := 0
	for _, f := range policy.RunFlags() {
		if f.Refused == "" {
			continue
		}
		n++
		shown := "--" + f.Name
		args := []string{shown + "=x"}
		if f.Bool {
			args = []string{shown}
		}
		out := testkit.Run(t, testkit.Opts{Who: who, Verb: "run"}, append(args, "host", "echo", "ran")...)
		what, _ := complaint(t, out)
		if want := shown + " is refused: " + f.Refused; out.Exit != 125 || what != want {
			t.Errorf("exit %d, %s, want %s", out.Exit, what, want)
		}
	}
	if n < 40 {
		t.Errorf("only %d refused flags in the table", n)
	}
}

// Values that weaken, by name.
func TestDockerValuesRefused(t *testing.T) {
	who := testkit.AsUser(t)
	for args, want := range map[string]string{
		"--network host":                         `--network: "host" is refused: it lets the program reach every service of this machine and its neighbours`,
		"--net=bridge":                           `--net: "bridge" is refused: it lets the program reach the internet and the local network`,
		"--network container:x":                  `--network: "container:x" is refused: it joins a network that something else runs in`,
		"--pid host":                             `--pid: "host" is refused: it shows the program every process of the host`,
		"--ipc host":                             `--ipc: "host" is refused: it shares memory segments and queues with the host`,
		"--uts host":                             `--uts: "host" is refused: it shares the host's name`,
		"--userns host":                          `--userns: "host" is refused: ids inside would be the host's own`,
		"--cgroupns host":                        `--cgroupns: "host" is refused: it shows the program the host's cgroup tree`,
		"--read-only=false":                      `--read-only: cannot be turned off: the root is read-only`,
		"--rm=false":                             `--rm: cannot be turned off: a sandbox is thrown away after its run`,
		"--security-opt no-new-privileges=false": `--security-opt: "no-new-privileges=false" is refused: set-uid programs would gain privileges`,
		"--security-opt apparmor=unconfined":     `--security-opt: "apparmor=unconfined" is refused: the caller's AppArmor profile stays as it is`,
		"--security-opt systempaths=unconfined":  `--security-opt: "systempaths=unconfined" is refused: it uncovers the masked paths of /proc`,
		"-v /tmp/x:/x:shared":                    `-v: shared is refused: mounts would travel between the host and the sandbox`,
		"-v data:/x":                             `-v: "data" is the name of a volume, and there are none here: only paths`,
		"--memory-swap -1":                       `--memory-swap: swap is always off, -1 would make it unlimited`,
		"-v /var/run/docker.sock:/d":             `--volume: host path "/var/run/docker.sock" is refused: it holds the sockets of the host's services`,
		"-it":                                    `-it: stdin is not a terminal`,
	} {
		out := testkit.Run(t, testkit.Opts{Who: who, Verb: "run"}, append(strings.Fields(args), "host", "echo", "ran")...)
		if what, _ := complaint(t, out); out.Exit != 125 || what != want {
			t.Errorf("%s: exit %d, %s\nwant %s", args, out.Exit, what, want)
		}
	}
}

// Docker's own words for what is so anyway are taken.
func TestDockerFlagsAccepted(t *testing.T) {
	who := testkit.AsUser(t)
	args := strings.Fields("--rm --init --network none --net=none --read-only --cap-drop ALL --cap-drop=net_raw --security-opt no-new-privileges" +
		" --security-opt=no-new-privileges:true --pid private --ipc none --uts private --userns private --cgroupns private --pull never --restart no" +
		" --memory-swappiness 0 -m 256m --memory-swap 256m --tmpfs /tmp --hostname sandglass --privileged=false -u 65534:65534 -w /tmp -e A=b -i")
	out := testkit.Run(t, testkit.Opts{Who: who}, append(args, "host", "sh", "-c", "echo $A $PWD; id -u; hostname")...)
	if want := "b /tmp\n65534\nsandglass\n"; out.Exit != 0 || out.Stdout != want {
		t.Errorf("exit %d, stdout %q, stderr %q, want %q", out.Exit, out.Stdout, out.Stderr, want)
	}
}
