package rootfs

import (
	"strings"

	"sandglass/pkg/wire"
)

// Masked are the files of /proc that tell about the host or its devices, by
// name. A program without capabilities cannot write most of them; they are
// hidden as a second line, and because some can be read.
var Masked = []string{
	"acpi", "asound", "bus", "cmdline", "config.gz", "crypto", "diskstats", "driver", "fs", "interrupts", "iomem", "ioports",
	"irq", "kallsyms", "kcore", "key-users", "keys", "kmsg", "latency_stats", "locks", "misc", "modules", "partitions", "scsi",
	"sched_debug", "sysrq-trigger", "timer_list",
	"sys/kernel/random/boot_id",                                            // the same in all sandboxes of one host
	"sys/kernel/core_pattern", "sys/kernel/modprobe", "sys/kernel/hotplug", // paths of the host
	"sys/kernel/tainted", "sys/kernel/bootloader_type", "sys/kernel/bootloader_version",
	// How much the host has open, and what is registered or attached there.
	"sys/kernel/pty/nr", "sys/fs/file-nr", "sys/fs/inode-nr", "sys/fs/inode-state", "sys/fs/dentry-state", "sys/fs/aio-nr",
	"sys/fs/binfmt_misc", "sys/fs/quota", "sys/fs/nfs", "sys/dev", "sys/sunrpc", "sys/kernel/sched_domain", "sys/kernel/watchdog_cpumask",
}

// procOpen is what a program may see of /proc beside processes and Sized: its
// own links, its own namespaces' files, and the clock.
var procOpen = []string{"self", "thread-self", "mounts", "net", "sys", "sysvipc", "uptime"}

// facade holds the files that are bound over those of /proc. It lies on the root
// tmpfs, which is frozen before, below what the scratch covers.
const facade = "/tmp/proc"

// nothing covers what is masked. It is not /dev/null: a mount of that shows the
// size of the host's memory in mountinfo, and trusts the host's node.
const nothing = facade + "/nothing"

// facades writes the files that cover those of /proc.
func (p *planner) facades() {
	if !p.in.Proc {
		return
	}
	p.dir(facade, 0o755)
	p.shown = Sized(p.in.Size)
	for _, f := range append(p.shown, File{Name: "nothing"}) {
		p.add(wire.Op{Kind: wire.OpFile, Target: facade + "/" + f.Name, Mode: 0o444, Data: []byte(f.Text)})
	}
}

// hideProc covers the host's files of the new /proc: those that tell a size by
// ones that tell the sandbox's, all that is not known to be harmless by nothing.
func (p *planner) hideProc() {
	top := append([]string{}, procOpen...)
	for _, f := range p.shown {
		top = append(top, f.Name)
		p.add(wire.Op{Kind: wire.OpMask, Source: facade + "/" + f.Name, Target: "/proc/" + f.Name})
	}
	for _, name := range Masked {
		if !strings.Contains(name, "/") {
			top = append(top, name)
		}
		p.add(wire.Op{Kind: wire.OpMask, Source: nothing, Target: "/proc/" + name})
	}
	p.add(wire.Op{Kind: wire.OpRest, Source: nothing, Target: "/proc", Data: []byte(strings.Join(top, " "))})
}
