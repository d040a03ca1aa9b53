package unpack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandglass/internal/refusal"
	"sandglass/pkg/image/tree"
)

// memory is a Sink that keeps only digests.
type memory struct{}

func (memory) Add(r io.Reader, _ uint32, _ int64) (string, int64, error) {
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(r, 2<<30)) // more than any limit here
	return hex.EncodeToString(h.Sum(nil)), n, err
}

func (memory) Spool(r io.Reader) (*os.File, error) {
	fd, err := unix.MemfdCreate("spool", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "spool")
	_, err = io.Copy(f, r)
	return f, err
}

// entries writes a tar archive. A Body of a regular file is its content.
type item struct {
	tar.Header
	body string
}

func file(name, body string) item {
	return item{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(body)), ModTime: time.Unix(1e9, 0)}, body}
}

func dir(name string) item {
	return item{tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755}, ""}
}

func link(name, to string) item {
	return item{tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to}, ""}
}

func hard(name, to string) item {
	return item{tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: to}, ""}
}

func archive(t testing.TB, list ...item) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, i := range list {
		if i.PAXRecords != nil {
			i.Format = tar.FormatPAX
		}
		if err := w.WriteHeader(&i.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, i.body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// limits are small, so that a test of one is quick.
func limits() Limits {
	return Limits{Files: 1000, Bytes: 1 << 30, Ratio: 200, Layers: 8, Config: 256 << 10}
}

// bring imports an archive, and is the list of what it made.
func bring(t testing.TB, text []byte) (*Unpacked, string, error) {
	t.Helper()
	u := newUnpacker(limits(), memory{})
	err := u.archive(bytes.NewReader(text), int64(len(text)))
	if err == nil {
		err = u.finish()
	}
	if err != nil {
		var r *refusal.Error
		if !errors.As(err, &r) {
			t.Fatalf("no refusal: %v", err)
		}
		return nil, r.What, err
	}
	return u.out, shown(u.out.Tree), nil
}

// shown is a tree in one line.
func shown(files *tree.Tree) string {
	var list []string
	files.Walk(func(path string, n *tree.Node) error {
		switch {
		case path == "":
		case n.Kind == tree.Dir:
			list = append(list, path+"/")
		case n.Kind == tree.Link:
			list = append(list, path+"->"+n.Target)
		default:
			list = append(list, fmt.Sprintf("%s:%d", path, n.Size))
		}
		return nil
	})
	return strings.Join(list, " ")
}

// Every way out of an archive is refused by its name, or means a place in the image.
func TestHostileEntries(t *testing.T) {
	long := strings.Repeat("d/", 2100) + "x"
	var longLinks, largeLinks []item
	for i := range 20 {
		longLinks = append(longLinks, link(fmt.Sprintf("l%d", i), strings.Repeat("./", 2000)+fmt.Sprintf("l%d", i+1)))
		largeLinks = append(largeLinks, link(fmt.Sprintf("l%d", i), strings.Repeat("x", 4000)), link(fmt.Sprintf("k%d", i), strings.Repeat("x", 4000)))
	}
	longLinks = append(longLinks, file("l1/x", "1"))
	for name, c := range map[string]struct {
		in   []item
		want string
	}{
		"upwards":               {[]item{file("../../etc/cron.d/x", "x")}, `../../etc/cron.d/x leads upwards`},
		"upwards within":        {[]item{file("a/../../b", "x")}, `a/../../b leads upwards`},
		"absolute":              {[]item{file("/etc2/passwd", "root")}, `etc2/ etc2/passwd:4`},
		"link then through it":  {[]item{link("out", "/srv"), file("out/x", "abc")}, `out->/srv srv/ srv/x:3`},
		"absolute link below":   {[]item{link("d/out", "/srv"), file("d/out/x", "abc")}, `d/ d/out->/srv srv/ srv/x:3`},
		"relative link":         {[]item{link("out", "../../../srv"), file("out/x", "abc")}, `out->../../../srv srv/ srv/x:3`},
		"file then link":        {[]item{file("a/x", "1"), link("a", "/srv"), file("a/y", "2")}, `a->/srv srv/ srv/y:1`},
		"link over a directory": {[]item{dir("a"), file("a/x", "1"), link("a", "b")}, `a->b`},
		"directory over a link": {[]item{link("a", "/srv"), dir("a"), file("a/x", "1")}, `a/ a/x:1`},
		"file over a link":      {[]item{link("a", "/srv/x"), file("a", "1")}, `a:1`},
		"links in a circle":     {[]item{link("a", "b"), link("b", "a"), file("a/x", "1")}, `a: links that lead to each other`},
		"link to itself":        {[]item{link("a", "a"), file("a/x", "1")}, `a: links that lead to each other`},
		"empty link":            {[]item{link("a", "")}, `a: not a link's text, or one of more than 4095 bytes`},
		"hard link out":         {[]item{hard("x", "/etc/shadow")}, `x: a hard link to /etc/shadow, which is not in the image`},
		"hard link upwards":     {[]item{hard("x", "../../etc/shadow")}, `../../etc/shadow leads upwards`},
		"hard link by a link":   {[]item{link("out", "/"), hard("x", "out/etc/shadow")}, `x: a hard link to out/etc/shadow, which is not in the image`},
		"hard link to a link":   {[]item{link("l", "/etc/shadow"), hard("x", "l"), file("x", "1")}, `l->/etc/shadow x:1`},
		"hard link to itself":   {[]item{hard("x", "x")}, `x: a hard link to x, which is not in the image`},
		"hard link to a directory": {[]item{dir("d"), hard("x", "d")},
			`x: a hard link to the directory d`},
		"written through a hard link": {[]item{file("a", "12"), hard("b", "a"), file("b", "123")}, `a:2 b:3`},
		"file as a directory":         {[]item{file("a", "1"), file("a/b", "2")}, `a: a is a file, not a directory`},
		"same name twice":             {[]item{file("a", "1"), file("a", "22")}, `a:2`},
		"file, then directory":        {[]item{file("a", "1"), dir("a"), file("a/b", "22")}, `a/ a/b:2`},
		"the root as a file":          {[]item{file(".", "1")}, `.: the root is no directory`},
		"newline and bad UTF-8":       {[]item{file("a\nf 644 0 0", "1"), file("b\xff\x1b[31m", "22")}, "a\nf 644 0 0:1 b\xff\x1b[31m:2"},
		"4096 bytes of path":          {[]item{file(long, "1")}, `a path has 4201 bytes, more than 4095: ` + long[:64] + `...`},
		"deep":                        {[]item{file(strings.Repeat("d/", 200)+"x", "1")}, `d...: 201 directories below each other, more than 128`},
		"long name":                   {[]item{file(strings.Repeat("n", 256), "1")}, strings.Repeat("n", 64) + `...: a name has 256 bytes, more than 255`},
		"links of long texts":         {longLinks, `l1: links that lead through more than 4096 names`},
		"names and links too large":   {largeLinks, `more than 128000 bytes of names and links`},
		"takes away nothing":          {[]item{file("a", "1"), file(".wh.b", ""), file("no/.wh.c", ""), file("no2/.wh..wh..opq", "")}, `a:1`},
		"takes away no name":          {[]item{file(".wh.", "")}, `.wh. takes away no name`},
		"takes away upwards":          {[]item{file("d/.wh...", "")}, `d/.wh... takes away no name`},
		"devices and FIFOs": {[]item{file("a", "1"), {tar.Header{Typeflag: tar.TypeBlock, Name: "dev/sda", Devmajor: 8}, ""},
			{tar.Header{Typeflag: tar.TypeChar, Name: "mem", Devmajor: 1, Devminor: 1}, ""}, {tar.Header{Typeflag: tar.TypeFifo, Name: "p"}, ""}}, `a:1`},
		"nothing": {nil, `it holds no files`},
	} {
		u, got, err := bring(t, archive(t, c.in...))
		if got != c.want {
			t.Errorf("%s: %q, want %q (%v)", name, got, c.want, err)
		}
		if name == "devices and FIFOs" && err == nil && strings.Join(u.Meta.Skipped.First, ", ") != "device dev/sda, device mem, FIFO p" {
			t.Errorf("left out: %q", u.Meta.Skipped.First)
		}
	}
}

// What a layer takes away is of lower layers, whatever the order in it.
func TestLayersOverEachOther(t *testing.T) {
	for name, c := range map[string]struct {
		layers [][]item
		want   string
	}{
		"a name taken away":            {[][]item{{file("a", "1"), file("b", "1")}, {file(".wh.a", "")}}, `b:1`},
		"and put again, before":        {[][]item{{file("a", "1")}, {file(".wh.a", ""), file("a", "22")}}, `a:2`},
		"and put again, after":         {[][]item{{file("a", "1")}, {file("a", "22"), file(".wh.a", "")}}, `a:2`},
		"a directory, put again":       {[][]item{{file("d/a", "1")}, {file("d/b", "22"), file(".wh.d", "")}}, `d/ d/b:2`},
		"opaque, before":               {[][]item{{file("d/a", "1")}, {file("d/.wh..wh..opq", ""), file("d/b", "22")}}, `d/ d/b:2`},
		"opaque, after":                {[][]item{{file("d/a", "1")}, {file("d/b", "22"), file("d/.wh..wh..opq", "")}}, `d/ d/b:2`},
		"through a lower layer's link": {[][]item{{link("out", "/srv")}, {file("out/x", "1")}, {file("out/.wh.x", "")}}, `out->/srv srv/`},
		"a link's place":               {[][]item{{link("etc2", "/srv")}, {file(".wh.etc2", ""), file("etc2/x", "1")}}, `etc2/ etc2/x:1`},
		"a link over a full directory": {[][]item{{file("d/x", "1")}, {link("d", "/srv"), file("d/y", "22")}}, `d->/srv srv/ srv/y:2`},
		"a hard link downwards":        {[][]item{{file("a", "123")}, {hard("b", "a"), file(".wh.a", "")}}, `b:3`},
		"a hard link to what is gone": {[][]item{{file("a", "123")}, {file(".wh.a", ""), hard("b", "a")}},
			`layer 2: b: a hard link to a, which is not in the image`},
	} {
		var packed [][]byte
		for _, l := range c.layers {
			packed = append(packed, archive(t, l...))
		}
		if _, got, err := bring(t, dockerArchive(t, packed, nil)); got != c.want {
			t.Errorf("%s: %q, want %q (%v)", name, got, c.want, err)
		}
	}
}

// What is larger than it may be is refused before it is there.
func TestBombs(t *testing.T) {
	zeros := func(n int64) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		w := tar.NewWriter(z)
		w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "zeros", Size: n, Mode: 0o644})
		io.CopyN(w, zeroReader{}, n)
		w.Close()
		z.Close()
		return b.Bytes()
	}
	var many []item
	for i := range 1001 {
		many = append(many, file(fmt.Sprintf("f%d", i), ""))
	}
	sparse := item{tar.Header{Typeflag: tar.TypeReg, Name: "s", Mode: 0o644, Size: 512, PAXRecords: map[string]string{
		"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "huge", "GNU.sparse.realsize": "1099511627776"}}, "0\n" + strings.Repeat("\x00", 510)}
	for name, c := range map[string]struct {
		in   []byte
		want string
	}{
		"zip bomb":             {zeros(300 << 20), `it unpacks to more than 200 times its size`},
		"too many files":       {archive(t, many...), `more than 1000 files and directories`},
		"terabytes of a hole":  {sparseArchive(t, sparse), `huge: more than 1073741824 bytes`},
		"a few zeros are none": {zeros(1 << 20), ``},
	} {
		_, got, err := bring(t, c.in)
		if c.want == "" && err == nil {
			continue
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q (%v)", name, got, c.want, err)
		}
	}
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// sparseArchive writes a header with records that archive/tar does not let a
// writer have: the name of one is changed on the way.
func sparseArchive(t testing.TB, i item) []byte {
	t.Helper()
	records := map[string]string{}
	for k, v := range i.PAXRecords {
		records["XNU"+strings.TrimPrefix(k, "GNU")] = v
	}
	i.PAXRecords = records
	return bytes.ReplaceAll(archive(t, i), []byte("XNU.sparse"), []byte("GNU.sparse"))
}

// An archive that is cut off or goes on after its end is not the one that was meant.
func TestCutOffAndAppended(t *testing.T) {
	whole := archive(t, file("a", strings.Repeat("x", 5000)), file("b", "1"))
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	w.Write(whole)
	w.Close()
	var text bytes.Buffer
	w = gzip.NewWriter(&text)
	w.Write([]byte("hello\n"))
	w.Close()
	gzipped := text.Bytes()
	cut := `the archive is cut off`
	for name, c := range map[string]struct {
		in   []byte
		want string
	}{
		"in a file":           {whole[:2000], cut},
		"in a header":         {whole[:512*13+100], cut},
		"at the end mark":     {whole[:len(whole)-1024], cut + `: its end mark is missing`},
		"gzip":                {z.Bytes()[:z.Len()-20], cut},
		"appended":            {append(bytes.Clone(whole), "more"...), `something follows the end of the archive`},
		"zeros appended":      {append(bytes.Clone(whole), make([]byte, 8192)...), `a:5000 b:1`},
		"many zeros appended": {append(bytes.Clone(whole), make([]byte, 65<<20)...), `more than 67108864 bytes of zeros follow the end of the archive`},
		"appended to gzip":    {append(bytes.Clone(z.Bytes()), "more than a header"...), `something follows the end of the archive`},
		"a bit after gzip":    {append(bytes.Clone(z.Bytes()), "x\n"...), `something follows the end of the archive`},
		"a second gzip":       {slices.Concat(z.Bytes(), []byte("\x1f\x8b\x08")), cut},
		"no archive at all":   {[]byte(strings.Repeat("hello world ", 100)), `it is no archive: neither tar, nor tar packed with gzip or zstd`},
		"a short text":        {[]byte("hello\n"), `it is no archive: neither tar, nor tar packed with gzip or zstd`},
		"no archive in gzip":  {gzipped, `it is no archive: neither tar, nor tar packed with gzip or zstd`},
		"nothing in it":       {make([]byte, 10240), `it holds no files`},
		"an empty file":       {nil, `it is empty, and no archive`},
		"xz":                  {[]byte("\xfd7zXZ\x00 and more"), `it is packed with xz: only tar, gzip and zstd are read`},
	} {
		if _, got, err := bring(t, c.in); got != c.want {
			t.Errorf("%s: %q, want %q (%v)", name, got, c.want, err)
		}
	}
}

// What has power on another system has none here, and is told.
func TestInert(t *testing.T) {
	u, _, err := bring(t, archive(t,
		item{tar.Header{Typeflag: tar.TypeReg, Name: "su", Mode: 0o4755, Uid: 0}, ""},
		item{tar.Header{Typeflag: tar.TypeReg, Name: "wall", Mode: 0o2700, Gid: 5}, ""},
		item{tar.Header{Typeflag: tar.TypeReg, Name: "ping", Mode: 0o755, PAXRecords: map[string]string{capability: "\x01\x00\x00\x02"}}, ""},
		item{tar.Header{Typeflag: tar.TypeReg, Name: "closed", Mode: 0o004, Uid: 1234}, ""},
		item{tar.Header{Typeflag: tar.TypeDir, Name: "tmpd", Mode: 0o1777}, ""}))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(u.Meta.Inert.First, " "); got != "ping su wall" {
		t.Errorf("inert: %q", got)
	}
	for name, want := range map[string]uint32{"su": 0o755, "wall": 0o700, "ping": 0o755, "closed": 0o404, "tmpd": 0o777} {
		if n := u.Tree.Look(name); n.Disk() != want {
			t.Errorf("%s: mode %o in the store, want %o", name, n.Disk(), want)
		}
	}
	if n := u.Tree.Look("su"); n.Mode != 0o4755 || u.Tree.Look("closed").UID != 1234 {
		t.Error("the list of files has lost an owner or a mode")
	}
}
