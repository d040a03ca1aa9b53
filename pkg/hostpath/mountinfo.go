package hostpath

import (
	"os"
	"strings"
)

// readMounts reads the host's mounts once. Without /proc nothing can be said
// about aliases, and that is an error.
func (r *Reach) readMounts() error {
	if r.known {
		return nil
	}
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	r.mounts, r.known = parseMounts(string(text)), true
	return nil
}

// parseMounts reads "36 35 98:0 /root /point options - type source options"
// (proc_pid_mountinfo(5)).
func parseMounts(text string) []mountPoint {
	var list []mountPoint
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 6 {
			continue
		}
		m := mountPoint{dev: f[2], root: Unescape(f[3]), point: Unescape(f[4])}
		// Not with whom it shares what is mounted on it, and no file system's options.
		m.line = strings.Join([]string{f[0], f[2], f[3], f[4], f[5]}, " ") + "\n"
		list = append(list, m)
	}
	return list
}

// Unescape undoes \040 and the like, which stand for space, tab, newline and
// backslash in a path of mountinfo.
func Unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) && octal(s[i+1]) && octal(s[i+2]) && octal(s[i+3]) {
			b.WriteByte((s[i+1]-'0')<<6 | (s[i+2]-'0')<<3 | (s[i+3] - '0'))
			i += 3
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func octal(c byte) bool { return c >= '0' && c <= '7' }
