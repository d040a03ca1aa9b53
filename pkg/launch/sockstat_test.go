package launch

import (
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	statFour = `sockets: used 13
TCP: inuse 3 orphan 70 tw 10 alloc 90 mem 136
UDP: inuse 2 mem 341
UDPLITE: inuse 0
RAW: inuse 0
FRAG: inuse 0 memory 0
`
	statSix = `TCP6: inuse 4
UDP6: inuse 5
UDPLITE6: inuse 0
RAW6: inuse 0
FRAG6: inuse 0 memory 0
`
)

func statDir(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir() + "/"
	for name, text := range files {
		if err := os.WriteFile(dir+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestCounts: what the kernel says, and what a file that is not the known one means.
func TestCounts(t *testing.T) {
	odd := counts{used: oddUsed, tcp: oddUsed, pages: -1}
	for name, c := range map[string]struct {
		files map[string]string
		want  counts
		ok    bool
	}{
		"both":      {map[string]string{"sockstat": statFour, "sockstat6": statSix}, counts{used: 13, tcp: 7, udp: 7, waiting: 10, pages: 136, packets: 341}, true},
		"four":      {map[string]string{"sockstat": statFour}, counts{used: 13, tcp: 3, udp: 2, waiting: 10, pages: 136, packets: 341}, true},
		"gone":      {nil, counts{}, false},
		"empty":     {map[string]string{"sockstat": ""}, odd, true},
		"other":     {map[string]string{"sockstat": "TCP: inuse 3 tw 10\n"}, odd, true},
		"other six": {map[string]string{"sockstat": statFour, "sockstat6": "TCP6: 4\n"}, odd, true},
	} {
		got, ok := countsIn(statDir(t, c.files))
		if got != c.want || ok != c.ok {
			t.Errorf("%s: %+v %v, want %+v %v", name, got, ok, c.want, c.ok)
		}
	}
}

// TestUnseen: what the kernel's count of pages may leave out, and when it is nothing
// to go by.
func TestUnseen(t *testing.T) {
	mib := int64(1<<20) / int64(os.Getpagesize())
	for _, c := range []struct {
		online string
		files  map[string]string
		want   int64
	}{
		{"0", nil, mib},
		{"0-3,8\n", nil, 9 * mib},
		{"0-3\n", map[string]string{"mem_pcpu_rsv": "1000\n"}, 4000},
		{"0-3\n", map[string]string{"bypass_prot_mem": "0\n"}, 4 * mib},
		{"0-3\n", map[string]string{"bypass_prot_mem": "1\n"}, -1},
		{"", nil, -1},
	} {
		dir := statDir(t, c.files)
		online := statDir(t, map[string]string{"online": c.online}) + "online"
		if got := unseen(dir, online); got != c.want {
			t.Errorf("%q, %v: %d, want %d", c.online, c.files, got, c.want)
		}
	}
	if got := unseen(t.TempDir()+"/", t.TempDir()+"/none"); got != -1 {
		t.Errorf("%d CPUs are not known", got)
	}
}

// TestMostTCP: everything of everybody, and what each socket takes itself.
func TestMostTCP(t *testing.T) {
	c := counts{used: 10, waiting: 4, pages: 100}
	want := (100+unseenPages())*int64(os.Getpagesize()) + 10*2*socketSize + 4*waitSize
	if got, ok := c.mostTCP(); !ok || got != want {
		t.Errorf("%d, %v, want %d", got, ok, want)
	}
	c.pages = -1
	if _, ok := c.mostTCP(); ok {
		t.Error("the kernel did not say")
	}
}

// fill writes until it would block, and says how many bytes that were.
func fill(t *testing.T, c *net.TCPConn, most int64) (sum int64) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 64<<10)
	err = raw.Control(func(fd uintptr) {
		for n := 1; n > 0 && sum < most; sum += int64(n) {
			n, _ = unix.Write(int(fd), block)
			n = max(n, 0)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// filled is connections over the loopback with so many bytes in their buffers.
func filled(t *testing.T, want int64) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	for want > 0 {
		c, err := net.Dial("tcp4", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		want -= fill(t, c.(*net.TCPConn), want)
	}
}

// TestTCPIsBounded: where the kernel's count would pass what is left of the limit
// the tables are read, and tell every byte; where not, they are left alone.
func TestTCPIsBounded(t *testing.T) {
	if !alone(t) {
		return
	}
	const size = 16 << 20
	filled(t, size)
	self := newTree(os.Getpid())
	for _, left := range []int64{0, size} {
		if got, ok := self.sockets(everySocket, left, far()); !ok || got < size {
			t.Errorf("%d bytes, %v, with %d left; %d are in the buffers", got, ok, left, size)
		}
		if _, ok := self.sockets(everySocket, left, past()); ok {
			t.Error("the tables were read in no time")
		}
	}
	got, ok := self.sockets(everySocket, 1<<50, far())
	if c, _ := countsIn("/proc/self/net/"); !ok || got >= size || got < c.tcp*socketSize {
		t.Errorf("%d bytes, %v, of %+v: the tables were read", got, ok, c)
	}
}
