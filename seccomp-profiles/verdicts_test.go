package profiles_test

import (
	"slices"
	"testing"

	"sandglass/pkg/seccomp/sysnum"
)

const (
	eperm   = "errno 1"
	enomem  = "errno 12"
	eacces  = "errno 13"
	einval  = "errno 22"
	enotty  = "errno 25"
	enodev  = "errno 19"
	enosys  = "errno 38"
	noopt   = "errno 92"
	noproto = "errno 93"
	notsup  = "errno 95"
	nofam   = "errno 97"
)

// TestRefusedWhateverTheArguments is written by hand, not derived from the
// profile: a change of the profile that opens one of these must change it too.
func TestRefusedWhateverTheArguments(t *testing.T) {
	want := map[string][]string{
		eperm: {
			"unshare", "setns", "mount", "umount2", "pivot_root", "chroot", "open_tree", "open_tree_attr", "move_mount",
			"fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "ptrace", "process_vm_readv", "process_vm_writev",
			"pidfd_getfd", "kcmp", "add_key", "request_key", "keyctl", "bpf", "perf_event_open", "userfaultfd",
			"open_by_handle_at", "name_to_handle_at", "init_module", "finit_module", "delete_module", "create_module",
			"kexec_load", "kexec_file_load", "clock_settime", "clock_adjtime", "settimeofday", "adjtimex", "reboot",
			"swapon", "swapoff", "acct", "quotactl", "quotactl_fd", "syslog", "sethostname", "setdomainname", "vhangup",
			"iopl", "ioperm", "fanotify_init", "fanotify_mark", "sync", "syncfs",
		},
		enosys: {
			"io_uring_setup", "io_uring_enter", "io_uring_register", "clone3", "openat2", "io_setup", "io_submit",
			"mbind", "move_pages", "migrate_pages", "statmount", "listmount", "listns", "cachestat", "memfd_secret", "vmsplice",
			"modify_ldt", "process_madvise", "remap_file_pages", "uselib", "lookup_dcookie", "nfsservctl", "_sysctl",
		},
	}
	for _, arch := range []string{"amd64", "arm64"} {
		prog := compiled(t, arch)
		for verdictWord, names := range want {
			for _, name := range names {
				nr, ok := sysnum.Number(arch, name)
				if !ok {
					continue
				}
				for _, v := range []uint64{0, 1, 0x10000000, 1 << 32, ^uint64(0)} {
					if got := word(verdict(t, prog, auditArch[arch], nr, [6]uint64{v, v, v, v, v, v})); got != verdictWord {
						t.Errorf("%s %s with %#x: got %s, want %s", arch, name, v, got, verdictWord)
					}
				}
			}
		}
	}
}

// TestNeverRefusedWithEPERM are calls that C libraries and language runtimes
// try and fall back from on ENOSYS alone, or cannot do without.
func TestNeverRefusedWithEPERM(t *testing.T) {
	names := []string{
		"clone3", "close_range", "openat2", "pidfd_open", "faccessat2", "epoll_pwait2", "futex_waitv", "futex_wake",
		"futex_wait", "futex_requeue", "fchmodat2", "cachestat", "rseq", "statx", "membarrier", "sched_getaffinity",
		"getrandom", "memfd_create", "copy_file_range", "preadv2", "pwritev2", "prlimit64", "pipe2", "dup3",
		"epoll_create1", "eventfd2", "timerfd_create", "signalfd4", "inotify_init1", "renameat2", "set_robust_list",
		"sigaltstack", "getcpu", "mincore", "madvise", "sysinfo", "times", "splice", "tee", "sendfile", "utimensat",
		"fallocate", "getdents64", "sched_yield", "mlock", "fadvise64", "sync_file_range", "getxattr", "flock", "waitid",
		"capget", "setpgid", "getitimer", "io_uring_setup", "mseal", "map_shadow_stack", "landlock_create_ruleset",
		"pidfd_send_signal", "get_mempolicy", "process_madvise", "mremap", "arch_prctl", "prctl", "seccomp", "execveat",
		"sendto", "bind", "listen", "connect", "sendmsg", "setuid", "setgroups", "mq_open", "semget", "shmget",
	}
	for _, arch := range []string{"amd64", "arm64"} {
		prog := compiled(t, arch)
		for _, name := range names {
			nr, ok := sysnum.Number(arch, name)
			if !ok {
				continue
			}
			if got := word(verdict(t, prog, auditArch[arch], nr, [6]uint64{})); got != "allow" && got != enosys {
				t.Errorf("%s %s: got %s", arch, name, got)
			}
		}
	}
}

