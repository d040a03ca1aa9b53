package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit"
)

// scripted gives a server all of its input at once, and returns each answer by its
// id; those without one are in their order.
func scripted(t *testing.T, input string, flags ...string) (byID map[string]string, nobodys []string) {
	t.Helper()
	cmd := command(t, testkit.AsUser(t), flags...)
	cmd.Stdin = strings.NewReader(input)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%v: %s", err, stderr.String())
	}
	byID = map[string]string{}
	for line := range strings.Lines(string(out)) {
		lines := json.NewDecoder(strings.NewReader(line))
		lines.UseNumber() // an id may have more digits than a float64
		var m struct {
			ID     any
			Result struct {
				IsError           bool
				StructuredContent *answer
			}
			Error *struct {
				Code    int
				Message string
			}
		}
		if err := lines.Decode(&m); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		text := "answered"
		switch a := m.Result.StructuredContent; {
		case m.Error != nil:
			text = fmt.Sprint(m.Error.Code, " ", m.Error.Message)
		case a != nil:
			text = fmt.Sprint(a.Outcome, " ", a.ExitCode, " ", a.Stdout)
		case m.Result.IsError:
			text = line
		}
		if m.ID == nil {
			nobodys = append(nobodys, text)
		} else if byID[fmt.Sprint(m.ID)] != "" {
			t.Errorf("a second answer: %s", line)
		} else {
			byID[fmt.Sprint(m.ID)] = text
		}
	}
	return byID, nobodys
}

// runOf is a call that prints something.
func runOf(id, script string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"run_command","arguments":{"command":["sh","-c",%q]}}}`, id, script)
}

// TestHostileLines: what is no message is answered, and neither ends the server nor
// a call that is under way. At the end of the requests all that was accepted is
// answered, the run that is under way and those that wait.
func TestHostileLines(t *testing.T) {
	lines := []string{
		initialize,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		runOf("2", "sleep 1; echo two"),
		"no JSON", `{"jsonrpc":"2.0","id":3,"method":"ping"} x`, "", " \t\r", "[]", "[1]", `"x"`, "null", `{"foo":1}`,
		`{"jsonrpc":"1.0","id":4,"method":"ping"}`, `{"jsonrpc":"2.0","id":9007199254740993,"method":6}`, `{"jsonrpc":"2.0","id":{},"method":"ping"}`,
		strings.Repeat("[", 100_000), strings.Repeat("x", 8<<20+1),
		runOf("2", "echo twice"),
		`{"jsonrpc":"2.0","id":99,"result":{}}`, // an answer to nothing
		`[{"jsonrpc":"2.0","id":"a","method":"ping"},{"jsonrpc":"2.0","id":"b","method":"ping"}]`, // 2025-06-18 has none
		`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, `{"jsonrpc":"2.0","id":9007199254740995,"method":"ping"}`, `{"jsonrpc":"2.0","id":null,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":7,"method":"nosuch"}`,
		runOf("8", "echo eight; exit 3"),
	}
	got, nobodys := scripted(t, strings.Join(lines, "\n"), "--max-running", "1")
	for id, want := range map[string]string{
		"1": "answered", "2": "exited 0 two\n", "4": "-32600 invalid message version tag", "9007199254740993": "-32600 ", "9007199254740995": "-32600 the id is neither", "1.5": "-32600 the id is neither",
		"7": "-32601 ", "8": "exited 3 eight\n",
	} {
		if !strings.HasPrefix(got[id], want) {
			t.Errorf("call %s: %q, want %q", id, got[id], want)
		}
		delete(got, id)
	}
	if len(got) > 0 {
		t.Errorf("answers to nothing: %q", got)
	}
	var codes []string
	for _, text := range nobodys {
		code, _, _ := strings.Cut(text, " ")
		codes = append(codes, code)
	}
	const parse, invalid = " -32700", " -32600"
	want := strings.TrimSpace(parse + parse + strings.Repeat(invalid, 6) + parse + strings.Repeat(invalid, 4))
	if s := strings.Join(codes, " "); s != want {
		t.Errorf("%s, want %s: %q", s, want, nobodys)
	}
}

// TestBatches: a client of a protocol that has them gets one array for each.
func TestBatches(t *testing.T) {
	old := strings.Replace(initialize, "2025-06-18", "2025-03-26", 1)
	ping := func(id string) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"ping"}`, id) }
	cmd := command(t, testkit.AsUser(t))
	cmd.Stdin = strings.NewReader(strings.Join([]string{old,
		"[" + runOf("2", "echo two") + "," + ping("3") + `,{"jsonrpc":"2.0","method":"notifications/initialized"},` + ping("3") + "]",
		`[{"jsonrpc":"2.0","method":"notifications/initialized"}]`, "[" + ping("4") + "]", "[" + ping("5") + "," + ping("6.5") + "]", "[]", ping("7")}, "\n"))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(out)) {
		one := line[0] == '{'
		if one {
			line = "[" + line + "]"
		}
		var list []struct {
			ID    any
			Error *struct{ Code int }
		}
		if err := json.Unmarshal([]byte(line), &list); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		var ids []string
		for _, a := range list {
			text := fmt.Sprint(a.ID)
			if a.Error != nil {
				text += fmt.Sprint(" ", a.Error.Code)
			}
			ids = append(ids, text)
		}
		slices.Sort(ids) // calls are done side by side
		text := strings.Join(ids, ", ")
		if !one {
			text = "[" + text + "]"
		}
		got = append(got, text)
	}
	slices.Sort(got)
	want := []string{"1", "7", "<nil> -32600", "<nil> -32600", "[2, 3, <nil> -32600]", "[4]"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestEndOfRequests: a run goes on to its own limit, and is answered.
func TestEndOfRequests(t *testing.T) {
	got, _ := scripted(t, initialize+"\n"+runOf("2", "echo begun; sleep 86400"), "--timeout", "3s")
	if got["1"] != "answered" || got["2"] != "timeout 124 begun\n" {
		t.Errorf("%q", got)
	}
	if got, _ := scripted(t, initialize); got["1"] != "answered" {
		t.Errorf("%q", got)
	}
}
