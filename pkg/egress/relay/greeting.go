package relay

import (
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"sandglass/pkg/egress/hello"
	"sandglass/pkg/result"
)

// greetingTime is for the whole hello: one that comes byte by byte holds a slot.
const greetingTime = 10 * time.Second

var (
	errLate      = errors.New("no TLS hello within " + greetingTime.String())
	errOtherName = errors.New("TLS hello for another server name")
	errCutShort  = errors.New("TLS hello cut short")
)

// checked says whether the connection must begin with a hello for its name.
func (c *conn) checked() bool {
	switch {
	case c.name == "":
		return false
	case c.s.cfg.SNI == SNIOff:
		return false
	case c.s.cfg.SNI == SNIAll:
		return true
	}
	return c.dest.Port() == 443
}

// greeting reads the TLS hello and compares its server name, before anything is
// dialled: a name that shares its server with others would else be a way to all
// of them. What was read is to be sent on.
func (c *conn) greeting() (read []byte, ok bool) {
	if !c.checked() {
		return nil, true
	}
	c.inside.SetReadDeadline(time.Now().Add(greetingTime))
	defer c.inside.SetReadDeadline(time.Time{})
	var p hello.Parser
	buf := make([]byte, 4096)
	for {
		n, err := c.inside.Read(buf)
		read = append(read, buf[:n]...)
		name, done, bad := p.Feed(buf[:n])
		if done && !strings.EqualFold(name, c.name) {
			bad = errOtherName
		}
		if bad != nil {
			c.cut(result.ServerName, bad)
			return nil, false
		}
		if done {
			return read, true
		}
		if err != nil {
			c.noHello(len(read), err)
			return nil, false
		}
	}
}

// noHello is the verdict on a connection whose hello did not come. One without a
// byte is a probe, or the slower of two that a client tried at once.
func (c *conn) noHello(read int, err error) {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.cut(result.ServerName, errLate)
	case !errors.Is(err, io.EOF):
		c.cut(result.Reset, err)
	case read == 0:
		c.cut(result.Closed, nil)
	default:
		c.cut(result.ServerName, errCutShort)
	}
}
