package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// clientVerb makes this binary the client of the relay's measurement.
const clientVerb = "relay-client"

// The sizes of one round.
const (
	relayBytes  = 2 << 30
	relayFirsts = 300
)

// relayClient prints how long relayBytes took, and then, in nanoseconds, how
// long each of relayFirsts connections took from its begin to its first byte.
func relayClient(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s: want an address", clientVerb)
	}
	addr := args[0]
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := binary.Write(c, binary.BigEndian, uint64(relayBytes)); err != nil {
		return err
	}
	buf := make([]byte, 1<<20)
	for n := 0; n < relayBytes; {
		m, err := c.Read(buf)
		if err != nil {
			return err
		}
		n += m
	}
	fmt.Println(time.Since(began).Nanoseconds())
	c.Close()
	for range relayFirsts {
		began := time.Now()
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return err
		}
		if err := binary.Write(c, binary.BigEndian, uint64(1)); err != nil {
			return err
		}
		if _, err := io.ReadFull(c, buf[:1]); err != nil {
			return err
		}
		fmt.Println(time.Since(began).Nanoseconds())
		c.Close()
	}
	return nil
}

// relayServer sends each connection as many bytes as it asks for.
func relayServer(l net.Listener, sent chan<- struct{}) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			var n uint64
			if binary.Read(c, binary.BigEndian, &n) != nil {
				return
			}
			buf := make([]byte, min(n, 1<<20))
			for left := n; left > 0; {
				m, err := c.Write(buf[:min(left, uint64(len(buf)))])
				if err != nil {
					return
				}
				left -= uint64(m)
			}
			if n == relayBytes {
				c.Read(buf[:1]) // the client has all of it
				sent <- struct{}{}
			}
		}()
	}
}

// way is one of the two ways to the server.
type way struct {
	name   string
	cmd    func(addr string) *exec.Cmd
	rates  []float64 // Gbit/s
	perCPU []float64 // Gbit per second of the command's own CPU time, without children
	firsts []time.Duration
}

// measureRelay compares the relay with loopback alone, in turn.
func measureRelay(o *options, _ string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	sent := make(chan struct{}, 1)
	go relayServer(l, sent)
	ways := []*way{
		{name: "loopback alone", cmd: func(addr string) *exec.Cmd { return exec.Command(self, clientVerb, addr) }},
		{name: "through the relay", cmd: func(addr string) *exec.Cmd {
			args := []string{"run", "--allow-host", addr, "--net-download", "100g", "--cpus", "2", "--timeout", "120s", "-v", self + ":/opt/bench"}
			args = append(args, degraded()...)
			return exec.Command(o.sandglass, append(args, "--", "/opt/bench", clientVerb, addr)...)
		}},
	}
	for range o.relay {
		for _, w := range ways {
			if err := w.round(l.Addr().String(), sent); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
		}
	}
	reportRelay(ways)
	return nil
}

func (w *way) round(addr string, sent <-chan struct{}) error {
	cmd := w.cmd(addr)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-sent:
	case err := <-ended:
		return fmt.Errorf("ended early: %v: %s", err, errs.String())
	}
	cpu := cpuTime(cmd.Process.Pid, false)
	if err := <-ended; err != nil {
		return fmt.Errorf("%w: %s", err, errs.String())
	}
	for i, field := range strings.Fields(out.String()) {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return err
		}
		if i == 0 {
			w.rates = append(w.rates, relayBytes*8/float64(n))
			w.perCPU = append(w.perCPU, relayBytes*8/1e9/cpu.Seconds())
			continue
		}
		w.firsts = append(w.firsts, time.Duration(n))
	}
	return nil
}

func reportRelay(ways []*way) {
	var rows [][]string
	for _, w := range ways {
		rows = append(rows, []string{w.name, fmt.Sprintf("%.1f", median(w.rates)), fmt.Sprintf("%.1f", median(w.perCPU)),
			fmt.Sprintf("%.3f", median(w.firsts).Seconds()*1000), fmt.Sprintf("%.3f", quantile(w.firsts, 0.95).Seconds()*1000)})
	}
	table([]string{fmt.Sprintf("n=%d", len(ways[0].rates)), "Gbit/s", "of one CPU", "first byte median ms", "p95 ms"}, rows)
}
