package refusal

import (
	"strings"
	"testing"
)

func TestOwn(t *testing.T) {
	for _, c := range []struct {
		hint string
		line Command
		want string
	}{
		{"sudo sandglass run script.py", Called("mcp", "--memory", "1g"), "sudo sandglass mcp --memory 1g"},
		{"sudo sandglass run script.py   # where there is no systemd", Called("session"), "sudo sandglass session   # where there is no systemd"},
		{"sudo sandglass run script.py", Called("run", "-e", "A=it's", "--", "x y"), `sudo sandglass run -e 'A=it'\''s' -- 'x y'`},
		{"sudo sandglass run script.py", Called("mcp", strings.Repeat("x", 200)), "sudo sandglass mcp ARG..."},
		{"mkdir /x; sandglass run --cgroup-parent /x script.py", Called("mcp", "-m", "1g"), "mkdir /x; sandglass mcp --cgroup-parent /x -m 1g"},
		{"sh -c 'exec sandglass run script.py'   # as root", Called("mcp"), "sh -c 'exec sandglass run script.py'   # as root"},
		{"sandglass run script.py", Called("mcp"), "sandglass run script.py"}, // how a run looks
		{"sandglass doctor", Called("mcp"), "sandglass doctor"},
	} {
		if got := Own(c.hint, c.line); got != c.want {
			t.Errorf("%s: %s, want %s", c.hint, got, c.want)
		}
	}
	if got := Instead("sudo sandglass session -m 1g", Called("session", "-m", "1g"), Called("mcp")); got != "sudo sandglass mcp" {
		t.Error(got)
	}
	if got := Instead("sudo sandglass sessions", Called("session"), Called("mcp")); got != "sudo sandglass sessions" {
		t.Error(got)
	}
}
