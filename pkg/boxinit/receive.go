package boxinit

import (
	"os"

	"sandglass/pkg/wire"

	"golang.org/x/sys/unix"
)

// receivePlan waits for the plan and the descriptors that it counts. Without
// one there is nobody to tell: the supervisor is gone, or has changed its mind.
func receivePlan(b *box) error {
	var files []int
	for {
		r := &firstRead{fd: int(b.control.Fd())}
		t, body, err := wire.ReadFrame(r, wire.MaxConfig)
		files = append(files, r.fds...)
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

// firstRead reads the socket and takes up the descriptors on its way. They are
// close-on-exec from the start.
type firstRead struct {
	fd  int
	fds []int
}

func (r *firstRead) Read(p []byte) (int, error) {
	oob := make([]byte, unix.CmsgSpace(4*wire.MaxFiles))
	for {
		n, oobn, flags, _, err := unix.Recvmsg(r.fd, p, oob, unix.MSG_CMSG_CLOEXEC)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return 0, err
		}
		if n == 0 {
			return 0, os.ErrClosed
		}
		if flags&unix.MSG_CTRUNC != 0 {
			return 0, wire.ErrMalformed
		}
		if oobn == 0 {
			return n, nil
		}
		msgs, err := unix.ParseSocketControlMessage(oob[:oobn])
		if err != nil {
			return 0, err
		}
		for i := range msgs {
			fds, err := unix.ParseUnixRights(&msgs[i])
			if err != nil {
				return 0, err
			}
			r.fds = append(r.fds, fds...)
		}
		return n, nil
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