// answered is a call that depends on its arguments.
type answered struct {
	name string
	args [6]uint64
	want string
}

// verdicts are written by hand.
var verdicts = []answered{
	{"clone", [6]uint64{0x3d0f00}, "allow"},         // pthread_create
	{"clone", [6]uint64{0x1200011}, "allow"},        // fork
	{"clone", [6]uint64{0x4111}, "allow"},           // VM|VFORK
	{"clone", [6]uint64{0x00020011}, eperm},         // NEWNS
	{"clone", [6]uint64{0x02000011}, eperm},         // NEWCGROUP
	{"clone", [6]uint64{0x04000011}, eperm},         // NEWUTS
	{"clone", [6]uint64{0x08000011}, eperm},         // NEWIPC
	{"clone", [6]uint64{0x10000011}, eperm},         // NEWUSER
	{"clone", [6]uint64{0x20000011}, eperm},         // NEWPID
	{"clone", [6]uint64{0x40000011}, eperm},         // NEWNET
	{"clone", [6]uint64{0xffffffff10000011}, eperm}, // high bits are ignored
	{"fcntl", [6]uint64{3, 1}, "allow"},             // F_GETFD
	{"fcntl", [6]uint64{3, 6}, "allow"},             // F_SETLK
	{"fcntl", [6]uint64{3, 37}, einval},             // F_OFD_SETLK
	{"fcntl", [6]uint64{3, 38}, einval},             // F_OFD_SETLKW
	{"fcntl", [6]uint64{3, 1024}, eacces},           // F_SETLEASE
	{"fcntl", [6]uint64{3, 1<<32 | 1024}, eacces},   // bit 32
	{"fcntl", [6]uint64{3, 1025}, "allow"},          // F_GETLEASE
	{"fcntl", [6]uint64{3, 1030}, "allow"},          // F_DUPFD_CLOEXEC
	{"fcntl", [6]uint64{3, 1040}, eacces},           // F_SETDELEG
	{"fcntl", [6]uint64{3, 1026}, einval},           // F_NOTIFY
	{"fcntl", [6]uint64{3, 1<<32 | 1026}, einval},   // the kernel takes the low half
	{"madvise", [6]uint64{4096, 4096, 4}, "allow"},  // MADV_DONTNEED
	{"madvise", [6]uint64{4096, 4096, 8}, "allow"},  // MADV_FREE
	{"madvise", [6]uint64{4096, 4096, 14}, "allow"}, // MADV_HUGEPAGE
	{"madvise", [6]uint64{4096, 4096, 12}, einval},  // MADV_MERGEABLE
	{"madvise", [6]uint64{4096, 4096, 20}, einval},  // MADV_COLD
	{"madvise", [6]uint64{4096, 4096, 21}, einval},  // MADV_PAGEOUT
	{"madvise", [6]uint64{4096, 4096, 25}, einval},  // MADV_COLLAPSE
	{"madvise", [6]uint64{4096, 4096, 1<<32 | 21}, einval},
	{"prctl", [6]uint64{67, 1}, einval},                   // PR_SET_MEMORY_MERGE
	{"setsockopt", [6]uint64{3, 17, 104}, noopt},          // UDP_GRO
	{"setsockopt", [6]uint64{3, 1, 29}, noopt},            // SO_TIMESTAMP
	{"setsockopt", [6]uint64{3, 1, 35}, noopt},            // SO_TIMESTAMPNS
	{"setsockopt", [6]uint64{3, 1, 63}, noopt},            // SO_TIMESTAMP_NEW
	{"setsockopt", [6]uint64{3, 1, 64}, noopt},            // SO_TIMESTAMPNS_NEW
	{"fcntl", [6]uint64{1024, 1033, 1040}, "allow"},       // F_ADD_SEALS
	{"ioctl", [6]uint64{0, 0x5401}, "allow"},              // TCGETS
	{"ioctl", [6]uint64{0, 0x5412}, eperm},                // TIOCSTI
	{"ioctl", [6]uint64{0, 0x100005412}, eperm},           // bit 32
	{"ioctl", [6]uint64{0, 0xffffffff00005412}, eperm},    // sign extended
	{"ioctl", [6]uint64{0, 0xff000000541c}, eperm},        // TIOCLINUX
	{"ioctl", [6]uint64{0, 0x541d}, eperm},                // TIOCCONS
	{"ioctl", [6]uint64{0, 0x8000000000005423}, eperm},    // TIOCSETD
	{"ioctl", [6]uint64{0x5412, 0x5413, 0x5412}, "allow"}, // TIOCGWINSZ
	{"ioctl", [6]uint64{3, 0x81009431}, enotty},           // FS_IOC_GETFSLABEL
	{"ioctl", [6]uint64{3, 0x80111500}, enotty},           // FS_IOC_GETFSUUID
	{"ioctl", [6]uint64{3, 0x80811501}, enotty},           // FS_IOC_GETFSSYSFSPATH
	{"ioctl", [6]uint64{3, 0x8008662c}, enotty},           // EXT4_IOC_GETFSUUID
	{"ioctl", [6]uint64{3, 0x8400941f}, enotty},           // BTRFS_IOC_FS_INFO
	{"ioctl", [6]uint64{3, 0x80705864}, enotty},           // XFS_IOC_FSGEOMETRY_V1
	{"ioctl", [6]uint64{3, 0x8070587c}, enotty},           // XFS_IOC_FSGEOMETRY_V4
	{"ioctl", [6]uint64{3, 0x8100587e}, enotty},           // XFS_IOC_FSGEOMETRY
	{"ioctl", [6]uint64{3, 0xffffffff81009431}, enotty},   // sign extended
	{"ioctl", [6]uint64{0, 0x80005412}, enotty},           // another request
	{"ioctl", [6]uint64{3, 0x541b}, "allow"},              // FIONREAD
	{"ioctl", [6]uint64{3, 0xffffffff802c542a}, "allow"},  // TCGETS2, sign extended
	{"ioctl", [6]uint64{3, 0xffffffff80045430}, "allow"},  // TIOCGPTN, sign extended
	{"ioctl", [6]uint64{3, 0x8912}, "allow"},              // SIOCGIFCONF
	{"ioctl", [6]uint64{0, 0x540c}, enotty},               // TIOCEXCL
	{"ioctl", [6]uint64{3, 0x80086601}, enotty},           // FS_IOC_GETFLAGS
	{"ioctl", [6]uint64{3, 0x40086602}, enotty},           // FS_IOC_SETFLAGS
	{"ioctl", [6]uint64{3, 0x100000000 | 0x40086602}, enotty},
	{"ioctl", [6]uint64{3, 0x401c5820}, enotty},         // FS_IOC_FSSETXATTR
	{"ioctl", [6]uint64{3, 0x40087602}, enotty},         // FS_IOC_SETVERSION
	{"ioctl", [6]uint64{3, 0x6609}, enotty},             // EXT4_IOC_MIGRATE
	{"ioctl", [6]uint64{3, 0xc020660b}, enotty},         // FS_IOC_FIEMAP
	{"ioctl", [6]uint64{3, 0x8914}, enotty},             // SIOCSIFFLAGS
	{"ioctl", [6]uint64{3, 0xb701}, enotty},             // NS_GET_USERNS
	{"ioctl", [6]uint64{3, 0xff01}, enotty},             // PIDFD_GET_CGROUP_NAMESPACE
	{"ioctl", [6]uint64{3, 0x40049409}, notsup},         // FICLONE
	{"ioctl", [6]uint64{3, 0x4020940d}, notsup},         // FICLONERANGE
	{"ioctl", [6]uint64{3, 0xffffffffc0189436}, notsup}, // FIDEDUPERANGE, sign extended
	{"ioctl", [6]uint64{3, 0x8946}, notsup},             // SIOCETHTOOL
	{"fadvise64", [6]uint64{3, 4, 4, 0}, "allow"},       // NORMAL
	{"fadvise64", [6]uint64{3, 0, 0, 3}, "allow"},       // WILLNEED
	{"fadvise64", [6]uint64{3, 0, 0, 4}, "errno 0"},     // DONTNEED
	{"fadvise64", [6]uint64{3, 0, 0, 1<<32 | 4}, "errno 0"},
	{"preadv2", [6]uint64{3, 0, 1, 8, 8, 0}, "allow"},
	{"preadv2", [6]uint64{3, 0, 1, 0, 0, 1}, "allow"}, // RWF_HIPRI
	{"preadv2", [6]uint64{3, 0, 1, 0, 0, 8}, notsup},  // RWF_NOWAIT
	{"preadv2", [6]uint64{3, 0, 1, 0, 0, 1<<32 | 9}, notsup},
	{"preadv2", [6]uint64{3, 0, 1, 0, 0, 0x80}, notsup}, // RWF_DONTCACHE
	{"preadv2", [6]uint64{3, 0, 1, 0, 0, 0x88}, notsup},
	{"pwritev2", [6]uint64{3, 0, 1, 0, 0, 2}, "allow"}, // RWF_DSYNC
	{"pwritev2", [6]uint64{3, 0, 1, 0, 0, 8}, notsup},
	{"socket", [6]uint64{1, 1, 0}, "allow"},                // AF_UNIX
	{"socket", [6]uint64{0xabc00000001, 5, 77}, "allow"},   // AF_UNIX, garbage above
	{"socket", [6]uint64{2, 0x80801, 0}, "allow"},          // TCP
	{"socket", [6]uint64{10, 2, 17}, "allow"},              // UDP
	{"socket", [6]uint64{2, 1, 262}, noproto},              // MPTCP
	{"socket", [6]uint64{2, 1, 132}, nofam},                // SCTP
	{"socket", [6]uint64{2, 5, 132}, nofam},                // SCTP
	{"socket", [6]uint64{2, 2, 1}, nofam},                  // ICMP
	{"socket", [6]uint64{2, 3, 1}, eperm},                  // SOCK_RAW
	{"socket", [6]uint64{10, 0x80803, 255}, eperm},         // SOCK_RAW
	{"socket", [6]uint64{2, 10, 3}, eperm},                 // SOCK_PACKET
	{"socket", [6]uint64{2, 0xf00000003, 1}, eperm},        // garbage above
	{"socket", [6]uint64{16, 3, 0}, nofam},                 // NETLINK_ROUTE
	{"socket", [6]uint64{16, 0x80002, 0}, nofam},           // NETLINK_ROUTE
	{"socket", [6]uint64{1<<32 | 16, 3, 12}, nofam},        // NETLINK_NETFILTER
	{"socket", [6]uint64{0, 1, 0}, nofam},                  // AF_UNSPEC
	{"socket", [6]uint64{17, 3, 0x300}, nofam},             // AF_PACKET
	{"socket", [6]uint64{29, 3, 1}, nofam},                 // AF_CAN
	{"socket", [6]uint64{30, 1, 0}, nofam},                 // AF_TIPC
	{"socket", [6]uint64{38, 5, 0}, nofam},                 // AF_ALG
	{"socket", [6]uint64{40, 1, 0}, nofam},                 // AF_VSOCK
	{"socket", [6]uint64{44, 3, 0}, nofam},                 // AF_XDP
	{"socketpair", [6]uint64{1, 1, 0}, "allow"},            //
	{"socketpair", [6]uint64{2, 1, 0}, nofam},              //
	{"socketpair", [6]uint64{30, 1, 0}, nofam},             // AF_TIPC
	{"open", [6]uint64{0, 0, 0o4755}, "allow"},             // no O_CREAT: the register is garbage
	{"open", [6]uint64{0, 0o101, 0o644}, "allow"},          //
	{"open", [6]uint64{0, 0o101, 0o4755}, eperm},           // set-uid
	{"open", [6]uint64{0, 0o101, 0o2755}, eperm},           // set-gid
	{"open", [6]uint64{0, 0o20200002, 0o4755}, eperm},      // O_TMPFILE
	{"openat", [6]uint64{0, 0, 0x80000, 0o6000}, "allow"},  //
	{"openat", [6]uint64{0, 0, 0o101, 0o1777}, "allow"},    //
	{"openat", [6]uint64{0, 0, 0o101, 0o4000}, eperm},      //
	{"openat", [6]uint64{0, 0, 0o20200002, 0o2000}, eperm}, //
	{"openat", [6]uint64{0, 0, 1<<32 | 0o100, 0o2000}, eperm},
	{"creat", [6]uint64{0, 0o4700}, eperm},
	{"creat", [6]uint64{0, 0o700}, "allow"},
	{"chmod", [6]uint64{0, 0o4755}, eperm},
	{"chmod", [6]uint64{0, 0o2755}, eperm},
	{"chmod", [6]uint64{0, 0o1777}, "allow"},
	{"fchmod", [6]uint64{0, 0o6777}, eperm},
	{"fchmod", [6]uint64{0, 0o100644}, "allow"},
	{"fchmodat", [6]uint64{0, 0, 0o4755}, eperm},
	{"fchmodat", [6]uint64{0o4755, 0o4755, 0o755}, "allow"},
	{"fchmodat2", [6]uint64{0, 0, 0o2755, 0}, eperm},
	{"fchmodat2", [6]uint64{0, 0, 0o755, 0x100}, "allow"},
	{"mknod", [6]uint64{0, 0o644}, "allow"},
	{"mknod", [6]uint64{0, 0o100644}, "allow"},
	{"mknod", [6]uint64{0, 0o010644}, "allow"},
	{"mknod", [6]uint64{0, 0o140644}, "allow"},
	{"mknod", [6]uint64{0, 0o020666, 0x103}, eperm}, // S_IFCHR
	{"mknod", [6]uint64{0, 0o060660, 0x801}, eperm}, // S_IFBLK
	{"mknod", [6]uint64{0, 0o104755}, eperm},
	{"mknodat", [6]uint64{0, 0, 0o010600}, "allow"},
	{"mknodat", [6]uint64{0, 0, 0o020666, 0x103}, eperm},
	{"mknodat", [6]uint64{0, 0, 0o060660, 0x801}, eperm},
	{"mknodat", [6]uint64{0, 0, 0xf0000 | 0o020666, 0x103}, eperm},
	{"mknodat", [6]uint64{0, 0, 0o102755}, eperm},
	{"mmap", [6]uint64{0, 4096, 3, 0x22, ^uint64(0), 0}, "allow"},
	{"mmap", [6]uint64{0, 4096, 3, 0x40022, ^uint64(0), 0}, enomem}, // MAP_HUGETLB
	{"mmap", [6]uint64{0, 4096, 3, 0x54040022, ^uint64(0), 0}, enomem},
	{"memfd_create", [6]uint64{0, 1}, "allow"},
	{"memfd_create", [6]uint64{0, 5}, einval}, // MFD_HUGETLB
	{"shmget", [6]uint64{0, 4096, 0o1600}, "allow"},
	{"shmget", [6]uint64{0, 4096, 0o5600}, eperm}, // SHM_HUGETLB
	{"prctl", [6]uint64{38, 1}, "allow"},          // PR_SET_NO_NEW_PRIVS
	{"prctl", [6]uint64{22, 2}, "allow"},          // PR_SET_SECCOMP
	{"prctl", [6]uint64{35, 14}, eperm},           // PR_SET_MM
	{"prctl", [6]uint64{62, 1}, eperm},            // PR_SCHED_CORE
	{"prctl", [6]uint64{1<<32 | 62}, eperm},       // high bits are ignored
	{"prlimit64", [6]uint64{0, 7}, "allow"},
	{"prlimit64", [6]uint64{1 << 32, 7}, "allow"},
	{"prlimit64", [6]uint64{1, 7}, eperm},
	{"prlimit64", [6]uint64{^uint64(0), 7}, eperm},
	{"seccomp", [6]uint64{1, 0}, "allow"},
	{"seccomp", [6]uint64{1, 1}, "allow"},
	{"seccomp", [6]uint64{1, 8}, eperm},
	{"seccomp", [6]uint64{1, 0x1a}, eperm},
	{"personality", [6]uint64{0}, "allow"},
	{"personality", [6]uint64{0x40000}, "allow"},
	{"personality", [6]uint64{0xffffffff}, "allow"},
	{"personality", [6]uint64{^uint64(0)}, "allow"},
	{"personality", [6]uint64{0x100000}, eperm}, // MMAP_PAGE_ZERO
	{"personality", [6]uint64{0x400000}, eperm}, // READ_IMPLIES_EXEC
	{"personality", [6]uint64{6}, eperm},
}

func TestVerdicts(t *testing.T) {
	all := slices.Concat(verdicts, options)
	for _, arch := range []string{"amd64", "arm64"} {
		prog := compiled(t, arch)
		for _, c := range all {
			nr, ok := sysnum.Number(arch, c.name)
			if !ok {
				continue
			}
			if got := word(verdict(t, prog, auditArch[arch], nr, c.args)); got != c.want {
				t.Errorf("%s %s %#x: got %s, want %s", arch, c.name, c.args, got, c.want)
			}
		}
	}
}
