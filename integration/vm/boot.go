package main

import (
	"bufio"
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

//go:embed guest.sh
var guest string

// script is what the machine runs: guest.sh, then a line for each suite.
func (m machine) script(source string) string {
	var b strings.Builder
	if m.arch != "" {
		source = "/src" // boot.sh puts it there
	}
	fmt.Fprintf(&b, "source=%s\nbuilt=%s\nprograms=%s\n%s\n", quote(source), quote("/vm/src/"+m.built("tests")), quote("/vm/src/"+m.built("c")), guest)
	for _, s := range m.suites {
		who := "as_root"
		if s.user {
			who = "as_user"
		}
		args := []string{who, s.pkg, binaryName(s.pkg), "-test.v=test2json", "-test.timeout=12m"}
		if s.run != "" {
			args = append(args, "-test.run="+s.run)
		}
		if s.skip != "" {
			args = append(args, "-test.skip="+s.skip)
		}
		if m.update {
			args = append(args, "-update")
		}
		for i := range args {
			args[i] = quote(args[i])
		}
		b.WriteString("suite " + strings.Join(args, " ") + "\n")
	}
	return b.String()
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// run boots the machine and writes what its tests said as go test -json does.
func (m machine) run() *column {
	begin := time.Now()
	c := newColumn(m.name)
	for _, s := range m.suites {
		c.must[s.pkg] = true
	}
	err := m.boot(c)
	if err != nil && !c.begun {
		fmt.Printf("vm: %s: it did not come up, once more: %v\n", m.name, err)
		err = m.boot(c)
	}
	if err != nil {
		c.bad = err.Error()
	}
	c.took = time.Since(begin)
	return c
}

func (m machine) boot(c *column) error {
	source, err := os.Getwd()
	if err != nil {
		return err
	}
	dir := filepath.Join(work, "run", m.name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	file := filepath.Join(dir, "suites.sh")
	if err := os.WriteFile(file, []byte(m.script(source)), 0o644); err != nil {
		return err
	}
	out, err := os.Create(m.results())
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command("integration/vm/boot.sh", m.dir(), file)
	cmd.Env = append(os.Environ(), "LIMIT=2400", "CONSOLE="+filepath.Join(dir, "console"), "APPEND="+m.append)
	if m.arch != "" {
		cmd.Env = append(cmd.Env, "ARCH="+m.arch, "ROOT="+m.built("root"))
	}
	if m.init != "" {
		cmd.Env = append(cmd.Env, "VMINIT="+m.init)
	}
	if m.nine {
		cmd.Env = append(cmd.Env, "NINE=1")
	}
	cmd.Stderr = os.Stderr
	lines, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := running.start(cmd); err != nil {
		return err
	}
	err = m.split(lines, out, c)
	if e := running.wait(cmd); e != nil {
		err = fmt.Errorf("the machine: %v", e)
	}
	return err
}

// Lines of guest.sh around the output of each suite.
const (
	beginMark = "@@ begin "
	endMark   = "@@ end "
)

// split gives each suite's output to test2json of its own. What stands between
// the suites is the machine's trouble, and is shown.
func (m machine) split(from io.Reader, to io.Writer, c *column) error {
	var now *converter
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadString('\n')
		pkg, begins := strings.CutPrefix(strings.TrimSpace(line), beginMark)
		switch {
		case begins:
			c.begun = true
			if now, err = convert(m.name+" "+pkg, to); err != nil {
				return err
			}
		case now != nil && strings.HasPrefix(line, endMark):
			if err := now.end(c); err != nil {
				return err
			}
			now = nil
		case m.update && strings.HasPrefix(line, goldenMark):
			if err := writeGolden(line); err != nil {
				return err
			}
		case now != nil:
			io.WriteString(now.in, line)
		case strings.TrimSpace(line) != "":
			fmt.Printf("vm: %s: %s\n", m.name, strings.TrimSpace(line))
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	if now != nil { // the machine died in it: without PASS it has failed
		return now.end(c)
	}
	return nil
}

// goldenMark begins a line with a golden file: its name, and its text in quotes.
const goldenMark = "@@ golden "

func writeGolden(line string) error {
	path, quoted, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), goldenMark), " ")
	text, err := strconv.Unquote(quoted)
	if err != nil {
		return fmt.Errorf("the golden file of %q: %v", path, err)
	}
	return os.WriteFile(filepath.Join("integration/vm", path), []byte(text), 0o644)
}

// converter is a test2json in progress.
type converter struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *strings.Builder
	to  io.Writer
}

func convert(pkg string, to io.Writer) (*converter, error) {
	v := &converter{cmd: exec.Command("go", "tool", "test2json", "-t", "-p", pkg), out: &strings.Builder{}, to: to}
	v.cmd.Stdout, v.cmd.Stderr = v.out, os.Stderr
	var err error
	if v.in, err = v.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	return v, v.cmd.Start()
}

func (v *converter) end(c *column) error {
	v.in.Close()
	if err := v.cmd.Wait(); err != nil {
		return err
	}
	if err := c.read(strings.NewReader(v.out.String())); err != nil {
		return err
	}
	_, err := io.WriteString(v.to, v.out.String())
	return err
}
