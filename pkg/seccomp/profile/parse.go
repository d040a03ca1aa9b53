package profile

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"sandglass/internal/refusal"
	"sandglass/pkg/seccomp/sysnum"
)

const maxSource = 1 << 20 // bytes of a JSON profile

// The JSON form. Pointers tell an absent key from a zero.
type (
	jsonProfile struct {
		DefaultAction   string      `json:"defaultAction"`
		DefaultErrnoRet *uint64     `json:"defaultErrnoRet"`
		Architectures   []string    `json:"architectures"`
		Syscalls        []jsonGroup `json:"syscalls"`
	}
	jsonGroup struct {
		Comment   string      `json:"comment"`
		Names     []string    `json:"names"`
		Action    string      `json:"action"`
		ErrnoRet  *uint64     `json:"errnoRet"`
		Args      []jsonArg   `json:"args"`
		Otherwise *jsonAction `json:"otherwise"`
	}
	jsonAction struct {
		Action   string  `json:"action"`
		ErrnoRet *uint64 `json:"errnoRet"`
	}
	jsonArg struct {
		Index    *uint   `json:"index"`
		Value    *uint64 `json:"value"`
		ValueTwo *uint64 `json:"valueTwo"`
		Op       string  `json:"op"`
	}
)

// Functions and not variables, which every start of the sandglass binary would pay
// for, in each sandbox twice.

func kinds() map[string]Kind {
	return map[string]Kind{
		"SCMP_ACT_ALLOW":        Allow,
		"SCMP_ACT_ERRNO":        Errno,
		"SCMP_ACT_KILL_PROCESS": KillProcess,
		"SCMP_ACT_LOG":          Log,
	}
}

func arches() map[string]string {
	return map[string]string{
		"SCMP_ARCH_X86_64":  "amd64",
		"SCMP_ARCH_AARCH64": "arm64",
	}
}

func operators() map[string]Op {
	return map[string]Op{
		"SCMP_CMP_NE":        NE,
		"SCMP_CMP_LT":        LT,
		"SCMP_CMP_LE":        LE,
		"SCMP_CMP_EQ":        EQ,
		"SCMP_CMP_GE":        GE,
		"SCMP_CMP_GT":        GT,
		"SCMP_CMP_MASKED_EQ": MaskedEQ,
	}
}

// Parse reads a JSON profile. Every error is a *refusal.Error that names the
// group, counted from 1, and the key.
func Parse(source []byte) (*Profile, error) {
	if len(source) > maxSource {
		return nil, refusal.Newf("profile: %d bytes, at most %d", len(source), maxSource)
	}
	if err := strictKeys(source); err != nil {
		return nil, err
	}
	var in jsonProfile
	dec := json.NewDecoder(bytes.NewReader(source))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return nil, refusal.Newf("profile: %v", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, refusal.Newf("profile: something follows the closing brace")
	}
	return build(&in)
}

func build(in *jsonProfile) (*Profile, error) {
	p := &Profile{}
	var err error
	if p.Default, err = action(in.DefaultAction, in.DefaultErrnoRet, "profile: default"); err != nil {
		return nil, err
	}
	if p.Default.Kind != Errno && p.Default.Kind != KillProcess {
		return nil, refusal.Newf("profile: defaultAction %s lets through what nobody thought of, use SCMP_ACT_ERRNO or SCMP_ACT_KILL_PROCESS", in.DefaultAction)
	}
	if len(in.Architectures) == 0 {
		return nil, refusal.Newf("profile: architectures is missing or empty")
	}
	for _, name := range in.Architectures {
		arch, ok := arches()[name]
		if !ok {
			return nil, refusal.Newf("profile: architecture %q is not supported, use SCMP_ARCH_X86_64 or SCMP_ARCH_AARCH64", name)
		}
		if slices.Contains(p.Arches, arch) {
			return nil, refusal.Newf("profile: architecture %s twice", name)
		}
		p.Arches = append(p.Arches, arch)
	}
	for i, g := range in.Syscalls {
		if err := p.addGroup(i+1, g); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// action reads an action and its errno. where begins the error message.
func action(name string, errno *uint64, where string) (Action, error) {
	kind, ok := kinds()[name]
	switch {
	case !ok:
		return Action{}, refusal.Newf("%s: action %q is not supported", where, name)
	case kind == Errno && errno == nil:
		return Action{}, refusal.Newf("%s: %s without an errno", where, name)
	case kind == Errno && *errno > 4095: // 0 answers success without doing anything
		return Action{}, refusal.Newf("%s: errno %d is not within 0 and 4095", where, *errno)
	case kind == Errno:
		return Action{Kind: Errno, Errno: uint16(*errno)}, nil
	case errno != nil:
		return Action{}, refusal.Newf("%s: an errno with %s", where, name)
	}
	return Action{Kind: kind}, nil
}

// known says whether any of the profile's architectures has the call.
func (p *Profile) known(name string) bool {
	return slices.ContainsFunc(p.Arches, func(arch string) bool {
		_, ok := sysnum.Number(arch, name)
		return ok
	})
}
