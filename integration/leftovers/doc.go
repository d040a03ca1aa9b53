// Package leftovers ends runs in every way there is and looks for what is left
// on the host afterwards: processes, cgroups, mounts, files, IPC objects,
// network devices. It does so in a host of its own, see testkit.Quiet.
package leftovers
