package cgroup

import "golang.org/x/sys/unix"

// Mountinfo is slow on hosts with many mounts (containers: a millisecond and
// more), and almost every host has the standard layout. standardTree finds
// that by a few stats and leaves everything unusual to mountinfo.

const (
	initCgroupNS = 0xEFFFFFFB // PROC_CGROUP_INIT_INO: inode of the first cgroup namespace
	topInode     = 1          // of a hierarchy's real top on 64-bit kernels (kernfs_create_root)
)

// standardTree is nil unless the caller is in the first cgroup namespace and
// every hierarchy that it is in shows its real top at its usual place. Then
// /proc/self/cgroup and the mounts count from the same root. A hierarchy that
// lies about its name has not the files that are written, and is refused then.
// It does not look for a v2 mount beside v1, which only Describe wants to know.
func standardTree(root string, s self) *tree {
	var st unix.Stat_t
	if unix.Stat("/proc/self/ns/cgroup", &st) != nil || st.Ino != initCgroupNS {
		return nil
	}
	t := &tree{root: root, self: s}
	var fs unix.Statfs_t
	if unix.Statfs(root, &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC {
		if !isTop(root, &st) {
			return nil
		}
		for _, name := range v1Names {
			if s.v1(name) != "" {
				return nil // a v1 hierarchy is mounted somewhere else, or was
			}
		}
		t.v2 = &mount{point: root, root: "/", v2: true}
		return t.classify()
	}
	var devs []uint64
	for _, name := range v1Names {
		if s.v1(name) == "" {
			continue
		}
		point := root + "/" + name
		if !isTop(point, &st) {
			return nil
		}
		for _, dev := range devs {
			if dev == st.Dev {
				return nil // co-mounted; mountinfo knows the directory behind the links
			}
		}
		devs = append(devs, st.Dev)
		t.v1 = append(t.v1, mount{point: point, root: "/", ctrls: name})
	}
	if t.v1 == nil {
		return nil
	}
	return t.classify()
}

// isTop is whether path is the top of a file system whose top is the real one.
func isTop(path string, st *unix.Stat_t) bool {
	return unix.Stat(path, st) == nil && st.Ino == topInode
}
