package deliver

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// slow takes a piece each time that this has passed.
type slow struct {
	each time.Duration
	got  bytes.Buffer
	most int
}

func (s *slow) Write(b []byte) (int, error) {
	<-time.After(s.each)
	s.most = max(s.most, len(b))
	return s.got.Write(b)
}

// A reader that goes on taking is waited for however long all of it takes, one
// that takes nothing is not. The clock is the test's own.
func TestWriterWaitsForProgress(t *testing.T) {
	text := strings.Repeat("0123456789", 1000)
	for _, c := range []struct {
		each  time.Duration
		err   error
		took  time.Duration
		taken int
	}{
		{Patience - 1, nil, 3 * (Patience - 1), len(text)},
		{Patience + 1, ErrStuck, Patience, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			to := &slow{each: c.each}
			w := newWriter(to, page)
			start := time.Now()
			n, err := io.WriteString(w, text)
			if took := time.Since(start); n != c.taken || err != c.err || took != c.took {
				t.Errorf("%v each: %d bytes, %v, after %v", c.each, n, err, took)
			}
			if n, again := w.Write([]byte("more")); c.err != nil && (n != 0 || again != c.err) {
				t.Errorf("after an error: %d, %v", n, again)
			}
			w.Close()
			synctest.Wait()
			if c.err == nil && (!strings.HasPrefix(to.got.String(), text) || to.most != page) {
				t.Errorf("%v each: %d bytes came, at most %d at once", c.each, to.got.Len(), to.most)
			}
			<-time.After(c.each) // the stuck write ends, as each goroutine of a bubble must
		})
	}
}

// What a reader that is gone, and what a pipe that was made non-blocking, do to
// real descriptors.
func TestAll(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", 1<<20)
	got := make(chan string)
	go func() {
		b, _ := io.ReadAll(r)
		got <- string(b)
	}()
	if err := All(w, strings.NewReader(text)); err != nil {
		t.Error(err)
	}
	w.Close()
	if s := <-got; s != text {
		t.Errorf("%d bytes came, want %d", len(s), len(text))
	}
	r.Close()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	if err := All(full, strings.NewReader("x")); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("/dev/full: %v", err)
	}
}

// A line that is appended to a file is one write: others append to it too.
func TestFilesGetOneWrite(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/f")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if w := NewWriter(f); w.most <= 64<<10 {
		t.Errorf("at most %d bytes at once", w.most)
	}
	r, p, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer p.Close()
	if w := NewWriter(p); w.most != page {
		t.Errorf("a pipe gets %d bytes at once", w.most)
	}
}
