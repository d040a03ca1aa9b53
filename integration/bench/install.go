package main

import (
	"fmt"
	"os"
	"os/exec"
)

// install adds what is missing, each by itself: a release of Debian's that lacks
// one of them has the others. What is not there afterwards is left out, with that
// reason.
func install() {
	if os.Geteuid() != 0 {
		return
	}
	for _, p := range []struct{ file, name string }{
		{"bwrap", "bubblewrap"}, {"crun", "crun"}, {"runc", "runc"}, {"podman", "podman"}, {"nsjail", "nsjail"}, {"isolate", "isolate"},
		{"gcc", "gcc"}, {"/usr/include/stdio.h", "libc6-dev"}, {"/usr/bin/python3", "python3"}, {"node", "nodejs"},
		{"/usr/lib/python3/dist-packages/numpy", "python3-numpy"},
	} {
		if _, err := os.Stat(p.file); err == nil {
			continue
		}
		if _, err := exec.LookPath(p.file); err == nil {
			continue
		}
		if exec.Command("apt-cache", "show", p.name).Run() != nil {
			fmt.Printf("apt has no package %s\n", p.name)
			continue
		}
		cmd := exec.Command("apt-get", "install", "-q", "-y", "--no-install-recommends", p.name)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "bench: apt-get install %s: %v\n%s", p.name, err, out)
		}
	}
}
