package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/verbs"
)

// command is one verb of the command line; verbs.All has the words about it.
type command struct {
	name string
	run  func(args []string) int
}

func commands() []command {
	return []command{
		{"run", runCommand},
		{"session", sessionCommand},
		{"mcp", mcpCommand},
		{"check", checkCommand},
		{"doctor", doctorCommand},
		{"plan", planCommand},
		{"profile", profileCommand},
		{"image", imageCommand},
		{"sweep", sweepCommand},
		{"version", versionCommand},
	}
}

func dispatch(args []string) int {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, verbs.Usage())
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
			Hint("sandglass run %s", runLine(args)).Hint("sandglass run --help").Hint("sandglass --help"))
	}
	return fail(notACommand(args))
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

// runLine is a run's line, whose word run was forgotten or came too late.
func runLine(args []string) string {
	if i := slices.Index(args, "run"); i > 0 && !slices.Contains(args[:i], "--") {
		args = slices.Delete(slices.Clone(args), i, i+1)
	}
	return refusal.ShellLine(args[0], args[1:]...)
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
		return emit(verbs.Usage())
	}
	if verbs.Find(args[0]) == nil {
		return fail(refusal.Newf("help: unknown command %q", args[0]).Hint("sandglass --help"))
	}
	return emit(usage(args[0]))
}

// usage is the help text of one of the commands.
func usage(name string) string { return verbs.Find(name).Usage() }
