package rootfs

import (
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"

	"sandglass/pkg/wire"
	etcfiles "sandglass/rootfs"
)

// fromHost are the parts of the host's /etc that programs need and that hold
// no secrets: the loader's cache, certificates, alternatives, and settings
// that a distribution keeps in /etc for an interpreter in /usr.
var fromHost = []string{
	"alternatives", "ld.so.cache", "ssl/certs", "ssl/openssl.cnf", "pki/tls/certs", "pki/ca-trust/extracted",
	"protocols", "services", "mime.types", "fonts", "terminfo", "matplotlibrc",
}

// fromHostPrefix are directories whose names carry a version.
var fromHostPrefix = []string{"java-", "python3", "perl", "ImageMagick-", "R", "php", "lua"}

// etc writes the synthetic files, and binds what comes from the host.
func (p *planner) etc() {
	if p.in.Image != "host" {
		if !p.etcIn {
			p.dir("/etc", 0o755)
			p.synthetic()
		} else if p.in.Imported || p.in.Network {
			p.coverNames()
		}
		return
	}
	p.synthetic()
	for _, name := range fromHost {
		p.bindEtc(name)
	}
	for _, name := range versioned() {
		p.bindEtc(name)
	}
	p.chromium()
	p.localtime()
}

// chromium gives Debian's start script of that name the one file without which
// it ends. The host's own settings there may name proxies and keys.
func (p *planner) chromium() {
	if _, err := look("/etc/chromium.d"); err == nil {
		p.file("/etc/chromium.d/README", "")
	}
}

func (p *planner) synthetic() {
	p.file("/etc/passwd", Passwd(p.in.UID, p.in.GID))
	p.file("/etc/group", Group(p.in.GID))
	p.file("/etc/hostname", etcfiles.Hostname)
	p.file("/etc/hosts", etcfiles.Hosts)
	nsswitch, resolv := etcfiles.Nsswitch, etcfiles.Resolv
	if p.in.Network {
		nsswitch, resolv = etcfiles.NsswitchHosts, etcfiles.ResolvHosts
	}
	p.file("/etc/nsswitch.conf", nsswitch)
	p.file("/etc/resolv.conf", resolv)
	p.link("/etc/mtab", "/proc/self/mounts")
}

// ownNames lies on the root tmpfs, below what the scratch covers.
const ownNames = "/tmp/names"

// nameFiles say how names are found, and what this host is called.
var nameFiles = []string{"resolv.conf", "nsswitch.conf", "hosts", "hostname"}

// coverNames puts ours over an image's own files. A directory's name resolvers
// that are out of reach: without any both glibc and musl ask 127.0.0.1. An imported
// image has a file at each of these names, whatever its archive had there, and is
// given all of them, as docker does. Over a link nothing can be mounted: resolv.conf
// of a system with systemd is one that leads to /run, where there is no file here.
func (p *planner) coverNames() {
	p.dir(ownNames, 0o755)
	texts := []string{etcfiles.Resolv, etcfiles.Nsswitch, etcfiles.Hosts, etcfiles.Hostname}
	if p.in.Network {
		texts[0], texts[1] = etcfiles.ResolvHosts, etcfiles.NsswitchHosts
	}
	names := nameFiles
	if !p.in.Imported {
		names = names[:2]
	}
	for i, name := range names {
		if slices.Contains(p.etcLinks, name) {
			continue
		}
		p.file(ownNames+"/"+name, texts[i])
		p.add(wire.Op{Kind: wire.OpMask, Source: ownNames + "/" + name, Target: "/etc/" + name})
	}
}

func (p *planner) bindEtc(name string) {
	path := "/etc/" + name
	if text, err := os.Readlink(path); err == nil {
		// A link into the view stays a link; one that leads elsewhere is left out.
		if strings.HasPrefix(text, "/usr/") || strings.HasPrefix(text, "/etc/") {
			p.link(path, text)
		}
		return
	}
	src, err := look(path)
	if err != nil {
		return
	}
	p.bind(Bind{Source: src, Target: path}, 0)
}

// versioned lists the entries of /etc with a versioned name.
func versioned() []string {
	f, err := os.Open("/etc")
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(4096)
	var found []string
	for _, name := range names {
		for _, prefix := range fromHostPrefix {
			if strings.HasPrefix(name, prefix) {
				found = append(found, name)
				break
			}
		}
	}
	sort.Strings(found)
	return found
}

// localtime keeps the host's time zone: a link into /usr/share/zoneinfo, or a file.
func (p *planner) localtime() {
	const path = "/etc/localtime"
	if text, err := os.Readlink(path); err == nil {
		if strings.HasPrefix(text, "/usr/share/zoneinfo/") || strings.HasPrefix(text, "../usr/share/zoneinfo/") {
			p.link(path, text)
		}
		return
	}
	p.bindEtc("localtime")
}

// UserName is the name of a user id inside.
func UserName(uid uint32) string {
	switch uid {
	case 0:
		return "root"
	case 65534:
		return "nobody"
	}
	return "sandbox"
}

// Passwd is the synthetic /etc/passwd.
func Passwd(uid, gid uint32) string {
	var b strings.Builder
	line := func(name string, u, g uint32) {
		fmt.Fprintf(&b, "%s:x:%d:%d:%s:%s:/bin/sh\n", name, u, g, name, Home)
	}
	if uid != 0 {
		line("root", 0, 0)
	}
	line(UserName(uid), uid, gid)
	if uid != 65534 {
		line("nobody", 65534, 65534)
	}
	return b.String()
}

// Group is the synthetic /etc/group.
func Group(gid uint32) string {
	var b strings.Builder
	if gid != 0 {
		b.WriteString("root:x:0:\n")
	}
	name := UserName(gid)
	if gid == 65534 {
		name = "nogroup"
	}
	fmt.Fprintf(&b, "%s:x:%d:\n", name, gid)
	if gid != 65534 {
		b.WriteString("nogroup:x:65534:\n")
	}
	return b.String()
}
