// Package jks writes certificates as Java reads them: a key store of the kind JKS, as
// keytool would make it of the same files, but the same bytes each time.
package jks

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"encoding/pem"
	"strconv"
	"strings"
	"unicode/utf16"

	"sandglass/internal/refusal"
)

// Store is a key store in the making.
type Store struct {
	entries bytes.Buffer
	count   uint32
	names   map[string]bool
}

// Add adds the certificates of a PEM file under a name, as of a time in seconds.
func (s *Store) Add(name string, text []byte, time int64) error {
	found := false
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		// Java fails on the whole store for one entry that is no certificate.
		if len(block.Bytes) < 4 || block.Bytes[0] != 0x30 {
			return refusal.Newf("%s: a certificate of it is none", refusal.Word(name))
		}
		found = true
		s.add(name, block.Bytes, time)
	}
	if !found {
		return refusal.Newf("%s: it holds no certificate", refusal.Word(name))
	}
	return nil
}

// trusted is the tag of a certificate without a key.
const trusted = 2

func (s *Store) add(name string, der []byte, time int64) {
	alias := strings.ToLower(name) // as JKS looks them up
	for n := 2; s.names[alias]; n++ {
		alias = strings.ToLower(name) + "-" + strconv.Itoa(n)
	}
	if s.names == nil {
		s.names = map[string]bool{}
	}
	s.names[alias] = true
	s.count++
	put := func(v any) { _ = binary.Write(&s.entries, binary.BigEndian, v) } // to memory
	word := func(w string) { put(uint16(len(w))); s.entries.WriteString(w) }
	put(uint32(trusted))
	word(alias)
	put(time * 1000)
	word("X.509")
	put(uint32(len(der)))
	s.entries.Write(der)
}

// password is everybody's: there is nothing secret in the store, and Java asks for it
// only where it is to be changed.
const password = "changeit"

// Bytes is the store.
func (s *Store) Bytes() []byte {
	out := binary.BigEndian.AppendUint32(nil, 0xfeedfeed)
	out = binary.BigEndian.AppendUint32(out, 2) // version
	out = binary.BigEndian.AppendUint32(out, s.count)
	out = append(out, s.entries.Bytes()...)
	h := sha1.New()
	for _, c := range utf16.Encode([]rune(password)) {
		h.Write([]byte{byte(c >> 8), byte(c)})
	}
	h.Write([]byte("Mighty Aphrodite")) // as the format has it
	h.Write(out)
	return h.Sum(out)
}
