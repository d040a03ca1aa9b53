package sys

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// LandlockABI is the kernel's Landlock version, 0 when it has none or it is off.
func LandlockABI() int {
	abi, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if e != 0 {
		return 0
	}
	return int(abi)
}

// LandlockRuleset makes a ruleset that denies the handled rights on files and
// cuts the scopes (ABI 6).
func LandlockRuleset(handled, scoped uint64) (fd int, err error) {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: handled, Scoped: scoped}
	// A kernel that knows fewer fields takes the others as long as they are 0.
	size := unsafe.Offsetof(attr.Scoped) + unsafe.Sizeof(attr.Scoped)
	r, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if e != 0 {
		return -1, e
	}
	return int(r), nil
}

// LandlockAllow grants rights beneath the file of descriptor path.
func LandlockAllow(ruleset, path int, access uint64) error {
	attr := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(path)}
	_, _, e := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	if e != 0 {
		return e
	}
	return nil
}
