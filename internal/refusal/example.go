package refusal

import "strings"

// Command is a command line as hints have it: "sandglass Verb", flags that a hint
// adds, and the rest.
type Command struct{ Verb, Rest string }

// Comment goes between what is to be pasted of a hint and why.
const Comment = "   # "

// Example stands in hints for a whole command line, which only who prints them knows.
const Example = "sandglass run script.py"

var example = Command{"run", "script.py"}

// Called is how a verb was called, without its arguments where they are long.
func Called(verb string, args ...string) Command {
	rest := strings.TrimPrefix(ShellLine("sandglass", args...), "sandglass")
	return Command{verb, strings.TrimPrefix(rest, " ")}
}

// Own puts a command line in the place of the example in a hint that goes before one,
// so that it can be pasted as it is.
func Own(hint string, c Command) string { return Instead(hint, example, c) }

// Instead does so for any other line. Where that is not the end of what is pasted it
// stays: inside other quotes the new one would mean something else.
func Instead(hint string, old, by Command) string {
	command, comment, has := strings.Cut(hint, Comment)
	begin := " sandglass " + old.Verb
	i := strings.LastIndex(command, begin)
	if i < 0 {
		return hint
	}
	flags, ok := strings.CutSuffix(command[i+len(begin):], old.rest())
	if !ok || flags != "" && flags[0] != ' ' {
		return hint
	}
	line := command[:i] + " sandglass " + by.Verb + flags + by.rest()
	if has {
		line += Comment + comment
	}
	return line
}

func (c Command) rest() string {
	if c.Rest == "" {
		return ""
	}
	return " " + c.Rest
}
