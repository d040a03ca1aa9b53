package resolver

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// The bounds of what a program can keep open. Beyond them it is told to ask
// later, or its connection is closed.
const (
	maxWaiting   = 256 // queries of one UDP socket that wait for the host
	maxPipelined = 16  // of one connection
	maxStreams   = 32  // connections
	idle         = 30 * time.Second
	slowReader   = 10 * time.Second
)

// ServePacket answers until the socket is closed, which is no error. It returns
// when nothing of it goes on any more.
func (s *Server) ServePacket(pc net.PacketConn) error {
	ctx, cancel := context.WithCancel(context.Background())
	var pending sync.WaitGroup
	defer pending.Wait()
	defer cancel()
	var waiting slots
	buf := make([]byte, maxQuery+1)
	for {
		n, from, err := pc.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			// The host is short of memory. Names must not be gone for the rest of the
			// run, nor a CPU meanwhile.
			time.Sleep(window)
			continue
		}
		s.pause(ctx)
		if n > maxQuery {
			continue // the rest of it is lost
		}
		reply, q := s.start(buf[:n])
		if q != nil && !waiting.take(maxWaiting) {
			reply, q = q.busy(), nil
		}
		if q == nil {
			send(pc, reply, from)
			continue
		}
		pending.Go(func() {
			defer waiting.give()
			send(pc, s.finish(ctx, q), from)
		})
	}
}

// send answers over UDP. Whether it arrives nobody knows there: the program asks
// again.
func send(pc net.PacketConn, reply []byte, to net.Addr) {
	if reply != nil {
		_, _ = pc.WriteTo(reply, to)
	}
}

// ServeConn answers the queries of one connection, several at once, until it is
// closed by either side or idle for too long; then it closes it. It returns when
// nothing of it goes on any more: at once after Close of conn, but for a program
// that has sent its last query and still waits; that takes its lookup with it.
func (s *Server) ServeConn(conn net.Conn) {
	defer conn.Close()
	if !s.streams.take(maxStreams) {
		return
	}
	defer s.streams.give()
	ctx, cancel := context.WithCancel(context.Background())
	var pending sync.WaitGroup
	defer pending.Wait()
	defer cancel()
	w := &writer{conn: conn}
	var waiting slots
	for {
		msg, err := readMessage(conn)
		if err != nil {
			if err == io.EOF {
				pending.Wait() // the program has asked all and reads on
			}
			return
		}
		s.pause(ctx)
		reply, q := s.start(msg)
		if q != nil && !waiting.take(maxPipelined) {
			reply, q = q.busy(), nil
		}
		if q == nil {
			w.write(reply)
			continue
		}
		pending.Go(func() {
			defer waiting.give()
			w.write(s.finish(ctx, q))
		})
	}
}

// readMessage reads one message with its length before it. All of it has to come
// within idle: a byte now and then does not keep a connection.
func readMessage(conn net.Conn) ([]byte, error) {
	if err := conn.SetReadDeadline(time.Now().Add(idle)); err != nil {
		return nil, err
	}
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint16(size[:])
	if n < header || n > maxQuery {
		return nil, errors.New("no query has that length")
	}
	msg := make([]byte, n)
	_, err := io.ReadFull(conn, msg)
	return msg, err
}

// writer keeps the answers of one connection apart. A program that reads none of
// them loses the connection.
type writer struct {
	mu   sync.Mutex
	conn net.Conn
}

func (w *writer) write(reply []byte) {
	if reply == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.conn.SetWriteDeadline(time.Now().Add(slowReader))
	b := binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(reply)), uint16(len(reply)))
	if _, err := w.conn.Write(append(b, reply...)); err != nil {
		w.conn.Close()
	}
}
