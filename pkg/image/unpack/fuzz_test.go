package unpack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"sandglass/pkg/image"
	"sandglass/pkg/image/tree"
)

// fuzzed imports an archive that is nothing but bytes: it ends with a refusal, or
// with a tree that its list says again.
func fuzzed(t *testing.T, text []byte) {
	if u, _, err := bring(t, text); err == nil {
		checkList(t, u)
	}
}

// seedArchives are one of each kind, small: most of an archive is zeros.
func seedArchives(f *testing.F) [][]byte {
	one := archive(f, file("bin/a", "1"), link("l", "/bin"), file("l/b", "22"), hard("c", "bin/a"), dir("d"))
	return [][]byte{
		one,
		dockerArchive(f, [][]byte{one, archive(f, file(".wh.c", ""), file("d/.wh..wh..opq", ""))}, nil),
		layoutArchive(f, layout([][]byte{one}, nil)),
		archive(f, item{tar.Header{Typeflag: tar.TypeReg, Name: "x", Mode: 0o4755, PAXRecords: map[string]string{capability: "x"}}, ""}),
		archive(f, file(strings.Repeat("long/", 60)+"name", "1"), link("l", strings.Repeat("x/", 200))),
		sparseArchive(f, item{tar.Header{Typeflag: tar.TypeReg, Name: "s", Mode: 0o644, Size: 1024, PAXRecords: map[string]string{
			"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "huge", "GNU.sparse.realsize": "4096"}}, "1\n4095\n1\n" + strings.Repeat("\x00", 503) + strings.Repeat("x", 512)}),
	}
}

// FuzzArchive: whatever the bytes of a file.
func FuzzArchive(f *testing.F) {
	for _, a := range seedArchives(f) {
		f.Add(a)
	}
	f.Add(packed(gzipped, seedArchives(f)[0]))
	f.Add(packed(zstandard, seedArchives(f)[0]))
	f.Fuzz(fuzzed)
}

// FuzzHeaders: whatever the headers and records of an archive. Their checksums,
// which keep a fuzzer's changes from being looked at, are made right.
func FuzzHeaders(f *testing.F) {
	for _, a := range seedArchives(f) {
		f.Add(a)
	}
	f.Fuzz(func(t *testing.T, text []byte) { fuzzed(t, repaired(text)) })
}

// repaired is an archive with right checksums and an end.
func repaired(text []byte) []byte {
	text = append(bytes.Clone(text), make([]byte, 512-len(text)%512+1024)...)
	for at := 0; at+512 <= len(text); {
		h := text[at : at+512]
		at += 512
		if bytes.Count(h, []byte{0}) == len(h) {
			continue
		}
		copy(h[148:156], "        ")
		sum := 0
		for _, c := range h {
			sum += int(c)
		}
		copy(h[148:156], fmt.Sprintf("%06o\x00 ", sum))
		size, err := strconv.ParseInt(strings.Trim(string(h[124:136]), " \x00"), 8, 64)
		if err == nil && size >= 0 && size < int64(len(text)) {
			at += int(size+511) / 512 * 512
		}
	}
	return text
}

// memoryFiles are the parts of an image in memory.
type memoryFiles map[string]string

func (m memoryFiles) open(name string) (*part, error) {
	text, ok := m[name]
	if !ok {
		return nil, missing(name, io.EOF)
	}
	return &part{io.NewSectionReader(strings.NewReader(text), 0, int64(len(text))), func() error { return nil }}, nil
}

// FuzzManifests: whatever the lists, manifests and settings say of each other. In
// them LAYER, CONFIG and MANIFEST stand for the digests that these have.
func FuzzManifests(f *testing.F) {
	one := archive(f, file("a", "1"))
	const list = `{"manifests":[{"digest":"MANIFEST","platform":{"os":"linux","architecture":"amd64"}}]}`
	const manifests = `{"config":{"digest":"CONFIG"},"layers":[{"digest":"LAYER"}]}`
	f.Add(list, manifests, string(settingsText([][]byte{one}, nil)))
	f.Add(`{"manifests":[{"digest":"MANIFEST"},{"digest":"MANIFEST","annotations":{"vnd.docker.reference.type":"x"}}]}`, list, `{"rootfs":{"diff_ids":["LAYER"]}}`)
	f.Add(`[{"Config":"config.json","RepoTags":["x:y"],"Layers":["layer"]}]`, `{"manifests":[],"layers":[{}]}`, string(settingsText([][]byte{one, one}, func(s *settings) { s.Config.Env = []string{"A=B"} })))
	layer := image.Digest(one)
	f.Fuzz(func(t *testing.T, index, manifests, config string) {
		config = strings.ReplaceAll(config, "LAYER", layer)
		manifests = strings.NewReplacer("LAYER", layer, "CONFIG", image.Digest([]byte(config))).Replace(manifests)
		index = strings.ReplaceAll(index, "MANIFEST", image.Digest([]byte(manifests)))
		from := memoryFiles{"index.json": index, "manifest.json": index, "config.json": config, "layer": string(one)}
		for _, text := range []string{string(one), manifests, config} {
			name, _ := blob(image.Digest([]byte(text)))
			from[name] = text
		}
		for _, read := range []func(*unpacker) error{
			func(u *unpacker) error { return u.oci(from) }, func(u *unpacker) error { return u.docker(from) }, func(u *unpacker) error { return u.flat(from) },
		} {
			u := newUnpacker(limits(), memory{})
			u.packed = 1 << 20
			if read(u) != nil || u.finish() != nil {
				continue
			}
			checkList(t, u.out)
			if text, err := json.Marshal(&u.out.Meta); err != nil || len(u.out.Meta.Layers) > int(u.limits.Layers) {
				t.Errorf("%.300s, %v", text, err)
			}
		}
	})
}

func packed(kind compression, text []byte) []byte {
	var b bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&b)
	if kind == zstandard {
		w, _ = zstd.NewWriter(&b)
	}
	w.Write(text)
	w.Close()
	return b.Bytes()
}

// FuzzFrames: whatever a compressed stream is, no more comes out of it than is
// allowed, and it ends.
func FuzzFrames(f *testing.F) {
	for _, text := range []string{"", "a", strings.Repeat("abc", 1000)} {
		f.Add(packed(gzipped, []byte(text)))
		f.Add(packed(zstandard, []byte(text)))
		f.Add(append(packed(gzipped, []byte(text)), packed(gzipped, []byte(text))...))
		f.Add(append(packed(zstandard, []byte(text)), "\x50\x2a\x4d\x18\x04\x00\x00\x00skip"...))
	}
	l := limits()
	l.Bytes, l.Files = 1<<20, 1
	f.Fuzz(func(t *testing.T, text []byte) {
		kind, err := sniff(bytes.NewReader(text))
		if err != nil || kind == plain {
			return
		}
		u := newUnpacker(l, memory{})
		u.packed = int64(len(text))
		r, done, err := decompress(bytes.NewReader(text), kind)
		if err != nil {
			return
		}
		defer done()
		m := &meter{r: r, u: u}
		if n, err := io.Copy(io.Discard, m); err == nil && n > l.Bytes+4096 || n > l.Bytes+1<<20 {
			t.Errorf("%d bytes of %d, %v", n, len(text), err)
		}
	})
}

// FuzzList: whatever the text of a list of files, what is taken is said again.
func FuzzList(f *testing.F) {
	f.Add("d 755 0 0 0 0 - \"\" \"\"\nf 644 0 0 1 1 " + strings.Repeat("0a", 32) + " \"a\\nb\" \"\" caps\nl 777 1 2 -3 0 - \"d/l\" \"../x\"\n")
	l := limits()
	f.Fuzz(func(t *testing.T, text string) {
		files, err := tree.Read(strings.NewReader(text), l.Bounds())
		if err == nil {
			checkList(t, &Unpacked{Tree: files})
		}
	})
}

// FuzzEntries: whatever entries in whatever order and layers, what comes out is a
// tree without a name that leads anywhere, and its list says it again.
func FuzzEntries(f *testing.F) {
	f.Add([]byte("\x00\x01\x02\x02\x03\x04\x05\x01\x02"))
	f.Add([]byte("\x02\x00\x09\x00\x0a\x01\x03\x02\x00\x06\x00\x01\x07\x00\x01\x01\x04\x05"))
	f.Add([]byte(strings.Repeat("\x02\x00\x01\x02\x01\x00\x00\x03\x07\x07\x05\x06", 8)))
	names := []string{"a", "b", "a/b", "b/a", "a/b/c", "/a", "./b/.", "../a", "a/../b", ".wh.a", "a/.wh.b", "b/.wh..wh..opq", "", "a/a/a", "etc", "etc/hosts"}
	targets := []string{"a", "b", "/", "..", "../..", "/a/b", "b/a", "/etc/passwd", ".", "a/../../b", "", "\x00", "c", "/b", "./a", "etc"}
	f.Fuzz(func(t *testing.T, text []byte) {
		l := limits()
		u := &unpacker{limits: l, sink: memory{}, out: &Unpacked{Tree: tree.New(l.Bounds())}, packed: 1 << 20}
		u.out.Tree.Begin()
		for ; len(text) >= 3; text = text[3:] {
			h := &tar.Header{Name: names[text[1]%16], Linkname: targets[text[2]%16], Mode: int64(text[2]) << 4}
			kinds := []byte{tar.TypeReg, tar.TypeDir, tar.TypeSymlink, tar.TypeLink, tar.TypeBlock, tar.TypeFifo}
			if k := int(text[0] % 8); k < len(kinds) {
				h.Typeflag = kinds[k]
				_ = u.entry(strings.NewReader(""), h) // a refusal would have ended the import
			} else {
				u.out.Tree.Begin()
			}
		}
		if u.finish() != nil {
			return
		}
		var n int64
		u.out.Tree.Walk(func(path string, _ *tree.Node) error {
			for _, part := range strings.Split(path, "/") {
				if part == ".." || part == "." || path != "" && part == "" {
					t.Errorf("the tree has a name %q", path)
				}
			}
			n++
			return nil
		})
		if n-1 != u.out.Tree.Nodes() {
			t.Errorf("%d nodes are counted, there are %d", u.out.Tree.Nodes(), n-1)
		}
		checkList(t, u.out)
	})
}
