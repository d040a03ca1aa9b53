package wire

import (
	"io"

	"golang.org/x/sys/unix"
)

// ReadFrameWithFiles reads one frame from a socket, with the descriptors that
// came with it, close-on-exec from the start. More than most of them, or ones
// that did not fit into this process's table, are ErrMalformed: a peer that
// was taken over must not fill the table of the other. After an error no
// descriptor is left open.
func ReadFrameWithFiles(socket, limit, most int) (Type, []byte, []int, error) {
	return ReadFrameBy(func(p, oob []byte) (n, oobn, flags int, err error) {
		n, oobn, flags, _, err = unix.Recvmsg(socket, p, oob, unix.MSG_CMSG_CLOEXEC)
		return n, oobn, flags, err
	}, limit, most)
}

// Recv is recvmsg of a socket, with MSG_CMSG_CLOEXEC.
type Recv func(p, oob []byte) (n, oobn, flags int, err error)

// ReadFrameBy is ReadFrameWithFiles for who waits in another way than in the call.
func ReadFrameBy(recv Recv, limit, most int) (Type, []byte, []int, error) {
	r := &rightsReader{recv: recv, most: most}
	t, body, err := ReadFrame(r, limit)
	if err != nil {
		for _, fd := range r.fds {
			unix.Close(fd)
		}
		return 0, nil, nil, err
	}
	return t, body, r.fds, nil
}

// rightsReader takes up the descriptors on its way.
type rightsReader struct {
	recv Recv
	most int
	fds  []int
}

func (r *rightsReader) Read(p []byte) (int, error) {
	oob := make([]byte, unix.CmsgSpace(4*r.most))
	n, oobn, flags, err := r.recv(p, oob)
	for err == unix.EINTR {
		n, oobn, flags, err = r.recv(p, oob)
	}
	if err != nil {
		return 0, err
	}
	// Before anything is refused: what arrived is in the table already.
	if err := r.take(oob[:oobn]); err != nil {
		return 0, err
	}
	if flags&unix.MSG_CTRUNC != 0 || len(r.fds) > r.most {
		return 0, ErrMalformed
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (r *rightsReader) take(oob []byte) error {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return err
	}
	for i := range msgs {
		fds, err := unix.ParseUnixRights(&msgs[i])
		if err != nil {
			return err
		}
		r.fds = append(r.fds, fds...)
	}
	return nil
}
