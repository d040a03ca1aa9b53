// Package oci says a plan in the words of the OCI runtime specification, so that
// another runtime can be given the same policy, and an auditor can compare. It
// starts nothing. What the format has no words for is listed in Notes.
//
// The types are those parts of the specification's config.json that are used
// here, under its own names; it is linked into the sandglass binary, so it needs
// nothing but the standard library.
package oci

import "encoding/json"

// Version of the specification, the first with all that is said here.
const Version = "1.2.0"

// Config is config.json.
type Config struct {
	OCIVersion  string            `json:"ociVersion"`
	Process     Process           `json:"process"`
	Root        Root              `json:"root"`
	Hostname    string            `json:"hostname"`
	Domainname  string            `json:"domainname"`
	Mounts      []Mount           `json:"mounts"`
	Linux       Linux             `json:"linux"`
	Annotations map[string]string `json:"annotations"`
}

// Process is the program.
type Process struct {
	Terminal        bool         `json:"terminal"`
	User            User         `json:"user"`
	Args            []string     `json:"args"`
	Env             []string     `json:"env"`
	Cwd             string       `json:"cwd"`
	Capabilities    Capabilities `json:"capabilities"`
	Rlimits         []Rlimit     `json:"rlimits"`
	NoNewPrivileges bool         `json:"noNewPrivileges"`
}

// User is the identity inside.
type User struct {
	UID   uint32 `json:"uid"`
	GID   uint32 `json:"gid"`
	Umask uint32 `json:"umask"`
}

// Capabilities are the five sets; all stay empty, and are said to be.
type Capabilities struct {
	Bounding    []string `json:"bounding"`
	Effective   []string `json:"effective"`
	Inheritable []string `json:"inheritable"`
	Permitted   []string `json:"permitted"`
	Ambient     []string `json:"ambient"`
}

// Rlimit is one limit of setrlimit(2).
type Rlimit struct {
	Type string `json:"type"`
	Hard uint64 `json:"hard"`
	Soft uint64 `json:"soft"`
}

// Root is the bundle's directory that becomes "/".
type Root struct {
	Path     string `json:"path"`
	Readonly bool   `json:"readonly"`
}

// Mount is one entry of mounts, in order.
type Mount struct {
	Destination string   `json:"destination"`
	Type        string   `json:"type"`
	Source      string   `json:"source"`
	Options     []string `json:"options"`
	// The mappings turn the owner of the files into the program's user.
	UIDMappings []IDMapping `json:"uidMappings,omitempty"`
	GIDMappings []IDMapping `json:"gidMappings,omitempty"`
}

// IDMapping is a line of uid_map.
type IDMapping struct {
	ContainerID uint32 `json:"containerID"`
	HostID      uint32 `json:"hostID"`
	Size        uint32 `json:"size"`
}

// Linux is what only Linux has.
type Linux struct {
	UIDMappings       []IDMapping `json:"uidMappings"`
	GIDMappings       []IDMapping `json:"gidMappings"`
	Namespaces        []Namespace `json:"namespaces"`
	Resources         Resources   `json:"resources"`
	RootfsPropagation string      `json:"rootfsPropagation"`
	MaskedPaths       []string    `json:"maskedPaths"`
	ReadonlyPaths     []string    `json:"readonlyPaths"`
	Seccomp           Seccomp     `json:"seccomp"`
}

// Namespace is a new one of that type.
type Namespace struct {
	Type string `json:"type"`
}

// Resources are the cgroup's limits.
type Resources struct {
	Devices []Device `json:"devices"`
	Memory  Memory   `json:"memory"`
	CPU     CPU      `json:"cpu"`
	Pids    Pids     `json:"pids"`
	BlockIO *BlockIO `json:"blockIO,omitempty"`
}

// Device is a rule of the devices controller.
type Device struct {
	Allow  bool   `json:"allow"`
	Access string `json:"access"`
}

// Memory is the limit in bytes; Swap is memory and swap together.
type Memory struct {
	Limit int64 `json:"limit"`
	Swap  int64 `json:"swap"`
}

// CPU is the quota in microseconds for each period.
type CPU struct {
	Quota  int64 `json:"quota"`
	Period int64 `json:"period"`
}

// Pids bounds processes and threads.
type Pids struct {
	Limit int64 `json:"limit"`
}

// BlockIO bounds block devices.
type BlockIO struct {
	ReadBPS   []Throttle `json:"throttleReadBpsDevice,omitempty"`
	WriteBPS  []Throttle `json:"throttleWriteBpsDevice,omitempty"`
	ReadIOPS  []Throttle `json:"throttleReadIOPSDevice,omitempty"`
	WriteIOPS []Throttle `json:"throttleWriteIOPSDevice,omitempty"`
}

// Throttle is the rate of one device.
type Throttle struct {
	Major int64  `json:"major"`
	Minor int64  `json:"minor"`
	Rate  uint64 `json:"rate"`
}

// Seccomp is the profile.
type Seccomp struct {
	DefaultAction   string   `json:"defaultAction"`
	DefaultErrnoRet *uint    `json:"defaultErrnoRet,omitempty"`
	Architectures   []string `json:"architectures"`
	Syscalls        []Group  `json:"syscalls"`

	refused []string // calls whose rules are too many to say, and which are not allowed
}

// Group is one rule for several calls.
type Group struct {
	Names    []string `json:"names"`
	Action   string   `json:"action"`
	ErrnoRet *uint    `json:"errnoRet,omitempty"`
	Args     []Arg    `json:"args,omitempty"`
}

// Arg is one condition of a rule.
type Arg struct {
	Index    uint   `json:"index"`
	Value    uint64 `json:"value"`
	ValueTwo uint64 `json:"valueTwo,omitempty"`
	Op       string `json:"op"`
}

// JSON is the stable form: the same plan gives the same bytes.
func (c *Config) JSON() ([]byte, error) {
	b, err := json.MarshalIndent(c, "", "  ")
	return append(b, '\n'), err
}
