package artifacts

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sandglass/pkg/result"
)

// content is what a row of the manifest brings, and the row without it.
func content(t *testing.T, a result.Artifact) ([]byte, result.Artifact) {
	t.Helper()
	s := result.Stream{Text: a.Text, Base64: a.Base64}
	b, err := s.Captured()
	must(t, err)
	a.Text, a.Base64 = "", ""
	return b, a
}

// TestKeep: of a hostile tree, the manifest is Collect's, and has the bytes that
// Collect writes.
func TestKeep(t *testing.T) {
	fd := deadTmpfs(t, "size=4m,mode=755;tree")
	dst := filepath.Join(newDir(t), "dst")
	want, err := Collect(context.Background(), fd, into(t, dst), Limits{}, false)
	must(t, err)
	got, err := Keep(context.Background(), fd, nil, Limits{})
	must(t, err)
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
	files := 0
	for i, a := range got {
		b, row := content(t, a)
		if row != want[i] {
			t.Errorf("got  %+v\nwant %+v", row, want[i])
		}
		if a.Type != typeFile || a.Skipped != "" || a.PathBase64 != "" {
			continue
		}
		files++
		disk, err := os.ReadFile(filepath.Join(dst, a.Path))
		must(t, err)
		if !bytes.Equal(b, disk) {
			t.Errorf("%s: %q, want %q", a.Path, b, disk)
		}
	}
	if files < 8 {
		t.Errorf("only %d files were compared", files)
	}
}

// TestKeepIsBounded: memory holds no more than Limits.Bytes, whatever sizes say.
func TestKeepIsBounded(t *testing.T) {
	src, _ := trees(t)
	must(t, os.WriteFile(filepath.Join(src, "a"), bytes.Repeat([]byte("x"), 600), 0o644))
	must(t, os.WriteFile(filepath.Join(src, "b"), bytes.Repeat([]byte{0xff}, 600), 0o644))
	sparse := filepath.Join(src, "c")
	must(t, os.WriteFile(sparse, nil, 0o644))
	must(t, os.Truncate(sparse, 1<<40))
	list, err := Keep(context.Background(), openDir(t, src), nil, Limits{Bytes: 1000, FileBytes: 1000})
	var limit *LimitError
	if !errors.As(err, &limit) || limit.Count != 2 {
		t.Fatalf("%v, want two entries past the limit", err)
	}
	a, _ := content(t, list[0])
	if len(list) != 3 || len(a) != 600 || list[1].Skipped == "" || list[2].Skipped == "" || list[1].Base64+list[2].Base64 != "" {
		t.Errorf("%+v", list)
	}
	list, err = Keep(context.Background(), openDir(t, src), nil, Limits{Bytes: 2000, FileBytes: 1000})
	b, _ := content(t, list[1])
	if !errors.As(err, &limit) || list[1].Text != "" || !slices.Equal(b, bytes.Repeat([]byte{0xff}, 600)) {
		t.Errorf("%v %+v", err, list)
	}
	// A file that grows under the copy stops at the limit.
	c := &collector{limits: Limits{Bytes: 1000, FileBytes: 1000}, kept: true, hook: func(stage, path string) {
		if stage == "opened" && path == "a" {
			must(t, os.WriteFile(filepath.Join(src, "a"), make([]byte, 5000), 0o644))
		}
	}}
	list, err = c.collect(context.Background(), openDir(t, src), nil)
	if !errors.As(err, &limit) || list[0].Skipped == "" || list[0].Text != "" {
		t.Errorf("%v %+v", err, list)
	}
}
