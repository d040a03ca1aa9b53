package sys

import "golang.org/x/sys/unix"

// BlockSignals blocks every signal on this thread, which must be locked, until
// restore is called: a child that shares our memory must never enter one of Go's
// signal handlers.
func BlockSignals() (restore func(), err error) {
	var all, old unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, &old); err != nil {
		return nil, err
	}
	return func() { unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil) }, nil
}
