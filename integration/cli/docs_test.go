package cli

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"sandglass/internal/testkit"
	"sandglass/pkg/result"
	"sandglass/pkg/wire"
)

// docs/PROTOCOL.md has the frames and exit codes of the code.
func TestProtocolDocument(t *testing.T) {
	text := read(t, filepath.Join(testkit.Root(t), "docs/PROTOCOL.md"))
	for typ, name := range map[wire.Type]string{
		wire.TypeConfig: "Config", wire.TypeAck: "Ack", wire.TypeFailed: "Failed", wire.TypeNotStarted: "NotStarted",
		wire.TypeStarted: "Started", wire.TypeExited: "Exited", wire.TypeFiles: "Files", wire.TypeReady: "Ready", wire.TypeTerminal: "Terminal", wire.TypeNetwork: "Network",
		wire.TypeIDs: "IDs", wire.TypeWaits: "Waits", wire.TypeText: "Text", wire.TypeRelease: "Release", wire.TypeRooted: "Rooted", wire.TypeExecutes: "Executes",
	} {
		if row := fmt.Sprintf("\n| %d | %s |", typ, name); strings.Count(text, row) != 1 {
			t.Errorf("no row %q", row)
		}
	}
	if n := strings.Count(text, " | to init | ") + strings.Count(text, " | to supervisor | "); n != 16 {
		t.Errorf("%d frames, want 16", n)
	}
	for o, code := range map[result.Outcome]int{
		result.Timeout: result.ExitTimeout, result.CPUTime: result.ExitTimeout, result.Refused: result.ExitRefused,
		result.Failed: result.ExitRefused, result.Memory: result.ExitMemory, result.Output: result.ExitOutput,
	} {
		found := false
		for line := range strings.Lines(text) {
			found = found || strings.HasPrefix(line, fmt.Sprintf("| %d |", code)) && strings.Contains(line, "`"+string(o)+"`")
		}
		if !found {
			t.Errorf("no row for %s with %d", o, code)
		}
	}
}
