package policy

// refusedFlags are docker run's that can only weaken the sandbox, or that mean
// something which is not here. They are known by name, so that a line copied
// from docker fails with the reason and never half works.
func refusedFlags() []Flag {
	const (
		noNet   = "the sandbox has a loopback of its own and nothing else"
		noPeers = "nothing connects to the sandbox from outside"
		noNames = "names are looked up by the host as its own programs do (/etc/hosts counts), and only those that are listed"
		list    = "--allow-host example.org:443"
		noDev   = "a device node leads around every limit and into the kernel's drivers"
		perCPU  = "it is relative to the host's other load, so it bounds nothing"
		noName  = "a sandbox lives for one run and has no record to keep it in"
		noImage = "an image is what was imported, for this machine"
		noStop  = "a sandbox is never asked to stop: at its limit the whole tree is killed"
		noLog   = "there is no daemon that keeps logs; stdout and stderr are the caller's"
	)
	weak := func(name, short, why, instead string) Flag {
		return Flag{Name: name, Short: short, Arg: "VALUE", Refused: why, Instead: instead}
	}
	weakBool := func(name, short, why, instead string) Flag {
		return Flag{Name: name, Short: short, Bool: true, Refused: why, Instead: instead}
	}
	return []Flag{
		weakBool("privileged", "", "it gives the program every capability and every device of the host", ""),
		weak("cap-add", "", "no capability is ever given: the other layers rest on that", ""),
		weak("device", "", noDev, ""),
		weak("device-cgroup-rule", "", noDev, ""),
		weak("gpus", "", noDev, ""),
		weak("group-add", "", "a further group opens the host files that belong to it", ""),
		weak("volumes-from", "", "there are no other containers' files here", "-v SRC:DST:ro"),
		weak("link", "", "there are no other containers here; what else a program needs is listed", list),
		weak("publish", "p", noPeers, ""),
		weakBool("publish-all", "P", noPeers, ""),
		weak("expose", "", noPeers, ""),
		weak("dns", "", noNames, list),
		weak("dns-search", "", noNames, list),
		weak("dns-option", "", noNames, list),
		weak("add-host", "", noNames, list),
		weak("ip", "", noNet, ""),
		weak("ip6", "", noNet, ""),
		weak("mac-address", "", noNet, ""),
		weak("network-alias", "", noNet, ""),
		weak("domainname", "", "the host name is always sandglass", ""),
		weak("sysctl", "", "kernel settings stay as the host has them", ""),
		weak("runtime", "", "sandglass is the runtime", ""),
		weakBool("oom-kill-disable", "", "a full sandbox would hang instead of ending", "--memory 256m"),
		weak("oom-score-adj", "", "the host's choice of what to kill is not the program's", "--memory 256m"),
		weak("memory-reservation", "", "a soft limit bounds nothing", "--memory 256m"),
		weak("kernel-memory", "", "kernel memory already counts", "--memory 256m"),
		weak("shm-size", "", "/dev/shm is part of the scratch", "--disk 64m"),
		weak("storage-opt", "", "there is no writable layer, only the scratch", "--disk 64m"),
		weak("cpu-shares", "", perCPU, "--cpus 1"),
		weak("blkio-weight", "", perCPU, "--device-read-bps /dev/vda:10m"),
		weak("cpu-period", "", "the rate is set in one place", "--cpus 0.5"),
		weak("cpu-quota", "", "the rate is set in one place", "--cpus 0.5"),
		weak("cpuset-cpus", "", "the rate is set in one place", "--cpus 0.5"),
		weak("cpuset-mems", "", "memory nodes cannot be chosen", ""),
		weakBool("detach", "d", "a run ends with its caller, or it would be unwatched", "sandglass run script.py &"),
		weak("detach-keys", "", "a run ends with its caller, or it would be unwatched", ""),
		weak("attach", "a", "stdout and stderr are always attached", "sandglass run -i -- COMMAND"),
		weak("name", "", noName, ""),
		weak("label", "l", noName, ""),
		weak("label-file", "", noName, ""),
		weak("cidfile", "", noName, "--result FILE"),
		weak("platform", "", noImage, ""),
		weak("health-cmd", "", noImage, ""),
		weak("stop-timeout", "", noStop, "--timeout 10s"),
		weak("stop-signal", "", noStop, "--timeout 10s"),
		weak("log-driver", "", noLog, ""),
		weak("log-opt", "", noLog, ""),
		weak("volume-driver", "", "there are no volumes, only paths", "-v SRC:DST:ro"),
	}
}
