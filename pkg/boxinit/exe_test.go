package boxinit

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"sandglass/internal/sys"

	"golang.org/x/sys/unix"
)

func TestRefuseOwnExe(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("/proc/self/exe", link); err != nil {
		t.Fatal(err)
	}
	good := file("good", "#!/bin/sh -e\n")
	chain := func(n int) string {
		next := "/proc/self/exe"
		for i := range n {
			next = file("chain"+string(rune('a'+i)), "#!"+next+"\n")
		}
		return next
	}
	for name, bad := range map[string]string{
		"the link itself": "/proc/self/exe",
		"thread's":        "/proc/thread-self/exe",
		"a link to it":    link,
		"script":          file("script", "#!/proc/self/exe\n"),
		"argument":        file("argument", "#! \t/proc/self/exe run\n"),
		"no end of line":  file("endless", "#!/proc/self/exe"),
		"script of link":  file("linked", "#!"+link+"\n"),
		"second script":   file("second", "#!"+file("first", "#!/proc/self/exe\n")+" x\n"),
		"descriptor":      "/proc/self/fd/0",
		"fifth script":    chain(5),
		"ELF loader":      file("elf", elf("/proc/self/exe\x00")),
		"linked loader":   file("elf2", elf(link+"\x00")),
		"script of ELF":   file("elf3", "#!"+file("elf4", elf("/proc/self/exe\x00"))+"\n"),
	} {
		err := refuseOwnExe([]string{"/nonexistent", good, bad})
		var se *sys.StartError
		if !errors.As(err, &se) || se.Call != "execve" || se.Errno != unix.ELOOP {
			t.Errorf("%s: %v, want execve: ELOOP", name, err)
		}
	}
	for _, ok := range []string{good, "/bin/sh", "/nonexistent", dir, file("empty", ""), file("text", "no script"), file("bare", "#!\n"),
		file("elf5", elf("/lib64/ld-linux-x86-64.so.2\x00")), file("elf6", elf("/proc/self/exe")), file("elf7", elf("")), file("elf8", elf("x")[:70])} {
		if err := refuseOwnExe([]string{ok}); err != nil {
			t.Errorf("%s: %v", ok, err)
		}
	}
}

// elf is a file whose only segment is a PT_INTERP.
func elf(interp string) string {
	b := make([]byte, elfHeader+elfSegment)
	copy(b, "\x7fELF\x02\x01\x01")
	b[32], b[54], b[56] = elfHeader, elfSegment, 1
	segment := b[elfHeader:]
	segment[0], segment[8], segment[32] = ptInterp, byte(len(b)), byte(len(interp))
	return string(b) + interp
}
