// Package profile reads seccomp profiles in the JSON form that OCI runtimes and
// Docker use, strictly, and says what a profile means. It compiles nothing:
// Decide is the meaning against which compiled filters are tested.
//
// The form is that of the OCI runtime specification with these differences:
//
//   - A key, name, action, operator or architecture that is not known is an
//     error, and so is anything said twice.
//   - "comment" is allowed in each group, as in Docker's profiles.
//   - "otherwise" in a group with "args" is what becomes of a call that none of
//     its groups match; without it that is the default action. Runtimes that do
//     not know the key use the default action too, which refuses.
//   - Two groups with different actions that could both match one call are an
//     error: the form does not say which of them wins.
//   - The default action refuses. An allow-list is the only kind of profile.
package profile

import "fmt"

// Kind is what a filter does with a call.
type Kind uint8

// The kinds of action. Log lets the call through and tells the audit log.
const (
	Allow Kind = iota + 1
	Errno
	KillProcess
	Log
)

// Action is a Kind, and for Errno the number that the call fails with.
type Action struct {
	Kind  Kind
	Errno uint16 // 1 to 4095
}

// Return is the action as a filter's return value (linux/seccomp.h).
func (a Action) Return() uint32 {
	switch a.Kind {
	case Allow:
		return 0x7fff0000
	case Log:
		return 0x7ffc0000
	case Errno:
		return 0x00050000 | uint32(a.Errno)
	}
	return 0x80000000 // KILL_PROCESS
}

func (a Action) String() string {
	switch a.Kind {
	case Allow:
		return "allow"
	case Log:
		return "log"
	case Errno:
		return fmt.Sprintf("errno %d", a.Errno)
	}
	return "kill_process"
}

// Op compares an argument with a value, as unsigned 64-bit numbers.
type Op uint8

// The operators. MaskedEQ is argument & Value == ValueTwo.
const (
	NE Op = iota + 1
	LT
	LE
	EQ
	GE
	GT
	MaskedEQ
)

// Arg is one condition on one argument of a call.
type Arg struct {
	Index    uint // 0 to 5
	Op       Op
	Value    uint64
	ValueTwo uint64 // MaskedEQ only
}

// Rule is an action for the calls that satisfy every one of Args; without Args
// for all.
type Rule struct {
	Args   []Arg
	Action Action
}

// Call is all that the profile says of one system call.
type Call struct {
	Name      string
	Rules     []Rule  // one without Args, or any number with Args
	Otherwise *Action // when none of Rules matches; nil is the default action
}

// Profile is a read and checked profile.
type Profile struct {
	Default Action
	Arches  []string // Go's names: amd64, arm64
	Calls   []*Call  // in the order of the file
}

// Call finds what is said of a name, nil if nothing is.
func (p *Profile) Call(name string) *Call {
	for _, c := range p.Calls {
		if c.Name == name {
			return c
		}
	}
	return nil
}
