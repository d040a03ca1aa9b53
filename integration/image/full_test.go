package image

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"sandglass/internal/testkit"
	"sandglass/internal/testkit/machine"
)

// envFull asks for hostile archives in their full size: gigabytes, for minutes. What
// came of it is in docs/IMAGES.md.
const envFull = "SANDGLASS_FULL_SIZE"

// zeros never ends.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// tarOf writes one file of zeros.
func tarOf(w io.Writer, size int64) error {
	out := tar.NewWriter(w)
	err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "zeros", Mode: 0o644, Size: size})
	if err == nil {
		_, err = io.CopyN(out, zeros{}, size)
	}
	if err == nil {
		err = out.Close()
	}
	return err
}

// manyFiles writes so many files, each with a content of its own.
func manyFiles(w io.Writer, n int) error {
	out := tar.NewWriter(w)
	for i := range n {
		text := fmt.Sprint(i)
		if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: fmt.Sprintf("d%d/f%d", i/1000, i), Mode: 0o644, Size: int64(len(text))}); err != nil {
			return err
		}
		if _, err := io.WriteString(out, text); err != nil {
			return err
		}
	}
	return out.Close()
}

// holes is an archive of one file that is a terabyte of nothing.
func holes(w io.Writer) error {
	var b bytes.Buffer
	out := tar.NewWriter(&b)
	records := map[string]string{"XNU.sparse.major": "1", "XNU.sparse.minor": "0", "XNU.sparse.name": "huge", "XNU.sparse.realsize": "1099511627776"}
	err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "s", Mode: 0o644, Size: 512, PAXRecords: records, Format: tar.FormatPAX})
	if err == nil {
		_, err = io.WriteString(out, "0\n"+strings.Repeat("\x00", 510))
	}
	if err == nil {
		err = out.Close()
	}
	if err == nil {
		_, err = w.Write(bytes.ReplaceAll(b.Bytes(), []byte("XNU.sparse"), []byte("GNU.sparse")))
	}
	return err
}

// frames is a terabyte of zeros as a thousand times the same frame.
func frames(w io.Writer) error {
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	if err == nil {
		err = tarOf(z, 1<<30)
	}
	if err == nil {
		err = z.Close()
	}
	for n := 0; n < 1000 && err == nil; n++ {
		_, err = w.Write(b.Bytes())
	}
	return err
}

func gzipped(write func(io.Writer) error) func(io.Writer) error {
	return func(w io.Writer) error {
		z := gzip.NewWriter(w)
		if err := write(z); err != nil {
			return err
		}
		return z.Close()
	}
}

// TestFullSize imports them as they are in the wild.
func TestFullSize(t *testing.T) {
	if os.Getenv(envFull) == "" {
		testkit.Skip(t, envFull+"=1", "it unset")
	}
	settings := func(w io.Writer) error {
		text := `{"config":{"User":"` + strings.Repeat("x", 100<<20) + `"}}`
		_, err := w.Write(archive(t, file("c.json", 0o644, text), file("manifest.json", 0o644, `[{"Config":"c.json","Layers":[]}]`)))
		return err
	}
	manifests := func(w io.Writer) error {
		_, err := w.Write(archive(t, file("manifest.json", 0o644, "["+strings.Repeat("{},", 100<<20/3)+"{}]")))
		return err
	}
	links := func(w io.Writer) error {
		out, to := tar.NewWriter(w), strings.Repeat("x", 4000)
		for i := range 400000 {
			if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: fmt.Sprintf("l%d", i), Linkname: to}); err != nil {
				return err
			}
		}
		return out.Close()
	}
	million := func(w io.Writer) error { return manyFiles(w, 1000000) }
	for _, c := range []struct {
		name  string
		write func(io.Writer) error
		flags []string
		want  string // of the refusal, "" for none
	}{
		{"a million files", million, nil, "more than 400000 entries"},
		{"400000 links of 4000 bytes, gzip", gzipped(links), nil, "names and links"},
		{"settings of 100 MB", settings, nil, "more than 4194304"},
		{"the same, allowed", settings, []string{"--max-config", "200m"}, "it is for"},
		{"a list of 35 million images", manifests, nil, "more than 4194304"},
		{"the same, allowed", manifests, []string{"--max-config", "200m"}, "more than 50000 values"},
		{"a terabyte of a hole", holes, nil, "huge: more than 17179869184 bytes"},
		{"10 GiB of zeros, gzip", gzipped(func(w io.Writer) error { return tarOf(w, 10<<30) }), nil, "it unpacks to more than 200 times its size"},
		{"that in gzip again", gzipped(gzipped(func(w io.Writer) error { return tarOf(w, 10<<30) })), nil, "the archive is damaged"},
		{"a terabyte of zeros, zstd", frames, nil, "more than 17179869184 bytes"},
		{"a million files, allowed", million, []string{"--max-files", "2000000"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(testkit.Dir(t), "archive")
			f, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			out := bufio.NewWriterSize(f, 1<<20)
			for _, err := range []error{c.write(out), out.Flush(), f.Close()} {
				if err != nil {
					t.Fatal(err)
				}
			}
			fullSize(t, c.name, path, c.want, c.flags)
		})
	}
	d := testkit.Dir(t)
	if f, err := os.Create(d + "/sparse"); err != nil || f.Truncate(1<<40) != nil {
		t.Fatal(err)
	}
	fullSize(t, "a terabyte of a hole in a directory", d, "sparse: more than 17179869184 bytes", nil)
	fullSize(t, "a terabyte of a hole as an archive", d+"/sparse", "more than 67108864 bytes of zeros follow the end", nil)
}

// fullSize imports one, and tells what it took and what is left.
func fullSize(t *testing.T, name, path, want string, flags []string) {
	data := testkit.Dir(t)
	cmd := exec.Command(testkit.ImageTool(t), append([]string{"import", "--name", "x", path}, flags...)...)
	cmd.Env = []string{"XDG_DATA_HOME=" + data}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	peak := machine.WatchPeak(cmd.Process.Pid)
	err := cmd.Wait()
	took, most := time.Since(began), peak()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(errs.String(), want)) {
		t.Errorf("%s: %v, %.300s, want %q", name, err, errs.String(), want)
	}
	bytes, left, derr := machine.Disk(data)
	if derr != nil {
		t.Fatal(derr)
	}
	st, serr := os.Stat(path)
	if serr != nil {
		t.Fatal(serr)
	}
	if want != "" && left != 1 { // the lock
		t.Errorf("%s: %d files are left", name, left)
	}
	t.Logf("%-36s archive %6d KiB, %6.1f s, CPU %6.1f s, peak %4d MiB, left %d files, %d KiB", name, st.Size()>>10, took.Seconds(),
		(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), most>>20, left, bytes>>10)
}
