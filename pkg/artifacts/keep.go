package artifacts

import (
	"context"

	"golang.org/x/sys/unix"

	"sandglass/pkg/result"
)

// Keep is Collect into memory: the manifest has each file's content, and nothing
// is written on the host, so that nothing is left there whenever the supervisor is
// killed; by may be nil, see CollectOwned. The rules are Collect's but for those of a destination. Limits.Bytes
// bounds the memory: what is not UTF-8 takes a third more.
func Keep(ctx context.Context, srcFD int, by Opener, l Limits) ([]result.Artifact, error) {
	c := &collector{limits: l, kept: true, owned: by}
	return c.collect(ctx, srcFD, nil)
}

// remember reads the pinned file into its row of the manifest.
func (c *collector) remember(in int, a result.Artifact, st *unix.Stat_t) {
	var data result.Capture
	size, sum, err := c.copy(in, &data, a.Path)
	if err != nil {
		c.fail(a, err)
		return
	}
	var s result.Stream
	s.Take(&data)
	a.Size, a.SHA256, a.Mode, a.Text, a.Base64 = size, sum, octal(st.Mode&0o755|0o600), s.Text, s.Base64
	c.add(a)
}
