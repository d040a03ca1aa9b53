package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Beside the host's tests half the machines run, and after their end all.
func TestSlots(t *testing.T) {
	path := filepath.Join(t.TempDir(), "host.json")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	done, err := hostDone(path)
	if err != nil {
		t.Fatal(err)
	}
	free := slots(5, done)
	for range 3 {
		free <- struct{}{}
	}
	select {
	case free <- struct{}{}:
		t.Error("a fourth machine runs beside the host's tests")
	case <-done:
		t.Error("done, and the lock is held")
	default:
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	<-done
	free <- struct{}{}
	free <- struct{}{}
	select {
	case free <- struct{}{}:
		t.Error("a sixth machine on five CPUs")
	default:
	}
	none, err := hostDone("")
	if err != nil {
		t.Fatal(err)
	}
	<-none
	if _, err := hostDone(path + "no"); !os.IsNotExist(err) {
		t.Errorf("a file that is not there: %v", err)
	}
}
