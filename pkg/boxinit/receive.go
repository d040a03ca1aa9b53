package boxinit

import (
	"os"

	"sandglass/pkg/wire"
)

// receivePlan waits for the plan and the descriptors that it counts. Without
// one there is nobody to tell: the supervisor is gone, or has changed its mind.
func receivePlan(b *box) error {
	var files []int
	for {
		t, body, fds, err := wire.ReadFrameWithFiles(int(b.control.Fd()), wire.MaxConfig, wire.MaxFiles)
		files = append(files, fds...)
		switch {
		case err != nil:
			os.Exit(1)
		case t == wire.TypeFiles:
		case t != wire.TypeConfig:
			return wire.ErrMalformed
		default:
			if b.cfg, err = wire.DecodeConfig(body); err != nil {
				return err
			}
			return number(b.cfg, files)
		}
	}
}

// number turns the plan's descriptor fields into numbers of this process.
func number(c *wire.Config, files []int) error {
	fields := []*int32{&c.Box, &c.Stdin, &c.Stdout, &c.Stderr}
	for i := range c.Tasks {
		fields = append(fields, &c.Tasks[i])
	}
	for i := range c.Mounts {
		fields = append(fields, &c.Mounts[i].FD)
	}
	for _, f := range fields {
		if *f == wire.NoFD {
			continue
		}
		i := int(*f) - wire.FirstFile
		if i < 0 || i >= len(files) {
			return wire.ErrMalformed
		}
		*f = int32(files[i])
	}
	return nil
}
