package jks

import (
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// One entry, byte for byte, with the digest that keytool wants.
func TestBytes(t *testing.T) {
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte{0x30, 2, 5, 0}})
	var s Store
	if err := s.Add("A", text, 1); err != nil {
		t.Fatal(err)
	}
	got := s.Bytes()
	want := "\xfe\xed\xfe\xed\x00\x00\x00\x02\x00\x00\x00\x01" + "\x00\x00\x00\x02\x00\x01a\x00\x00\x00\x00\x00\x00\x03\xe8\x00\x05X.509\x00\x00\x00\x04\x30\x02\x05\x00"
	if len(got) != len(want)+20 || string(got[:len(want)]) != want {
		t.Errorf("%q, want %q and a digest", got, want)
	}
	for name, bad := range map[string]string{
		"none": "text\n", "a key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte{0x30, 2, 5, 0}})),
		"no DER": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("text")})),
	} {
		if err := s.Add(name, []byte(bad), 1); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

// Java's own tool reads it, with its digest, and finds what is in it.
func TestKeytool(t *testing.T) {
	const bundle = "/etc/ssl/certs/ca-certificates.crt"
	text, err := os.ReadFile(bundle)
	keytool, kerr := exec.LookPath("keytool")
	if err != nil || kerr != nil {
		t.Skipf("SKIP(want keytool and %s, have %v, %v)", bundle, kerr, err)
	}
	var s Store
	if err := s.Add("Ő bundle", text, 1e9); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "cacerts")
	if err := os.WriteFile(file, s.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(keytool, "-J-Duser.language=en", "-list", "-keystore", file, "-storepass", password).CombinedOutput()
	if want := strings.Count(string(text), "-----BEGIN CERTIFICATE-----"); err != nil || strings.Count(string(out), "trustedCertEntry") != want {
		t.Errorf("%v, want %d certificates\n%.2000s", err, want, out)
	}
	bad := s.Bytes()
	bad[100] ^= 1
	if err := os.WriteFile(file, bad, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(keytool, "-list", "-keystore", file, "-storepass", password).CombinedOutput(); err == nil {
		t.Errorf("a changed one was read\n%.500s", out)
	}
}
