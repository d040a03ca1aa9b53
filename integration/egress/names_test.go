package egress

import (
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strings"
	"sync"

	"golang.org/x/net/dns/dnsmessage"

	"sandglass/internal/testkit"
)

// nameServer is the internet's, by UDP and TCP. It keeps what was asked.
type nameServer struct {
	mu    sync.Mutex
	zones map[string]func(n int) answer // by name in lower case; n counts its questions
	asked map[string]int
}

type answer = testkit.Names

func always(list ...string) func(int) answer {
	return func(int) answer { return answer{Addrs: addrs(list...)} }
}

func code(c dnsmessage.RCode) func(int) answer {
	return func(int) answer { return answer{Code: c} }
}

// zone are the names that every test has.
func zone() map[string]func(int) answer {
	return map[string]func(int) answer{
		"good.example":                   always(good4, good6),
		"v4.good.example":                always(good4),
		"v6.good.example":                always(good6),
		"_srv.good.example":              always(good4),
		"a.wild.example":                 always(good4),
		"b.a.wild.example":               always(good4),
		"xn--bcher-kva.example":          always(good4),
		"shared.example":                 always(good4), // the same server as good.example's
		"other.example":                  always(other4, other6),
		"10.example":                     always(private4),
		"loop.example":                   always("127.0.0.1", "::1"),
		"meta.example":                   always(metadata),
		"own.example":                    always(ownAddr),
		"ula.example":                    always(ula6),
		"mapped.example":                 always("::ffff:127.0.0.1"),
		"nat64.example":                  always(nat64),
		"mixed.example":                  always(private4, "127.0.0.1", good4),
		"several.example":                always(good4, other4),
		"dead.example":                   always(dead4),
		"fail.example":                   code(dnsmessage.RCodeServerFailure),
		"stuck.example":                  func(int) answer { return answer{Silent: true} },
		"search.example":                 always(other4),
		"nothere.example.search.example": always(other4),
	}
}

func (w *world) serveNames() *nameServer {
	w.t.Helper()
	s := &nameServer{zones: zone(), asked: map[string]int{}}
	var packets net.PacketConn
	err := w.internet.do(func() (err error) {
		packets, err = net.ListenPacket("udp", server+":53")
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { packets.Close() })
	stream := w.listen(server + ":53")
	go s.packets(packets)
	go s.streams(stream)
	return s
}

func (s *nameServer) packets(c net.PacketConn) {
	buf := make([]byte, 4096)
	for {
		n, from, err := c.ReadFrom(buf)
		if err != nil {
			return
		}
		if reply := s.reply(buf[:n]); reply != nil {
			c.WriteTo(reply, from)
		}
	}
}

func (s *nameServer) streams(l net.Listener) {
	testkit.Serve(l, func(c *net.TCPConn) {
		var head [2]byte
		for {
			if _, err := io.ReadFull(c, head[:]); err != nil {
				return
			}
			msg := make([]byte, binary.BigEndian.Uint16(head[:]))
			if _, err := io.ReadFull(c, msg); err != nil {
				return
			}
			if reply := s.reply(msg); reply != nil {
				c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...))
			}
		}
	})
}

func (s *nameServer) reply(msg []byte) []byte { return testkit.Reply(msg, s.look) }

func (s *nameServer) look(name string) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[name]++
	f := s.zones[name]
	if f == nil && strings.HasSuffix(name, ".deep.example") {
		f = always(good4)
	}
	if f == nil {
		return answer{Code: dnsmessage.RCodeNameError}
	}
	return f(s.asked[name])
}

// questions are the different names that were asked for, sorted, and forgets them.
func (s *nameServer) questions() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	for name := range s.asked {
		list = append(list, name)
	}
	s.asked = map[string]int{}
	slices.Sort(list)
	return list
}
