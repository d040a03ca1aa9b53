package launch

import "sandglass/pkg/cgroup"

// oomWatch hears of the kernel's kills for memory on cgroup v1, where they take
// one process and leave the rest of the box running.
type oomWatch struct {
	killed <-chan struct{} // nil where nothing is to be heard
	event  *cgroup.OOM
}

// watchOOM listens as long as the box runs. A host that cannot tell is none
// worse than one without the event: the verdict counts the kills at the end.
func watchOOM(g *cgroup.Group) *oomWatch {
	if g == nil {
		return &oomWatch{}
	}
	event, err := g.WatchOOM()
	if err != nil || event == nil {
		return &oomWatch{}
	}
	killed := make(chan struct{}, 1)
	go func() {
		if event.Wait() {
			killed <- struct{}{}
		}
	}()
	return &oomWatch{killed: killed, event: event}
}

func (o *oomWatch) stop() {
	if o.event != nil {
		o.event.Close()
	}
}
