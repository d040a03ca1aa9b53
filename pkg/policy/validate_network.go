package policy

import (
	"time"

	"sandglass/internal/refusal"
	"sandglass/pkg/egress/hosts"
)

const (
	maxNetOpen  = int64(1024) // each takes descriptors and pipes of the supervisor's
	maxNetTotal = int64(1) << 20
	minNetRate  = int64(1) << 10
	minNetIdle  = time.Second
)

func (c SNICheck) check() error {
	switch c {
	case SNI443, SNIAll, SNIOff:
		return nil
	}
	return refusal.Newf("%s is none of 443, all, off", quote(string(c)))
}

// checkHosts refuses a list that is malformed, and limits out of bounds.
func checkHosts(s *Spec) error {
	if len(s.Hosts) == 0 {
		return nil
	}
	if _, err := hosts.Parse(s.Hosts); err != nil {
		return err
	}
	if err := s.ServerNames.check(); err != nil {
		return refusal.Newf("--tls-sni-check: %v", err)
	}
	n := &s.Limits.Net
	for _, f := range []struct {
		flag           string
		v, least, most int64
		zero           bool
	}{
		{"--net-connections", n.Open, 1, maxNetOpen, false},
		{"--net-connections-total", n.Total, 1, maxNetTotal, false},
		{"--net-upload", n.Upload, 1, MaxSize, false},
		{"--net-download", n.Download, 1, MaxSize, false},
		{"--net-rate", n.Rate, minNetRate, MaxSize, true},
	} {
		if (f.v < f.least || f.v > f.most) && !(f.zero && f.v == 0) {
			return refusal.Newf("%s: %d is not between %d and %d", f.flag, f.v, f.least, f.most).Hint("%s %d", f.flag, min(max(f.v, f.least), f.most))
		}
	}
	if n.Idle < minNetIdle || n.Idle > MaxDuration {
		return refusal.Newf("--net-idle: %v is not between %v and 720h", n.Idle, minNetIdle).Hint("--net-idle 5m")
	}
	return nil
}
