package main

import (
	"fmt"
	"os"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/policy"
)

// command is one verb of the command line.
type command struct {
	name, help string
	usage      func() string // what --help prints
	run        func(args []string) int
}

func commands() []command {
	return []command{
		{"run", "one program in one fresh sandbox", runUsage, runCommand},
		{"check", "prove the controls on this host by doing the forbidden things", func() string { return checkUsage }, checkCommand},
		{"doctor", "say what this host gives a sandbox, what it lacks, and the remedy", func() string { return doctorUsage }, doctorCommand},
		{"plan", "print what a run with these flags would do", func() string { return planUsage }, planCommand},
		{"profile", "list, show, compare, compile and learn system call profiles", func() string { return profileUsage }, profileCommand},
		{"sweep", "remove what runs whose supervisor was killed have left", func() string { return sweepUsage }, sweepCommand},
		{"version", "print the version", func() string { return versionUsage }, versionCommand},
	}
}

func dispatch(args []string) int {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage())
		return refusal.ExitRefused
	}
	if c := find(args[0]); c != nil {
		return c.run(args[1:])
	}
	switch args[0] {
	case "help", "-h", "--help":
		return help(args[1:])
	case "-v", "-V", "--version":
		return versionCommand(args[1:])
	}
	if strings.HasPrefix(args[0], "-") {
		return fail(refusal.Newf("unknown flag %q: the flags of a run follow the word run", args[0]).
			Hint("sandglass run --help").Hint("sandglass --help"))
	}
	return fail(refusal.Newf("unknown command %q", args[0]).
		Hint("sandglass run -- %s   # to run it in a sandbox", shown(args)).
		Hint("sandglass --help"))
}

// onlyJSON reads the arguments of a command that takes nothing but --json.
func onlyJSON(command string, args []string) (asJSON, help bool, err error) {
	for _, a := range args {
		switch a {
		case "--json":
			asJSON = true
		case "-h", "--help":
			return false, true, nil
		default:
			return false, false, refusal.Newf("%s: unknown argument %q", command, a).Hint("sandglass %s --help", command)
		}
	}
	return asJSON, false, nil
}

// shown is argv for a hint, as far as it needs no quotes.
func shown(argv []string) string {
	for _, w := range argv {
		if !printable(w) {
			return "COMMAND"
		}
	}
	return strings.Join(argv, " ")
}

func find(name string) *command {
	for _, c := range commands() {
		if c.name == name {
			return &c
		}
	}
	return nil
}

// help is "sandglass help" and "sandglass help COMMAND".
func help(args []string) int {
	if len(args) == 0 {
		return emit(usage())
	}
	c := find(args[0])
	if c == nil {
		return fail(refusal.Newf("help: unknown command %q", args[0]).Hint("sandglass --help"))
	}
	return emit(c.usage())
}

func runUsage() string {
	var b strings.Builder
	policy.Usage(&b) // a Builder takes everything
	return b.String()
}

func usage() string {
	var b strings.Builder
	b.WriteString("usage: sandglass COMMAND [FLAGS] [ARG...]\n\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "  %-10s %s\n", c.name, c.help)
	}
	b.WriteString("\n  sandglass run script.py\n  sandglass help COMMAND     # the flags of a command\n")
	return b.String()
}
