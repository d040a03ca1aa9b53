package result

// The exit codes of sandglass run that are not the program's own. 128+n is
// signal n.
const (
	ExitTimeout       = 124 // as timeout(1)
	ExitRefused       = 125 // as docker run: sandglass refused or failed
	ExitNotExecutable = 126
	ExitNotFound      = 127
	ExitMemory        = 137 // 128+SIGKILL, as the out-of-memory killer leaves it
	ExitOutput        = 153 // 128+SIGXFSZ
	ExitCanceled      = 130 // 128+SIGINT, when no other signal is known
)

// ExitCodeFor is what sandglass run exits with. code is the program's own exit
// code, or 126 or 127 of a program that could not be started; signal is what
// ended the program, or what the caller ended the run with.
func ExitCodeFor(o Outcome, code, signal int) int {
	switch o {
	case Exited:
		return code & 0xff
	case Signaled:
		return 128 + signal
	case Timeout, CPUTime:
		return ExitTimeout
	case Memory:
		return ExitMemory
	case Output:
		return ExitOutput
	case Canceled:
		if signal > 0 {
			return 128 + signal
		}
		return ExitCanceled
	case Refused, Failed:
		if code == ExitNotExecutable || code == ExitNotFound {
			return code
		}
	}
	return ExitRefused // an outcome that is not known is a failure of ours
}

// SetExit fills in ExitCode and Signal from the outcome.
func (r *Result) SetExit(code, signal int) {
	r.Signal = signal
	r.ExitCode = ExitCodeFor(r.Outcome, code, signal)
}
