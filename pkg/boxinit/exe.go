package boxinit

import (
	"bytes"

	"sandglass/internal/sys"

	"golang.org/x/sys/unix"
)

// maxInterpreters is how many #! lines the kernel follows, one after another.
const maxInterpreters = 5

// headSize is how much of a file the kernel looks at for a #! line.
const headSize = 256

// refuseOwnExe refuses a program that is, by a link or by the #! line of its
// file, one of /proc's magic links. In the process that is about to call execve
// /proc/self/exe is still the host's binary: executed from inside it would be a
// process that the program's children may look into, and open for writing where
// the caller owns it (CVE-2019-5736). Nothing untrusted runs yet, so what is
// looked at here is what execve finds.
func refuseOwnExe(paths []string) error {
	for _, path := range paths {
		for range maxInterpreters {
			head, err := readHead(path)
			if err == unix.ELOOP {
				return &sys.StartError{Call: "execve", Path: path, Errno: err.(unix.Errno)}
			}
			if err != nil {
				// Not there, or not to be read: then what it starts is not
				// dumpable, and nobody's to open (execve(2)).
				break
			}
			if path = interpreter(head); path == "" {
				break
			}
		}
	}
	return nil
}

func readHead(path string) ([]byte, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY,
		Resolve: unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, unix.EACCES // as execve answers
	}
	head := make([]byte, headSize)
	n, err := unix.Pread(fd, head, 0)
	return head[:max(n, 0)], err
}

// interpreter is the path of a #! line as the kernel reads it, or "".
func interpreter(head []byte) string {
	line, ok := bytes.CutPrefix(head, []byte("#!"))
	if !ok {
		return ""
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	line = bytes.TrimLeft(line, " \t")
	if end := bytes.IndexAny(line, " \t\x00"); end >= 0 {
		line = line[:end]
	}
	return string(line)
}
