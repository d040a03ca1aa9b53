package boxinit

import "golang.org/x/sys/unix"

// The layout of a 64-bit little-endian ELF file, the only kind that the
// machines of this binary start: elf(5).
const (
	elfHeader   = 64
	elfSegment  = 56
	maxSegments = 64 << 10 / elfSegment // as load_elf_phdrs in fs/binfmt_elf.c
	ptInterp    = 3
)

// loader is the path of the ELF file's PT_INTERP, which execve opens as well,
// or "".
func loader(fd int, head []byte) string {
	if len(head) < elfHeader || string(head[:4]) != "\x7fELF" {
		return ""
	}
	at, n := little(head[32:40]), little(head[56:58])
	if little(head[54:56]) != elfSegment || n > maxSegments {
		return "" // execve answers ENOEXEC
	}
	table := make([]byte, n*elfSegment)
	if !readAt(fd, table, at) {
		return ""
	}
	for ; len(table) > 0; table = table[elfSegment:] {
		if little(table[:4]) != ptInterp {
			continue
		}
		size := little(table[32:40])
		if size < 2 || size > unix.PathMax {
			return ""
		}
		path := make([]byte, size)
		if !readAt(fd, path, little(table[8:16])) {
			return ""
		}
		for i, c := range path {
			if c == 0 {
				return string(path[:i])
			}
		}
		return ""
	}
	return ""
}

func readAt(fd int, buf []byte, offset uint64) bool {
	n, err := unix.Pread(fd, buf, int64(offset))
	return err == nil && n == len(buf)
}

// little is a little-endian number.
func little(b []byte) uint64 {
	var n uint64
	for i := len(b) - 1; i >= 0; i-- {
		n = n<<8 | uint64(b[i])
	}
	return n
}
