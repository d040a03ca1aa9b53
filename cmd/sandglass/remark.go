package main

import (
	"fmt"
	"os"
	"sort"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/policy"
	"sandglass/pkg/result"
	"sandglass/pkg/sandbox"
)

// remark tells a person what a bare exit code does not.
func remark(p *policy.Parsed, res *sandbox.Result) {
	if p.Quiet || !personal(os.Stderr) {
		return
	}
	l := &p.Spec.Limits
	switch res.Outcome {
	case result.Timeout:
		note("stopped: the time limit of %v was reached", l.Timeout)
	case result.CPUTime:
		note("stopped: the CPU time limit of %v was reached", l.CPUTime)
	case result.Memory:
		note("stopped: out of memory, the limit is %s", policy.FormatSize(l.Memory))
	case result.Output:
		note("stopped: the output limit of %s was reached", policy.FormatSize(l.Output))
	case result.Exited:
		remarkOnExit(p, res)
	}
	if name := p.ImageArgument(); name != "" {
		note("%s is an argument of the code, which ran in the host's view: --image %s runs it in the image", refusal.Word(name), refusal.Shell(name))
	}
	if len(res.Unmapped) > 0 && res.ExitCode != 0 {
		note("the file system of %s cannot map ids: the program could read there only what everybody may; chmod -R a+rX lets it", refusal.Word(res.Unmapped[0]))
	}
	if cut := truncated(res); cut != "" && res.Outcome != result.Output {
		note("%s cut at %s, --output-limit", cut, policy.FormatSize(l.Output))
	}
	remarkOnNetwork(p, res.Network, res.ExitCode != 0)
	if left := leftOut(res.Artifacts); left != "" {
		note("%s", left)
	}
}

func truncated(res *sandbox.Result) string {
	switch out, err := res.Stdout.Truncated, res.Stderr.Truncated; {
	case out && err:
		return "stdout and stderr were"
	case out:
		return "stdout was"
	case err:
		return "stderr was"
	}
	return ""
}

// leftOut counts what is no file or directory. What a limit left out is an
// error and not a note.
func leftOut(list []result.Artifact) string {
	kinds, n := map[string]int{}, 0
	for _, a := range list {
		if a.Skipped != "" && a.Type != "file" && a.Type != "dir" {
			kinds[a.Type]++
			n++
		}
	}
	if n == 0 {
		return ""
	}
	var parts []string
	for kind, count := range kinds {
		parts = append(parts, fmt.Sprintf("%d %s", count, kind))
	}
	sort.Strings(parts)
	what := "entries of /out were"
	if n == 1 {
		what = "entry of /out was"
	}
	return fmt.Sprintf("%d %s not collected: %s", n, what, strings.Join(parts, ", "))
}

// remarkOnExit helps who is used to docker's empty container least: a script
// that an interpreter was told to run is a file of the caller's directory, and
// that is not inside.
func remarkOnExit(p *policy.Parsed, res *sandbox.Result) {
	argv := p.Spec.Program.Command
	if res.ExitCode == 0 || len(argv) < 2 || len(p.Spec.Mounts) > 0 {
		return
	}
	name := argv[1]
	if strings.HasPrefix(name, "/") || strings.HasPrefix(name, "-") || !printable(name) {
		return
	}
	if st, err := os.Stat(name); err != nil || !st.Mode().IsRegular() {
		return
	}
	note("%s is not inside; one of these brings it: %s %s, or -v \"$PWD:/work\"", name, p.Spec.Again(false), refusal.ShellLine(name, argv[2:]...))
}

// printable is a word that needs no quotes and moves no cursor.
func printable(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789./_-+=:,@%") == ""
}
