// Package sysnum knows the names and numbers of every system call on amd64 and
// arm64, also of those that are newer than the libseccomp of a stable
// distribution. syscalls.tsv is the kernel's own table: name, amd64, arm64,
// with "-" where the architecture has no such call.
//
// Nothing is parsed before the first question, so linking it costs no start-up.
package sysnum

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"
)

// AuditArch is the architecture word of seccomp_data (AUDIT_ARCH_*,
// linux/audit.h), 0 for one that is neither.
func AuditArch(arch string) uint32 {
	switch arch {
	case "amd64":
		return 0xc000003e
	case "arm64":
		return 0xc00000b7
	}
	return 0
}

//go:embed syscalls.tsv
var table string

type tables struct {
	names   []string
	numbers map[string]map[string]uint32 // architecture, name
	byNum   map[string]map[uint32]string
}

var (
	once   sync.Once
	parsed tables
)

func load() *tables {
	once.Do(func() {
		arches := []string{"amd64", "arm64"}
		parsed.numbers = map[string]map[string]uint32{}
		parsed.byNum = map[string]map[uint32]string{}
		for _, arch := range arches {
			parsed.numbers[arch] = map[string]uint32{}
			parsed.byNum[arch] = map[uint32]string{}
		}
		for line := range strings.Lines(table) {
			field := strings.Fields(line)
			parsed.names = append(parsed.names, field[0])
			for i, arch := range arches {
				n, err := strconv.ParseUint(field[i+1], 10, 32)
				if err != nil {
					continue // "-"
				}
				parsed.numbers[arch][field[0]] = uint32(n)
				parsed.byNum[arch][uint32(n)] = field[0]
			}
		}
	})
	return &parsed
}

// Number is the call's number on arch ("amd64" or "arm64").
func Number(arch, name string) (uint32, bool) {
	n, ok := load().numbers[arch][name]
	return n, ok
}

// Name is the call with that number on arch.
func Name(arch string, number uint32) (string, bool) {
	name, ok := load().byNum[arch][number]
	return name, ok
}

// Names are all calls of either architecture, sorted.
func Names() []string { return append([]string(nil), load().names...) }
