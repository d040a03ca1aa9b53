package launch

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// bootHere boots an init with this user's own id.
func bootHere(t *testing.T) *Init {
	t.Helper()
	in := Boot("/proc/self/exe", Identity{HostUID: os.Geteuid(), HostGID: os.Getegid(), InsideUID: 65534, InsideGID: 65534}, nil)
	<-in.ready
	if in.err != nil {
		t.Skipf("SKIP(want user namespaces, have %v)", in.err)
	}
	return in
}

// TestCancel: a plan that is refused after init's start leaves no process,
// zombie or not, and Cancel may be called again.
func TestCancel(t *testing.T) {
	in := bootHere(t)
	if err := unix.Kill(in.pid, 0); err != nil {
		t.Fatalf("init is not there: %v", err)
	}
	in.Cancel()
	if _, err := unix.Wait4(in.pid, nil, unix.WNOHANG, nil); err != unix.ECHILD {
		t.Errorf("init was not waited for: %v", err)
	}
	in.Cancel()
}

// TestHangUp: init without a plan goes with its control socket.
func TestHangUp(t *testing.T) {
	in := bootHere(t)
	in.control.Close()
	var status unix.WaitStatus
	for {
		if _, err := unix.Wait4(in.pid, &status, 0, nil); err != unix.EINTR {
			break
		}
	}
	if status.ExitStatus() != 1 {
		t.Errorf("init ended with %d, want 1", status.ExitStatus())
	}
	in.process.Close()
	close(in.done)
}

// TestBootFails: an init that cannot be started is an error of Run's, and
// nothing to cancel.
func TestBootFails(t *testing.T) {
	in := Boot("/nonexistent", Identity{HostUID: os.Geteuid(), HostGID: os.Getegid(), InsideUID: 65534, InsideGID: 65534}, nil)
	end := Run(t.Context(), &Box{Init: in})
	if end.Outcome != "failed" || end.Error == "" {
		t.Errorf("outcome %q, error %q", end.Outcome, end.Error)
	}
	in.Cancel()
	select {
	case <-in.done:
	default:
		t.Error("the thread is still held")
	}
}
