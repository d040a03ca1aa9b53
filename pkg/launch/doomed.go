package launch

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Flags of a process, and their field of /proc/PID/stat behind its name.
const (
	pfExiting  = 0x4
	pfDumpCore = 0x200 // and ends then
	pfSignaled = 0x400 // by what it has begun to end for

	statFlags = 6
)

// exiting is whether a process has begun to end (PF_EXITING in the flags of
// /proc/PID/stat). It is asked after what it explains was read.
func exiting(proc string) bool {
	stat, err := statOf(proc)
	return err != nil || flagged(stat, pfExiting)
}

// flagged says whether a process has one of the flags, no where they are not told.
func flagged(stat [][]byte, flags uint64) bool {
	if len(stat) <= statFlags {
		return false
	}
	bits, _ := strconv.ParseUint(string(stat[statFlags]), 10, 64)
	return bits&flags != 0
}

// doomed is whether a process ends, or has been sent what will end it: most signals
// give each of its threads SIGKILL at once, one that writes a core, or comes while the
// process is stopped, waits until a thread takes it (complete_signal in
// kernel/signal.c). A thread takes a signal first and is marked as signaled next, so
// the marks are read last. Each thread is asked, for it may have been sent one alone, as
// by itself at an abort(3).
func doomed(proc string) bool {
	tasks, err := os.ReadDir(proc + "/task")
	if err != nil {
		return true
	}
	for _, t := range tasks {
		status, err := readProc(proc + "/task/" + t.Name() + "/status")
		if err == nil && sentenced(status) { // else it has ended, alone or with the others
			return true
		}
	}
	stat, err := statOf(proc)
	return err != nil || flagged(stat, pfExiting|pfDumpCore|pfSignaled)
}

// sentenced says whether a signal waits for a process that will end it.
func sentenced(status []byte) bool {
	var waits, lives uint64
	for line := range bytes.Lines(status) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		to := &waits
		switch string(name) {
		case "SigPnd", "ShdPnd": // the thread's, the process's
		case "SigBlk", "SigIgn", "SigCgt":
			to = &lives
		default:
			continue
		}
		set, err := strconv.ParseUint(string(bytes.TrimSpace(value)), 16, 64)
		if err != nil {
			return true
		}
		*to |= set
	}
	return waits&^(lives|harmless) != 0
}

// harmless are the signals that end nobody who does not handle them (signal(7)).
const harmless = 1<<(unix.SIGCHLD-1) | 1<<(unix.SIGURG-1) | 1<<(unix.SIGWINCH-1) | 1<<(unix.SIGCONT-1) |
	1<<(unix.SIGSTOP-1) | 1<<(unix.SIGTSTP-1) | 1<<(unix.SIGTTIN-1) | 1<<(unix.SIGTTOU-1)
