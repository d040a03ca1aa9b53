package cgroup

import (
	"strings"
)

// cpuset is joined for two reasons. A JVM takes the memory limit for real only
// when it finds all of memory, cpu, cpuacct and cpuset; and only a group that
// the program is in is the root of its cgroup namespace: the path of another
// one, with the caller's PID in it, would stand in /proc/self/mountinfo.
const cpuset = "cpuset"

// setCPUs gives a new cpuset group its CPUs and memory nodes, without which
// nothing can join. The order is what makes it cheap: with load balancing off,
// while there are no CPUs yet, none of the writes rebuilds the scheduler's
// domains (update_flag and update_cpumask of kernel/cgroup/cpuset-v1.c). The
// domains are those of the groups above, in which balancing stays on.
func (g *Group) setCPUs(d *dir) *cause {
	if c := d.set("cpuset.sched_load_balance", "0"); c != nil {
		return c
	}
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value := ""
		if file == "cpuset.cpus" {
			value = g.limits.CPUs
		}
		if value == "" {
			path := above(d.path) + "/" + file
			s, err := readPath(path, maxSmall)
			if err != nil {
				return explain("read", path, err)
			}
			value = strings.TrimSpace(s)
		}
		if value == "" {
			return because(above(d.path) + "/" + file + " is empty: nothing can join a group below it")
		}
		if c := d.set(file, value); c != nil {
			return c
		}
	}
	return nil
}
