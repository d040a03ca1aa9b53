package sandbox

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// closedTo says what keeps somebody who neither owns a file nor is in its group
// from it, "" for nothing: the directories on the way, its own mode, or a file
// system that serves one user. want is S_IROTH and its like; a directory must be
// searchable as well.
//
// It is about what works, not about what is allowed: the kernel asks again.
func closedTo(path string, want uint32) string {
	var st unix.Stat_t
	for i, c := range path {
		if c != '/' || i == 0 {
			continue
		}
		if err := unix.Stat(path[:i], &st); err != nil {
			return "not to be reached: " + err.Error()
		}
		if st.Mode&unix.S_IXOTH == 0 {
			return "below " + path[:i] + ", which only its owner and group may enter"
		}
	}
	if err := unix.Stat(path, &st); err != nil {
		return "not to be reached: " + err.Error()
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		want |= unix.S_IXOTH
	}
	switch {
	case st.Mode&want != want:
		return "not for everybody to read"
	case servesOne(path):
		return "on a file system in user space that serves its own user alone"
	}
	return ""
}

// servesOne says whether a path lies on a FUSE mount without allow_other: the
// kernel then refuses everybody but who has mounted it, whatever the modes say.
func servesOne(path string) bool {
	const fuse = 0x65735546
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil || fs.Type != fuse {
		return false
	}
	var stx unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_MNT_ID, &stx); err != nil || stx.Mask&unix.STATX_MNT_ID == 0 {
		return true
	}
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return true
	}
	for line := range bytes.Lines(text) {
		f := strings.Fields(string(line))
		if len(f) == 0 || f[0] != strconv.FormatUint(stx.Mnt_id, 10) {
			continue
		}
		_, after, _ := strings.Cut(string(line), " - ")
		f = strings.Fields(after) // type, source, options
		return len(f) < 3 || f[0] != "virtiofs" && !strings.Contains(f[2], "allow_other")
	}
	return true
}
