package packages

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
)

// entry is one file or directory of an archive.
type entry struct {
	dir    bool
	mode   int64 // with the set-uid, set-gid and sticky bits
	owner  string
	sha256 string // of a file
}

// archive is what a package brings.
type archive struct {
	files map[string]entry  // by absolute path
	meta  map[string]string // scripts and descriptions, by name
}

// readTar reads files of a tar. Those that meta names are no files to install.
func readTar(r io.Reader, a *archive, meta func(name string) bool) error {
	for t := tar.NewReader(r); ; {
		h, err := t.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		data, err := io.ReadAll(t)
		if err != nil {
			return err
		}
		if strings.HasSuffix(h.Name, ".gz") {
			if err := unpack(bytes.NewReader(data), func(io.Reader) error { return nil }); err != nil {
				return fmt.Errorf("%s: %v", h.Name, err)
			}
		}
		if meta(h.Name) {
			a.meta[strings.TrimPrefix(h.Name, "./")] = string(data)
			continue
		}
		e := entry{dir: h.Typeflag == tar.TypeDir, mode: h.Mode & 0o7777, owner: fmt.Sprintf("%d:%d %s:%s", h.Uid, h.Gid, h.Uname, h.Gname)}
		if !e.dir {
			e.sha256 = fmt.Sprintf("%x", sha256.Sum256(data))
		}
		if h.Typeflag != tar.TypeDir && h.Typeflag != tar.TypeReg {
			return fmt.Errorf("%s has type %c", h.Name, h.Typeflag)
		}
		path := "/" + strings.Trim(strings.TrimPrefix(h.Name, "."), "/")
		if _, twice := a.files[path]; twice {
			return fmt.Errorf("%s is there twice", path)
		}
		a.files[path] = e
	}
}

// unpack has a function read what gzip has packed, and reads what it has left up
// to the checksum.
func unpack(r io.Reader, read func(io.Reader) error) error {
	z, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	if err := read(z); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, z)
	return err
}

func open(t *testing.T, path string) *archive {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	a := &archive{map[string]entry{}, map[string]string{}}
	switch {
	case strings.HasSuffix(path, ".deb"):
		err = readDeb(data, a)
	case strings.HasSuffix(path, ".rpm"):
		err = readRPM(data, a)
	default: // an apk is two tars of gzip each, of which the first has no end
		err = unpack(bytes.NewReader(data), func(r io.Reader) error {
			return readTar(r, a, func(name string) bool { return strings.HasPrefix(name, ".") && !strings.Contains(name, "/") })
		})
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return a
}

// readDeb reads an ar(5) archive of two tars.
func readDeb(data []byte, a *archive) error {
	rest, ok := bytes.CutPrefix(data, []byte("!<arch>\n"))
	if !ok {
		return fmt.Errorf("no ar archive")
	}
	for len(rest) >= 60 {
		name := strings.TrimRight(string(rest[:16]), " /")
		size, err := strconv.Atoi(strings.TrimSpace(string(rest[48:58])))
		if err != nil || size > len(rest)-60 {
			return fmt.Errorf("size of %s: %v", name, err)
		}
		body := rest[60 : 60+size]
		if strings.HasSuffix(name, ".tar.gz") {
			isMeta := strings.HasPrefix(name, "control")
			err := unpack(bytes.NewReader(body), func(r io.Reader) error { return readTar(r, a, func(string) bool { return isMeta }) })
			if err != nil {
				return fmt.Errorf("%s: %v", name, err)
			}
		}
		rest = rest[60+size:]
		if size%2 == 1 && len(rest) > 0 {
			rest = rest[1:]
		}
	}
	for _, empty := range []string{"", "."} { // the directory of all
		delete(a.meta, empty)
	}
	return nil
}

// Tags of RPM's header.
const (
	rpmName, rpmVersion, rpmRelease, rpmArch = 1000, 1001, 1002, 1022
	rpmPostIn, rpmPreUn                      = 1024, 1025
	rpmModes, rpmUsers, rpmGroups            = 1030, 1039, 1040
	rpmDigests, rpmDigestAlgo                = 1035, 5011
	rpmDirIndex, rpmBase, rpmDirs            = 1116, 1117, 1118
)

// readRPM reads the header, which has all of a file but its bytes.
func readRPM(data []byte, a *archive) error {
	r := bufio.NewReader(bytes.NewReader(data[96:]))
	if _, err := readHeader(r, true); err != nil {
		return err
	}
	h, err := readHeader(r, false)
	if err != nil {
		return err
	}
	for name, tag := range map[string]int{"name": rpmName, "version": rpmVersion, "release": rpmRelease, "arch": rpmArch, "postinst": rpmPostIn, "prerm": rpmPreUn} {
		a.meta[name] = strings.Join(h.text[tag], "")
	}
	for _, kind := range h.number[rpmDigestAlgo] {
		if kind != 8 {
			return fmt.Errorf("digests of kind %d, want 8, SHA-256", kind)
		}
	}
	for i, base := range h.text[rpmBase] {
		mode := h.number[rpmModes][i]
		e := entry{dir: mode&0o170000 == 0o040000, mode: mode & 0o7777, owner: "0:0 " + h.text[rpmUsers][i] + ":" + h.text[rpmGroups][i], sha256: h.text[rpmDigests][i]}
		if !e.dir && mode&0o170000 != 0o100000 {
			return fmt.Errorf("%s has mode %o", base, mode)
		}
		a.files[h.text[rpmDirs][h.number[rpmDirIndex][i]]+base] = e
	}
	return nil
}

// header is a header structure of RPM: numbers and texts by tag.
type header struct {
	number map[int][]int64
	text   map[int][]string
}

func readHeader(r io.Reader, padded bool) (*header, error) {
	var intro struct{ Magic, _, Count, Size uint32 }
	if err := binary.Read(r, binary.BigEndian, &intro); err != nil || intro.Magic != 0x8eade801 {
		return nil, fmt.Errorf("no header: %x, %v", intro.Magic, err)
	}
	index := make([]struct{ Tag, Type, Offset, Count int32 }, intro.Count)
	if err := binary.Read(r, binary.BigEndian, index); err != nil {
		return nil, err
	}
	store := make([]byte, intro.Size)
	if padded {
		store = make([]byte, (intro.Size+7)/8*8)
	}
	if _, err := io.ReadFull(r, store); err != nil {
		return nil, err
	}
	h := &header{map[int][]int64{}, map[int][]string{}}
	for _, x := range index {
		at := store[x.Offset:]
		for i := range int(x.Count) {
			switch x.Type {
			case 3:
				h.number[int(x.Tag)] = append(h.number[int(x.Tag)], int64(binary.BigEndian.Uint16(at[2*i:])))
			case 4:
				h.number[int(x.Tag)] = append(h.number[int(x.Tag)], int64(binary.BigEndian.Uint32(at[4*i:])))
			case 6, 8, 9:
				end := bytes.IndexByte(at, 0)
				h.text[int(x.Tag)] = append(h.text[int(x.Tag)], string(at[:end]))
				at = at[end+1:]
			}
		}
	}
	return h, nil
}

// sum is the checksum of a file.
func sum(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(data))
}
