package hostid

import (
	"golang.org/x/sys/unix"

	"sandglass/internal/refusal"
)

// helperDirs are where the helpers are looked for, and nowhere else: not on the
// caller's PATH, where anybody could have put one first. NixOS has its set-uid
// programs in the second.
var helperDirs = []string{"/usr/bin/", "/run/wrappers/bin/"}

const installHelpers = "sudo apt-get install uidmap   # or the host's own package: shadow-utils, shadow-uidmap"

// helpers finds both programs, and what keeps them from working for this process.
func (r *Ranges) helpers() *refusal.Error {
	if n, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err != nil || n != 0 {
		return refusal.Newf("newuidmap gains no rights here: no_new_privs is set for this process").
			Hint("NoNewPrivileges=no   # in the unit of a service; a container needs security-opt no-new-privileges=false")
	}
	for _, h := range []struct {
		name string
		path *string
	}{{"newuidmap", &r.UIDHelper}, {"newgidmap", &r.GIDHelper}} {
		path, why := findHelper(h.name)
		if why != nil {
			return why
		}
		*h.path = path
	}
	return nil
}

func findHelper(name string) (string, *refusal.Error) {
	for _, dir := range helperDirs {
		path := dir + name
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil {
			continue
		}
		if why := untrusted(path, &st); why != nil {
			return "", why
		}
		return path, nil
	}
	return "", refusal.Newf("%s is not installed", name).Hint(installHelpers)
}

// untrusted says why a helper must not, or cannot, do it. Whoever may write to it
// could have it say that the ids are mapped; what it did is read back all the
// same.
func untrusted(path string, st *unix.Stat_t) *refusal.Error {
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG || st.Uid != 0 || st.Mode&0o022 != 0:
		return refusal.Newf("%s is not root's alone to write", path).Hint("ls -l %s", path)
	case st.Mode&unix.S_ISUID == 0 && !fileCaps(path):
		return refusal.Newf("%s is neither set-uid nor has it file capabilities", path).Hint("sudo chmod u+s %s", path)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil || fs.Flags&unix.ST_NOSUID != 0 {
		return refusal.Newf("%s gains no rights: its file system is mounted nosuid", path).
			Hint("findmnt -T %s   # remount it with suid, or use a host that has it so", path)
	}
	return nil
}

func fileCaps(path string) bool {
	n, err := unix.Getxattr(path, "security.capability", nil)
	return err == nil && n > 0
}
