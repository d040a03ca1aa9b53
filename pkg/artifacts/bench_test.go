package artifacts

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func benchmarkCollect(b *testing.B, files int, size int64) {
	src, dst := trees(b)
	for i := range files {
		name := filepath.Join(src, fmt.Sprint(i))
		write(b, name, "")
		must(b, os.Truncate(name, size))
	}
	fd := openDir(b, src)
	b.SetBytes(int64(files) * size)
	for b.Loop() {
		if _, err := Collect(context.Background(), fd, into(b, dst), Limits{}, true); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEmpty(b *testing.B)     { benchmarkCollect(b, 0, 0) }
func BenchmarkOneFile(b *testing.B)   { benchmarkCollect(b, 1, 1<<10) }
func BenchmarkManyFiles(b *testing.B) { benchmarkCollect(b, 1000, 1<<10) }
func BenchmarkLargeFile(b *testing.B) { benchmarkCollect(b, 1, 64<<20) }
