// Package leftovers ends runs in every way there is and looks for what is left
// on the host afterwards: processes, cgroups, mounts, files, IPC objects,
// network devices. It does so in a host of its own, see testkit.Quiet.
//
// A tracer makes single system calls fail, or kills the supervisor at them.
// SANDGLASS_FAULTS=1 does it for every call and five errors, which takes long;
// without it the first and the last of each kind fail with one.
package leftovers
