package sandbox

import (
	"os"

	"sandglass/internal/refusal"

	"golang.org/x/sys/unix"
)

// atSecure is AT_SECURE of getauxval(3).
const atSecure = 23

// CheckCaller refuses a process that a run could not go well for: one whose
// limits leave too little, and one that has more rights than the user who started
// it: a set-uid or set-gid program, or one with file capabilities. It would
// mount, read and write with those rights whatever a user names, for that user
// (all of firejail's root exploits began like that, and CVE-2020-5291). Run and
// Explain call it themselves; a command calls it before it opens anything.
func CheckCaller() error {
	switch {
	case os.Getuid() != os.Geteuid() || os.Getgid() != os.Getegid():
		return borrowed("set-uid or set-gid", "chmod u-s,g-s -- ")
	case os.Getuid() != 0 && secureExec() && hasCapabilities():
		return borrowed("with file capabilities", "setcap -r ")
	}
	return room()
}

func borrowed(how, remedy string) error {
	e := refusal.Newf("this program is installed %s: it would read, mount and write what its caller may not", how)
	if path, err := os.Executable(); err == nil {
		e.Hint("%s", remedy+refusal.Shell(path))
	}
	return e
}

// secureExec says that the kernel gave this process rights by its execve. A
// security module can say so too, so it does not count alone.
func secureExec() bool {
	auxv, err := unix.Auxv()
	if err != nil {
		return true
	}
	for _, pair := range auxv {
		if pair[0] == atSecure {
			return pair[1] != 0
		}
	}
	return false
}

func hasCapabilities() bool {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&hdr, &data[0]) != nil {
		return true
	}
	return data[0].Permitted|data[1].Permitted != 0
}
