package result

// Weaker says what stands in for a limit that no control group holds, because
// the caller let it be missing by name, and what that does not see. It has a line
// for each name of --allow-degraded ("cpu" is "cpus" in a result) and for
// cpu_time; every other limit is the same with and without a group. doctor says
// the same, docs/DOCTOR.md has the table with its tests.
func Weaker(limit string) string {
	switch limit {
	case "memory":
		return "the supervisor looks every 20 ms: what comes and goes in between passes, buffers of pipes and sockets are not seen"
	case "cpu", "cpus":
		return "no rate is held: the program starts on as many CPUs as the rate could keep busy, and a crowd is made nice"
	case "pids":
		return "RLIMIT_NPROC in the sandbox's own user namespace: as exact, but how many there were is not known"
	case "io":
		return "nothing holds it: the program reads and writes as fast as the device does"
	case "cpu_time":
		return "the supervisor looks every 20 ms, and what children have used whom nobody waits for may not count"
	}
	return ""
}
