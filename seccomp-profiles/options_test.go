package profiles_test

import "testing"

// options are verdicts of setsockopt, by level and option.
var options = []answered{
	{"setsockopt", [6]uint64{3, 1, 2}, "allow"},                 // SO_REUSEADDR
	{"setsockopt", [6]uint64{3, 1<<32 | 1, 1<<32 | 9}, "allow"}, // SO_KEEPALIVE, garbage above
	{"setsockopt", [6]uint64{3, 1, 13}, "allow"},                // SO_LINGER
	{"setsockopt", [6]uint64{3, 1, 66}, "allow"},                // SO_RCVTIMEO_NEW
	{"setsockopt", [6]uint64{3, 1, 26}, eperm},                  // SO_ATTACH_FILTER
	{"setsockopt", [6]uint64{3, 1<<32 | 1, 26}, eperm},
	{"setsockopt", [6]uint64{3, 1, 50}, eperm},       // SO_ATTACH_BPF
	{"setsockopt", [6]uint64{3, 1 << 33, 26}, noopt}, // level 0
	{"setsockopt", [6]uint64{3, 1, 1}, noopt},        // SO_DEBUG
	{"setsockopt", [6]uint64{3, 1, 37}, noopt},       // SO_TIMESTAMPING
	{"setsockopt", [6]uint64{3, 1, 60}, noopt},       // SO_ZEROCOPY
	{"setsockopt", [6]uint64{3, 1, 73}, noopt},       // SO_RESERVE_MEM
	{"setsockopt", [6]uint64{3, 6, 1}, "allow"},      // TCP_NODELAY
	{"setsockopt", [6]uint64{3, 6, 18}, "allow"},     // TCP_USER_TIMEOUT
	{"setsockopt", [6]uint64{3, 6, 31}, noopt},       // TCP_ULP
	{"setsockopt", [6]uint64{3, 6, 14}, noopt},       // TCP_MD5SIG
	{"setsockopt", [6]uint64{3, 6, 32}, noopt},       // TCP_MD5SIG_EXT
	{"setsockopt", [6]uint64{3, 6, 38}, noopt},       // TCP_AO_ADD_KEY
	{"setsockopt", [6]uint64{3, 6, 1<<32 | 38}, noopt},
	{"setsockopt", [6]uint64{3, 6, 19}, noopt},     // TCP_REPAIR
	{"setsockopt", [6]uint64{3, 0, 1}, "allow"},    // IP_TOS
	{"setsockopt", [6]uint64{3, 0, 11}, "errno 0"}, // IP_RECVERR, which is not set
	{"setsockopt", [6]uint64{3, 0, 4}, noopt},      // IP_OPTIONS
	{"setsockopt", [6]uint64{3, 0, 41}, noopt},     // IP_MSFILTER
	{"setsockopt", [6]uint64{3, 0, 64}, noopt},     // IPT_SO_SET_REPLACE
	{"setsockopt", [6]uint64{3, 0, 35}, enodev},    // IP_ADD_MEMBERSHIP
	{"setsockopt", [6]uint64{3, 0, 1<<32 | 35}, enodev},
	{"setsockopt", [6]uint64{3, 0, 39}, enodev},     // IP_ADD_SOURCE_MEMBERSHIP
	{"setsockopt", [6]uint64{3, 0, 42}, enodev},     // MCAST_JOIN_GROUP
	{"setsockopt", [6]uint64{3, 0, 46}, enodev},     // MCAST_JOIN_SOURCE_GROUP
	{"setsockopt", [6]uint64{3, 41, 25}, "errno 0"}, // IPV6_RECVERR
	{"setsockopt", [6]uint64{3, 41, 26}, "allow"},   // IPV6_V6ONLY
	{"setsockopt", [6]uint64{3, 41, 20}, enodev},    // IPV6_ADD_MEMBERSHIP
	{"setsockopt", [6]uint64{3, 1<<32 | 41, 20}, enodev},
	{"setsockopt", [6]uint64{3, 41, 27}, enodev},   // IPV6_JOIN_ANYCAST
	{"setsockopt", [6]uint64{3, 41, 42}, enodev},   // MCAST_JOIN_GROUP
	{"setsockopt", [6]uint64{3, 41, 46}, enodev},   // MCAST_JOIN_SOURCE_GROUP
	{"setsockopt", [6]uint64{3, 41, 32}, noopt},    // IPV6_FLOWLABEL_MGR
	{"setsockopt", [6]uint64{3, 41, 57}, noopt},    // IPV6_RTHDR
	{"setsockopt", [6]uint64{3, 41, 1}, noopt},     // IPV6_ADDRFORM
	{"setsockopt", [6]uint64{3, 17, 103}, "allow"}, // UDP_SEGMENT
	{"setsockopt", [6]uint64{3, 17, 100}, noopt},   // UDP_ENCAP
	{"setsockopt", [6]uint64{3, 282, 1}, noopt},    // SOL_TLS
	{"setsockopt", [6]uint64{3, 270, 1}, noopt},    // SOL_NETLINK
}

// TestFewOptionsAreOpen counts what setsockopt allows: one more is a decision,
// to be made here as well.
func TestFewOptionsAreOpen(t *testing.T) {
	want := map[uint64]int{0: 12, 1: 19, 6: 16, 17: 2, 41: 14}
	prog := compiled(t, "arm64")
	for level := range uint64(300) {
		open := 0
		for option := range uint64(300) {
			if word(verdict(t, prog, auditArch["arm64"], 208, [6]uint64{3, level, option})) == "allow" {
				open++
			}
		}
		if open != want[level] {
			t.Errorf("level %d: %d options are open, want %d", level, open, want[level])
		}
	}
}
