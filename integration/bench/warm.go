package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// burst is how many runs of one kind follow each other, and ready how many
// sandboxes a measured session keeps for them: each run of a burst finds one.
const (
	burst = 10
	ready = burst + 2
)

// programs are what sessions run, and what does the same without a sandbox.
var programs = []struct {
	name, kind, fields string
	bare               []string
}{
	{"true", "command", `"command":["/bin/true"]`, []string{program}},
	{"python", "python", `"code":"print(1)","lang":"python"`, []string{"python3", "-c", "print(1)"}},
	{"node", "node", `"code":"console.log(1)","lang":"node"`, []string{"node", "-e", "console.log(1)"}},
}

// sessionContender asks a session of its own.
func sessionContender(o *options, name, fields, kind string) *contender {
	flags, wait := []string{"--max-running", "1"}, 0
	if kind != "" {
		flags, wait = append(flags, "--warm", fmt.Sprintf("%s=%d", kind, ready)), ready
	}
	s, err := openSession(o, flags...)
	if err == nil && kind != "" {
		err = s.filled()
	}
	if err != nil {
		return &contender{name: name, missing: err.Error()}
	}
	return &contender{
		name:  name,
		run:   func() (sample, error) { return s.ask(fields, kind != "") },
		ready: func() error { return s.full(wait) },
		total: func() time.Duration { return cpuTime(s.pid(), true) },
		stop:  func() { s.end() },
	}
}

// measureWarm compares each program bare, and in a session cold and warm, in turn.
func measureWarm(o *options, _ string) error {
	var all []*contender
	for _, p := range programs {
		bare := command("bare "+p.name, p.bare[0], p.bare[1:]...)
		if all = append(all, bare); bare.missing == "" {
			all = append(all, sessionContender(o, "session, cold "+p.name, p.fields, ""), sessionContender(o, "session, warm "+p.name, p.fields, p.kind))
		}
	}
	defer stopAll(all)
	runners := starting(all)
	n := (o.rounds + burst - 1) / burst
	for _, pause := range o.pauses {
		var err error
		if runners, err = measure(runners, rounds{n: n, warmup: 1, burst: burst, pause: pause}); err != nil {
			return err
		}
		for _, p := range programs {
			own := slices.DeleteFunc(slices.Clone(runners), func(c *contender) bool { return !strings.HasSuffix(c.name, " "+p.name) })
			report(fmt.Sprintf("%s, n=%d, %s", p.name, n*burst, between(pause)), own, "bare "+p.name)
		}
	}
	return nil
}
