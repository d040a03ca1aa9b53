package boxinit

import (
	"bytes"

	"sandglass/internal/sys"

	"golang.org/x/sys/unix"
)

// maxFiles is how many files one execve opens: the program, the interpreters of
// five #! lines (exec_binprm in fs/exec.c) and the loader of the last.
const maxFiles = 1 + 5 + 1

// headSize is how much of a file the kernel looks at for a #! line.
const headSize = 256

// refuseOwnExe refuses a program that is one of /proc's magic links, by a link,
// by the #! line of its file or by the loader that its ELF header names. In the
// process that is about to call execve /proc/self/exe is still the host's
// binary: executed from inside it would be a process that the program's children
// may look into, and open for writing where the caller owns it (CVE-2019-5736).
// Nothing untrusted runs yet, so what is looked at here is what execve finds.
func refuseOwnExe(paths []string) error {
	for _, path := range paths {
		for range maxFiles {
			next, err := starts(path)
			if err == unix.ELOOP {
				return &sys.StartError{Call: "execve", Path: path, Errno: err.(unix.Errno)}
			}
			if err == unix.ENOSYS {
				return err // a filter of ours in the way: nothing was looked at
			}
			if err != nil {
				// Not there, or not to be read: then what it starts is not
				// dumpable, and nobody's to open (execve(2)).
				break
			}
			if path = next; path == "" {
				break
			}
		}
	}
	return nil
}

// starts is the file that execve opens after path: the interpreter of a script,
// the loader of an ELF file, or "".
func starts(path string) (string, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY,
		Resolve: unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return "", unix.EACCES // as execve answers
	}
	head := make([]byte, headSize)
	n, err := unix.Pread(fd, head, 0)
	if err != nil {
		return "", err
	}
	if next := interpreter(head[:n]); next != "" {
		return next, nil
	}
	return loader(fd, head[:n]), nil
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
