package boxinit

import (
	"os"

	"sandglass/pkg/wire"
)

// receivePlan waits for the plan and the descriptors that it counts. Without
// one there is nobody to tell: the supervisor is gone, or has changed its mind.
func receivePlan(b *box) error {
	t, body, files := receive(b.control)
	if t != wire.TypeConfig {
		return wire.ErrMalformed
	}
	var err error
	if b.cfg, err = wire.DecodeConfig(body); err != nil {
		return err
	}
	return numberAll(b.cfg, files)
}

// receive reads the next frame, and the descriptors that come before it.
func receive(control int) (t wire.Type, body []byte, files []int) {
	for {
		t, body, fds, err := wire.ReadFrameWithFiles(control, wire.MaxConfig, wire.MaxFiles)
		if err != nil {
			os.Exit(1)
		}
		files = append(files, fds...)
		if t != wire.TypeFiles {
			return t, body, files
		}
	}
}

// numberAll turns the plan's descriptor fields into numbers of this process.
func numberAll(c *wire.Config, files []int) error {
	fields := []*int32{&c.Box, &c.Stdin, &c.Stdout, &c.Stderr}
	for i := range c.Tasks {
		fields = append(fields, &c.Tasks[i])
	}
	for i := range c.Mounts {
		fields = append(fields, &c.Mounts[i].FD)
	}
	return number(files, fields...)
}

func number(files []int, fields ...*int32) error {
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
