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
	} {
		err := refuseOwnExe([]string{"/nonexistent", good, bad})
		var se *sys.StartError
		if !errors.As(err, &se) || se.Call != "execve" || se.Errno != unix.ELOOP {
			t.Errorf("%s: %v, want execve: ELOOP", name, err)
		}
	}
	for _, ok := range []string{good, "/bin/sh", "/nonexistent", dir, file("empty", ""), file("text", "no script"), file("bare", "#!\n")} {
		if err := refuseOwnExe([]string{ok}); err != nil {
			t.Errorf("%s: %v", ok, err)
		}
	}
}
