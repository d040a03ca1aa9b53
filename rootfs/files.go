// Package etcfiles holds the synthetic files of the sandbox's /etc.
package etcfiles

import _ "embed"

//go:embed etc/hostname
var Hostname string

//go:embed etc/hosts
var Hosts string

// Nsswitch knows files alone: no lookup ever leaves the sandbox, and none waits.
//
//go:embed etc/nsswitch.conf
var Nsswitch string

//go:embed etc/resolv.conf
var Resolv string

// NsswitchHosts and ResolvHosts are those of a run with a list of hosts. Its
// resolver answers when the host's has, at most five seconds later.
//
//go:embed etc/nsswitch-hosts.conf
var NsswitchHosts string

//go:embed etc/resolv-hosts.conf
var ResolvHosts string
