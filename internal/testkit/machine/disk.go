package machine

import (
	"io/fs"
	"path/filepath"
	"syscall"
)

// Disk is what a directory takes on the disk, each file once however many names it
// has, and how many regular files that are.
func Disk(dir string) (bytes, files int64, err error) {
	seen := map[uint64]bool{}
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		if seen[st.Ino] {
			return nil
		}
		seen[st.Ino] = true
		bytes += st.Blocks * 512
		if info.Mode().IsRegular() {
			files++
		}
		return nil
	})
	return bytes, files, err
}
