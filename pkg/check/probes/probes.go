// Package probes is what check runs inside its sandboxes: each probe does
// forbidden things and says how each of them went. It decides nothing; check,
// outside, does. The binary itself plays the probe, so that a check needs
// nothing of the host, neither an interpreter nor a shell.
package probes

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Name is the file name under which check hands the binary in, and Arg0 where
// the sandbox then has it.
const (
	Name = "sandglass-probe"
	Arg0 = "/code/" + Name
)

// Wanted says that this process is a probe. The probes eat memory, fork and
// flood, so a name alone must not start them: the executable really has to lie
// where a sandbox keeps its program.
func Wanted() bool {
	if len(os.Args) < 2 || os.Args[0] != Arg0 {
		return false
	}
	exe, err := os.Readlink("/proc/self/exe")
	return err == nil && exe == Arg0
}

// Main runs the probe that the arguments name and never returns.
func Main() {
	if !Do(os.Args[1], os.Args[2:]) {
		os.Exit(99)
	}
	os.Exit(0)
}

// Do runs one probe. It is false when there is none of that name.
func Do(name string, args []string) bool {
	probe, ok := probes()[name]
	if ok {
		probe(args)
	}
	return ok
}

func probes() map[string]func(args []string) {
	return map[string]func(args []string){
		"abstract":    abstract,
		"artifacts":   plantLinks,
		"calls":       calls,
		"cgroup":      cgroupFiles,
		"core":        dumpCore,
		"cpu":         burn,
		"daemons":     daemons,
		"descriptors": descriptors,
		"devices":     devices,
		"disk":        fillDisk,
		"environment": environment,
		"executable":  executable,
		"files":       files,
		"flood":       flood,
		"foreign":     foreign,
		"fork":        forkBomb,
		"hello":       func([]string) { say("hello", Done) },
		"hold":        func([]string) { hold() },
		"hostname":    hostname,
		"i386":        i386,
		"ids":         ids,
		"inodes":      fillInodes,
		"init":        initProcess,
		"ipc":         sysvIPC,
		"keyring":     keyring,
		"listed":      listedHost,
		"loop":        loop,
		"memory":      eatMemory,
		"neighbour":   neighbour,
		"network":     networkView,
		"processes":   processes,
		"readonly":    readOnly,
		"request":     request,
		"rlimits":     rlimits,
		"scratch":     fillMemory,
		"setid":       setID,
		"signals":     signals,
		"stay":        stay,
		"sysctl":      sysctl,
		"terminal":    terminal,
		"unlisted":    unlistedHosts,
		"userns":      userNamespace,
	}
}

// Done is the answer of an attempt that the kernel let through.
const Done = "done"

// say prints one answer. Both halves are quoted: neither can forge a line.
func say(key, value string) {
	line := strconv.Quote(key) + " " + strconv.Quote(value) + "\n"
	os.Stdout.WriteString(line)
}

// try says how an attempt went: Done, or the error's name, such as EPERM.
func try(key string, err error) bool {
	say(key, outcome(err))
	return err == nil
}

func outcome(err error) string {
	for e := err; e != nil; {
		if errno, ok := e.(unix.Errno); ok {
			if errno == 0 {
				return Done
			}
			return unix.ErrnoName(errno)
		}
		u, ok := e.(interface{ Unwrap() error })
		if !ok {
			return e.Error()
		}
		e = u.Unwrap()
	}
	return Done
}

// Answers are what a probe said, by key.
type Answers map[string]string

// Parse reads a probe's output. Lines that are no answers are left out.
func Parse(output []byte) Answers {
	a := Answers{}
	for line := range bytes.Lines(output) {
		text := string(bytes.TrimSuffix(line, []byte("\n")))
		key, err := strconv.QuotedPrefix(text)
		if err != nil || len(text) <= len(key) {
			continue
		}
		value, err := strconv.Unquote(text[len(key)+1:])
		if err != nil {
			continue
		}
		name, err := strconv.Unquote(key)
		if err == nil {
			a[name] = value
		}
	}
	return a
}
