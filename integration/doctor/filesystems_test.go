package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

// fileSystem is one on which a caller's files may lie; its commands mount it at
// "at" in the working directory.
type fileSystem struct {
	name, mount  string
	noexec, maps bool // maps: its files can be given to a sandbox of root's
}

// oddFileSystems are some that no distribution puts its users' files on, and which
// they have all the same: in containers, from sshfs and the like, in virtual
// machines and WSL2.
var oddFileSystems = []fileSystem{
	{"overlay", "mkdir -p low work; mount -t tmpfs tmpfs work; mkdir work/up work/work; mount -t overlay -o lowerdir=low,upperdir=work/up,workdir=work/work overlay at", false, false},
	{"fuse", "mkdir -p low; bindfs low at", false, false},
	{"9p", "mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 nine at; rm -rf at/*", false, false},
}

// place is this host with the file system at a directory, which has a script, a
// program and a file of the caller's own that nobody else may read. first goes to
// the directory that "at" is in, then is what else is done there.
func (fs fileSystem) place(t *testing.T, who testkit.Who, first, then string) place {
	t.Helper()
	fs.requires(t)
	uid := number(who.UID) + ":" + number(who.GID)
	return script(t, who, first+"\nmkdir -p at\n"+fs.mount+`
printf '#!/bin/sh\necho "script $1"\n' >at/hello.sh
cp /usr/bin/id at/prog
echo secret >at/private
chmod 0755 at/hello.sh at/prog
chown `+uid+` at at/hello.sh at/prog at/private
chmod 0600 at/private
`+then)
}

// requires skips where this host has no such file system.
func (fs fileSystem) requires(t *testing.T) {
	t.Helper()
	switch fs.name {
	case "fuse":
		testkit.Requires(t, "bindfs")
		f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
		if err != nil {
			testkit.Skip(t, "/dev/fuse", err.Error())
		}
		f.Close()
	case "9p":
		tags, _ := filepath.Glob("/sys/bus/virtio/drivers/9pnet_virtio/virtio*/mount_tag")
		if len(tags) == 0 {
			testkit.Skip(t, "9p", "no share of a virtual machine's host")
		}
	}
}

// HOME, /tmp and the working directory on an odd file system: a script there runs,
// and artefacts and the result are written beside it.
func TestHomeAndTmp(t *testing.T) {
	// The binary under test, and this test's own files, lie below the /tmp that is
	// covered.
	const first = `mount -t tmpfs -o mode=755 tmpfs /mnt; cp "$1" /mnt/sandglass; shift; set -- /mnt/sandglass "$@"; cd /mnt`
	const then = `cd at; mkdir -p tmp; chmod 1777 tmp; mount --bind tmp /tmp; export HOME=$PWD TMPDIR=/tmp`
	for _, fs := range oddFileSystems {
		t.Run(fs.name, func(t *testing.T) {
			testkit.Each(t, func(t *testing.T, who testkit.Who) {
				p, flags := fs.place(t, who, first, then), who.Flags()
				p.runs(t, "script x\n", append(flags, "./hello.sh", "x")...)
				p.runs(t, "print\n", append(flags, "--lang", "sh", "-c", "echo print")...)
				p = fs.place(t, who, first, then+"\n"+`set -- sh -c '"$@" && cat out/made result.json' sh "$@"`)
				o := p.do(t, "run", append(flags, "--out", "out", "--result", "result.json", "--", "sh", "-c", "echo made >/out/made")...)
				if o.Exit != 0 || !strings.HasPrefix(o.Stdout, "made\n{") || o.Stderr != "" {
					t.Errorf("artefacts and the result: exit %d, %q, %q", o.Exit, o.Stdout, o.Stderr)
				}
			})
		})
	}
}
