package main

import (
	"fmt"
	"os"

	"sandglass/internal/refusal"
)

// command is one verb of the command line.
type command struct {
	name, help string
	run        func(args []string) int
}

func commands() []command {
	return []command{
		{"run", "one program in one fresh sandbox", runCommand},
		{"check", "prove the controls on this host by doing the forbidden things", checkCommand},
		{"plan", "print what a run with these flags would do", planCommand},
		{"version", "print the version", versionCommand},
	}
}

func dispatch(args []string) int {
	if len(args) == 0 {
		usage(os.Stderr)
		return refusal.ExitRefused
	}
	for _, c := range commands() {
		if c.name == args[0] {
			return c.run(args[1:])
		}
	}
	switch args[0] {
	case "help", "-h", "--help":
		usage(os.Stdout)
		return 0
	}
	return fail(refusal.Newf("unknown command %q", args[0]).
		Hint("sandglass run -- %s   # to run it in a sandbox", args[0]).
		Hint("sandglass --help"))
}

func usage(f *os.File) {
	fmt.Fprintln(f, "usage: sandglass COMMAND [FLAGS] …")
	fmt.Fprintln(f)
	for _, c := range commands() {
		fmt.Fprintf(f, "  %-10s %s\n", c.name, c.help)
	}
	fmt.Fprintln(f)
	fmt.Fprintln(f, "  sandglass run script.py")
	fmt.Fprintln(f, "  sandglass COMMAND --help   # the flags of a command")
}
