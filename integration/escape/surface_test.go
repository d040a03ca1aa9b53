package escape

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandglass/internal/testkit"
)

// options asks for options of one level on a new socket of a family and type.
func options(family, kind, level int, names ...int) []string {
	ops := make([]string, len(names))
	for i, n := range names {
		ops[i] = fmt.Sprintf("option:%d:%d:%d:%d", family, kind, level, n)
	}
	return ops
}

// Options hold kernel memory that no limit counts, fill tables of the whole host,
// or make a killed process take half a minute to end.
func TestSocketOptions(t *testing.T) {
	const v4, v6, local, stream, datagram = unix.AF_INET, unix.AF_INET6, unix.AF_UNIX, unix.SOCK_STREAM, unix.SOCK_DGRAM
	const no = "ENOPROTOOPT"
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		attempt(t, who, nil, slices.Concat(
			all(no, options(v4, stream, unix.IPPROTO_TCP, 14, 15, 19, 31, 32, 33, 35, 38, 39)...), // keys, repair, ULP, cookies, AO
			all(no, "option:2:1:6:14:216", "option:2:1:0x100000006:32:216"),                       // MD5 keys of their size
			all(no, options(v6, datagram, unix.IPPROTO_IPV6, 1, 6, 21, 28, 32, 34, 35, 48, 54, 55, 57, 59)...),
			all(no, "option:10:2:41:32:32"), // a flow label
			all(no, options(v4, datagram, unix.IPPROTO_IP, 3, 4, 9, 16, 17, 36, 40, 41, 48, 64)...),
			all(no, options(v4, datagram, unix.IPPROTO_UDP, 100, 101)...),
			all(no, options(v4, stream, unix.SOL_SOCKET, 1, 27, 36, 37, 46, 60, 61, 65, 73)...),
			all(no, options(local, stream, unix.SOL_SOCKET, 37, 60)...),
			all("EPERM", options(v4, datagram, unix.SOL_SOCKET, 26, 50, 51, 52)...),
			all("ENODEV", options(v4, datagram, unix.IPPROTO_IP, 35, 39, 42, 46)...),
			all("ENODEV", options(v6, datagram, unix.IPPROTO_IPV6, 20, 27, 42, 46)...),
			all("ENODEV", "option:10:2:41:20:20", "option:10:2:0x100000029:0x100000014:20", "option:2:2:0:35:12"),
		))
	})
}

// What servers, clients and runtimes set.
func TestSocketOptionsOfPrograms(t *testing.T) {
	const v4, v6, local, stream, datagram = unix.AF_INET, unix.AF_INET6, unix.AF_UNIX, unix.SOCK_STREAM, unix.SOCK_DGRAM
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		attempt(t, who, nil, slices.Concat(
			all("OK", options(v4, stream, unix.SOL_SOCKET, 2, 6, 7, 8, 9, 10, 12, 15, 18)...),
			all("OK", "option:2:1:1:13:8", "option:2:1:1:20:16", "option:2:1:1:21:16", "option:2:1:1:66:16", "option:2:1:1:67:16"),
			all("OK", options(local, stream, unix.SOL_SOCKET, 7, 8, 16, 42)...),
			all("OK", options(v4, stream, unix.IPPROTO_TCP, 1, 3, 4, 5, 6, 7, 8, 9, 10, 12, 18, 23, 25, 30, 36)...),
			all("OK", options(v4, datagram, unix.IPPROTO_IP, 1, 2, 8, 10, 11, 12, 13, 15, 24, 33, 34, 49)...),
			all("OK", options(v6, datagram, unix.IPPROTO_IPV6, 16, 18, 19, 23, 25, 26, 29, 49, 51, 62, 66, 67, 78)...),
			all("OK", options(v4, datagram, unix.IPPROTO_UDP, 1, 103)...),
		))
	})
}

// A message can ask for a copy of what it sends, which nobody counts.
func TestNoTimeStampsOfPackets(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		o := testkit.Sh(t, who, "cat /proc/sys/net/core/tstamp_allow_data")
		if o.Exit != 0 {
			testkit.Skip(t, "a setting of time stamps for each network namespace", "one for the host")
		}
		if o.Stdout != "0\n" {
			t.Errorf("tstamp_allow_data is %q, want 0", o.Stdout)
		}
		attempt(t, who, nil, []try{{"stamp", "EAGAIN"}})
	})
}

// Requests that change attributes of files, show where they lie, or share blocks
// between them reach no file system, whatever the upper bits of their number.
func TestFilesTakeNoRequests(t *testing.T) {
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		dir := testkit.Dir(t)
		write(t, dir+"/file", "text")
		if os.Getuid() == 0 {
			if err := os.Chown(dir+"/file", who.UID, who.GID); err != nil {
				t.Fatal(err)
			}
		}
		var ops, copies []string
		// Flags, version and project of a file, old and new, of ext4; FIBMAP, FIGETBSZ, FIEMAP, FIFREEZE, FITRIM; verity; policies.
		for _, request := range []string{"80086601", "40086602", "140086602", "ffffffff40086602", "80087601", "40087602", "801c581f", "401c5820",
			"40086604", "6609", "c028660f", "6610", "660c", "1", "2", "c020660b", "c0045877", "c0185879", "40806685", "400c6613"} {
			ops = append(ops, "openioctl:/data/file:"+request)
		}
		for _, request := range []string{"40049409", "4020940d", "c0189436", "1c0189436"} { // FICLONE, FICLONERANGE, FIDEDUPERANGE
			copies = append(copies, "openioctl:/data/file:"+request)
		}
		attempt(t, who, []string{"-v", dir + ":/data:rw", "--pty"}, slices.Concat(all("ENOTTY", ops...), all("EOPNOTSUPP|ENOTSUP", copies...),
			all("OK", "openioctl:/data/file:541b", "openioctl:/dev/ptmx:5401", "openioctl:/dev/ptmx:ffffffff80045430")))
	})
}

// Whoever evicts a file from the page cache and later asks whether it is there
// again, sees what others read.
func TestPageCacheTellsNothing(t *testing.T) {
	dir, err := os.MkdirTemp("/var/tmp", "sandglass-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "file")
	write(t, path, "text")
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cached := func() bool {
		n, err := unix.Preadv2(int(f.Fd()), [][]byte{make([]byte, 1)}, 0, unix.RWF_NOWAIT)
		return err == nil && n == 1
	}
	read := func() {
		if _, err := f.ReadAt(make([]byte, 1), 0); err != nil || !cached() {
			t.Fatalf("what was read is not in the cache (%v)", err)
		}
	}
	read()
	evicted := func() bool {
		return unix.Fsync(int(f.Fd())) == nil && unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) == nil && !cached()
	}
	// The kernel keeps a page that a journal or another CPU's list still holds.
	for began := time.Now(); !evicted(); {
		if time.Since(began) > 10*time.Second {
			testkit.Skip(t, "a disk", "a file system that keeps its pages")
		}
	}
	testkit.Each(t, func(t *testing.T, who testkit.Who) {
		read()
		attempt(t, who, []string{"-v", dir + ":/data"}, []try{{"evict:/data/file", "OK"}, {"nowait:/data/file", "EOPNOTSUPP|ENOTSUP"},
			{"evict:/usr/bin/env", "OK"}, {"nowait:/usr/bin/env", "EOPNOTSUPP|ENOTSUP"}, {call("cachestat", ""), "ENOSYS"}})
		if !cached() {
			t.Error("the program has evicted the file from the host's cache")
		}
	})
}
