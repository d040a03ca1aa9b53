package unpack

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"hash"
	"io"
	"os"
	"strconv"
	"strings"

	"sandglass/internal/refusal"

	"github.com/klauspost/compress/zstd"
)

// compression is how an archive is packed, by its first bytes: what its name or a
// media type says is the archive's own word.
type compression int

const (
	plain compression = iota
	gzipped
	zstandard
)

// sniff looks at the first bytes of a file.
func sniff(f io.ReaderAt) (compression, error) {
	head := make([]byte, 6)
	n, err := f.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return plain, err
	}
	head = head[:n]
	for _, k := range []struct {
		magic string
		name  string
		kind  compression
	}{
		{"\x1f\x8b", "", gzipped}, {"\x28\xb5\x2f\xfd", "", zstandard},
		{"\xfd7zXZ\x00", "xz", plain}, {"BZh", "bzip2", plain}, {"PK\x03\x04", "zip", plain}, {"hsqs", "squashfs", plain},
	} {
		if bytes.HasPrefix(head, []byte(k.magic)) {
			if k.name != "" {
				return plain, refusal.Newf("it is packed with %s: only tar, gzip and zstd are read", k.name).Hint("unpack it first, and import what comes out")
			}
			return k.kind, nil
		}
	}
	return plain, nil
}

// begins says that a file begins as a tar archive does: with the sum of its first
// header, or with zeros where there is nothing in it. "Cut off" is no word for a text.
func begins(f io.ReaderAt) error {
	head := make([]byte, 512)
	n, err := f.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return err
	}
	if n == 0 {
		return refusal.Newf("it is empty, and no archive").Hint("ls -l -- FILE")
	}
	sum, signed := 8*int64(' '), 8*int64(' ')
	for i, c := range head {
		if i < 148 || i >= 156 {
			sum, signed = sum+int64(c), signed+int64(int8(c))
		}
	}
	field := strings.Trim(string(head[148:156]), " \x00")
	want, err := strconv.ParseInt(field, 8, 64)
	if n == len(head) && (err == nil && (want == sum || want == signed) || len(bytes.Trim(head, "\x00")) == 0) {
		return nil
	}
	return refusal.Newf("it is no archive: neither tar, nor tar packed with gzip or zstd").
		Hint("file -- FILE").
		Hint("docker save python:3.12 > python.tar   # is one, as is tar -C root -cf root.tar .")
}

// maxWindow is how much memory a zstd archive may ask for.
const maxWindow = 128 << 20

// decompress is the content of a stream. done lets go of it.
func decompress(r io.Reader, kind compression) (out io.Reader, done func(), err error) {
	switch kind {
	case gzipped:
		in := bufio.NewReaderSize(r, 64<<10)
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, nil, damaged(err)
		}
		return &members{z, in}, func() { z.Close() }, nil
	case zstandard:
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, nil, damaged(err)
		}
		return z, z.Close, nil
	}
	return r, func() {}, nil
}

// members are what gzip has packed, one after the other. What follows the last is told
// from one that is cut off: a few bytes of anything else look like half of a header.
type members struct {
	*gzip.Reader
	in *bufio.Reader
}

func (m *members) Read(p []byte) (int, error) {
	m.Multistream(false)
	n, err := m.Reader.Read(p)
	if err != io.EOF {
		return n, err
	}
	next, err := m.in.Peek(2)
	if len(next) == 0 || err != nil && err != io.EOF {
		return n, err
	}
	if !bytes.HasPrefix(next, []byte("\x1f\x8b")) {
		return n, follows()
	}
	return n, m.Reset(m.in)
}

// follows is the refusal of an archive that goes on after its end.
func follows() error {
	return refusal.Newf("something follows the end of the archive").Hint("sha256sum FILE   # compare it with where it came from")
}

// damaged is the refusal of an archive that ends too early or is none.
func damaged(err error) error {
	if _, ok := err.(*refusal.Error); ok {
		return err
	}
	if err == io.ErrUnexpectedEOF || err == io.EOF {
		return refusal.Newf("the archive is cut off").Hint("sha256sum FILE   # compare it with where it came from")
	}
	if _, ok := err.(*os.PathError); ok {
		return refusal.Cause(err)
	}
	return refusal.Newf("the archive is damaged: %v", err).Hint("sha256sum FILE   # compare it with where it came from")
}

// meter counts and hashes what comes out of an archive, and ends one that never
// stops giving. It keeps whether the last block was all zeros, as an archive's
// last one is.
type meter struct {
	r     io.Reader
	u     *unpacker
	hash  hash.Hash // nil for none
	n     int64
	zeros int64 // at the end so far
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	if n <= 0 {
		return n, err
	}
	m.n += int64(n)
	m.u.stream += int64(n)
	if m.hash != nil {
		m.hash.Write(p[:n])
	}
	if trailing := n - len(bytes.TrimRight(p[:n], "\x00")); trailing == n {
		m.zeros += int64(n)
	} else {
		m.zeros = int64(trailing)
	}
	if over := m.u.bounds(m.u.stream, 4096*m.u.limits.Files); over != nil {
		return n, over
	}
	return n, err
}

// bounds refuses what is larger than was allowed, or larger than an archive of
// this size holds when it is meant to be unpacked.
func (u *unpacker) bounds(bytes, extra int64) error {
	if bytes > u.limits.Bytes+extra {
		return refusal.Newf("more than %d bytes", u.limits.Bytes).
			Hint("--max-bytes %d   # or more: what follows was not counted", max(2*u.limits.Bytes, Defaults().Bytes))
	}
	if bytes > ratioFloor+extra/8 && bytes/u.limits.Ratio > u.packed {
		return refusal.Newf("it unpacks to more than %d times its size", u.limits.Ratio).
			Hint("--max-ratio %d   # if it is to be trusted so far", 10*u.limits.Ratio)
	}
	return nil
}

// maxPadding is more zeros than fill a record of any tape. A file of a terabyte of
// hole costs nothing, and would be read and hashed to its end.
const maxPadding = 64 << 20

// rest reads what follows the end of a tar archive: zeros, to fill the last record.
func (m *meter) rest() error {
	if m.zeros < 1024 {
		return refusal.Newf("the archive is cut off: its end mark is missing").Hint("sha256sum FILE   # compare it with where it came from")
	}
	m.zeros = 1024 // more may be the last file's own
	buf := make([]byte, 32<<10)
	for {
		n, err := m.Read(buf)
		if m.zeros < int64(n) {
			return follows()
		}
		if m.zeros > maxPadding {
			return refusal.Newf("more than %d bytes of zeros follow the end of the archive", maxPadding)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return damaged(err)
		}
	}
}
