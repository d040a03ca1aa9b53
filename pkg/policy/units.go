package policy

import (
	"strconv"
	"strings"
	"time"

	"sandglass/internal/refusal"
)

// MaxSize is the largest size that can be asked for, 1 PiB. The kernel reads a
// memory.max near the top of its 64 bits as "no limit", so sizes stop far below.
const MaxSize = int64(1) << 50

// MaxDuration is the longest time limit.
const MaxDuration = 30 * 24 * time.Hour

// MaxMilliCPU is the largest CPU rate, 4096 CPUs. The host is not asked how
// many it has: the same policy must mean the same everywhere.
const MaxMilliCPU = int64(4096 * 1000)

// maxCount bounds every count well inside what the kernel stores in 32 bits.
const maxCount = int64(1) << 31

// ParseSize reads a number of bytes: 4096, 64k, 256m, 1.5g, 512MiB. As in
// docker run every suffix is a power of 1024, in either case. Zero and negative
// sizes are refused, because elsewhere they mean "no limit".
func ParseSize(s string) (int64, error) {
	digits, unit := splitUnit(s)
	shift, ok := sizeShift(unit)
	if !ok || digits == "" {
		return 0, notA("size", s).Hint("write bytes with a unit: 64k, 256m, 1g")
	}
	n, ok := fixedPoint(digits, int64(1)<<shift)
	switch {
	case !ok:
		return 0, notA("size", s).Hint("write bytes with a unit: 64k, 256m, 1g")
	case n > MaxSize:
		return 0, refusal.Newf("%s is too large: at most 1024t", quote(s))
	case n == 0:
		return 0, refusal.Newf("%s is not a limit: a size must be above 0", quote(s)).
			Hint("there is no way to ask for no limit; name one you can afford: 1g")
	}
	return n, nil
}

func sizeShift(unit string) (uint, bool) {
	switch strings.ToLower(unit) {
	case "", "b":
		return 0, true
	case "k", "kb", "kib":
		return 10, true
	case "m", "mb", "mib":
		return 20, true
	case "g", "gb", "gib":
		return 30, true
	case "t", "tb", "tib":
		return 40, true
	}
	return 0, false
}

// ParseDuration reads a time limit: Go's form (500ms, 1m30s) or bare seconds
// (10, 2.5). It is above 0 and at most MaxDuration.
func ParseDuration(s string) (time.Duration, error) {
	text := s
	if digits, unit := splitUnit(s); digits != "" && unit == "" {
		text += "s"
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil || strings.HasPrefix(s, "+"):
		return 0, notA("duration", s).Hint("write seconds or a unit: 10, 2.5, 500ms, 1m30s")
	case d <= 0:
		return 0, refusal.Newf("%s is not a limit: a duration must be above 0", quote(s)).
			Hint("there is no way to ask for no limit; name one you can wait for: 10m")
	case d > MaxDuration:
		return 0, refusal.Newf("%s is too long: at most 720h (30 days)", quote(s))
	}
	return d, nil
}

// ParseCPUs reads a CPU rate such as 0.5 or 2 and returns thousandths of a CPU.
// Digits past the third are dropped: a limit is never rounded up.
func ParseCPUs(s string) (int64, error) {
	digits, unit := splitUnit(s)
	n, ok := fixedPoint(digits, 1000)
	switch {
	case unit != "" || !ok:
		return 0, notA("number of CPUs", s).Hint("write a decimal number: 0.5, 1, 2")
	case n < minMilliCPU:
		return 0, refusal.Newf("%s is too small: at least 0.01 CPUs", quote(s))
	case n > MaxMilliCPU:
		return 0, refusal.Newf("%s is too large: at most 4096 CPUs", quote(s))
	}
	return n, nil
}

// ParseCount reads a number of things above 0: 64, or 16k for 16384.
func ParseCount(s string) (int64, error) {
	digits, unit := splitUnit(s)
	shift := uint(0)
	switch unit {
	case "":
	case "k":
		shift = 10
	case "m":
		shift = 20
	default:
		digits = ""
	}
	n, ok := fixedPoint(digits, int64(1)<<shift)
	switch {
	case !ok || strings.Contains(digits, "."):
		return 0, notA("count", s).Hint("write a whole number above 0: 64, 1024, 16k")
	case n == 0:
		return 0, refusal.Newf("%s is not a limit: a count must be above 0", quote(s))
	case n > maxCount:
		return 0, refusal.Newf("%s is too large: at most %d", quote(s), maxCount)
	}
	return n, nil
}

// splitUnit cuts s where its digits and points end.
func splitUnit(s string) (digits, unit string) {
	end := strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if end < 0 {
		return s, ""
	}
	return s[:end], s[end:]
}

// fixedPoint is digits * scale, rounded down, without passing through a float:
// a limit must not depend on how a binary fraction rounds. It is more than
// MaxSize for everything above that.
func fixedPoint(digits string, scale int64) (int64, bool) {
	whole, frac, point := strings.Cut(digits, ".")
	if whole == "" || (point && frac == "") || strings.Contains(frac, ".") {
		return 0, false
	}
	if len(frac) > 6 {
		frac = frac[:6] // 10^6 * 2^40 still fits
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n > MaxSize/scale {
		return MaxSize + 1, true
	}
	f, pow := int64(0), int64(1)
	for _, d := range []byte(frac) {
		f, pow = f*10+int64(d-'0'), pow*10
	}
	return n*scale + f*scale/pow, true
}

// FormatSize writes bytes with the largest unit that divides them.
func FormatSize(n int64) string {
	units := [...]string{"", "k", "m", "g", "t"}
	i := 0
	for n != 0 && n%1024 == 0 && i < len(units)-1 {
		n, i = n/1024, i+1
	}
	return strconv.FormatInt(n, 10) + units[i]
}

func notA(kind, s string) *refusal.Error {
	if strings.HasPrefix(s, "-") {
		return refusal.Newf("%s is negative or not a %s", quote(s), kind)
	}
	return refusal.Newf("%s is not a %s", quote(s), kind)
}

// quote shows a caller's text so that it cannot fill or steer a terminal.
func quote(s string) string {
	const most = 80
	if len(s) > most {
		return strconv.Quote(s[:most]) + "..."
	}
	return strconv.Quote(s)
}
