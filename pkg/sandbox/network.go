package sandbox

import (
	"net/netip"
	"time"

	"sandglass/internal/refusal"
	"sandglass/pkg/egress/names"
	"sandglass/pkg/launch"
	"sandglass/pkg/result"
	"sandglass/pkg/wire"
)

// Outside answers, outside of the sandbox, for the hosts that are listed.
type Outside interface {
	launch.Network
	// Settle waits for at most d until what the program sent before it ended has
	// left the sandbox.
	Settle(d time.Duration)
	// NameOf is the listed name that an address stands for inside. It may be asked
	// from any goroutine, once Start has returned.
	NameOf(addr netip.Addr) (string, bool)
	// Close ends every connection, and says what there was; nil without Start.
	Close() *result.Network
}

// connect adds the list of hosts to the box, where there is one: what stands for
// them inside, and who answers for them outside.
func (r *runner) connect() error {
	if r.plan.Hosts == nil {
		return nil
	}
	if r.spec.Outside == nil {
		return refusal.Newf("a list of hosts needs Spec.Outside").Hint("spec.Outside = outside.New   // package sandglass/pkg/sandbox/outside")
	}
	var err error
	if r.outside, err = r.spec.Outside(&r.spec.Spec); err != nil {
		return err
	}
	r.box.Network = r.outside
	if r.box.Denials != nil {
		r.box.Denials.NameOf = r.outside.NameOf
	}
	c := &r.box.Config
	for _, p := range r.plan.Routes() {
		c.Routes = append(c.Routes, wire.Route{Addr: p.Addr().AsSlice(), Bits: uint8(p.Bits()), Optional: p == names.V6})
	}
	c.Ports = r.plan.Ports()
	return nil
}

// settleTime bounds the wait for what a program sent last. Without it the last
// bytes of one that sends and exits would be lost, which no kernel does.
const settleTime = time.Second

// disconnect ends every connection, once nothing of the sandbox runs. What a
// program that was killed had still to send is not waited for.
func (r *runner) disconnect(end result.Outcome) {
	if r.outside == nil {
		return
	}
	if end == result.Exited || end == result.Signaled {
		r.outside.Settle(settleTime)
	}
	r.result.Network = r.outside.Close()
}
