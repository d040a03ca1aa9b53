package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// floorName is the contender that is what the kernel alone costs: a static C
// program that clones into the same namespaces, makes the same root, and executes
// the program. It has no limits, no filter, keeps its capabilities and checks
// nothing.
const floorName = "floor"

//go:embed testdata/floor.c
var floorSource []byte

// floors are the floor and, in front of it, its namespaces alone.
func floors(o *options, dir string) []*contender {
	const bare = floorName + ", namespaces alone"
	binary, mounts, err := buildFloor(o, dir)
	if err != nil {
		return []*contender{{name: bare, missing: err.Error()}, {name: floorName, missing: err.Error()}}
	}
	text, err := exec.Command(binary, "/bin/cat", "/proc/self/mountinfo").Output()
	if err != nil {
		return []*contender{{name: floorName, missing: err.Error()}}
	}
	fmt.Printf("mounts inside: sandglass run %d, the floor %d\n", mounts, strings.Count(string(text), "\n"))
	return []*contender{command(bare, binary, "-n", program), command(floorName, binary, program)}
}

// buildFloor compiles it for what a default run makes of this host. mounts is how
// many there are in the run's own table.
func buildFloor(o *options, dir string) (binary string, mounts int, err error) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		return "", 0, fmt.Errorf("want gcc, have none")
	}
	text, err := exec.Command(o.sandglass, slices.Concat([]string{"plan", "--json"}, degraded(), []string{"--", program})...).Output()
	if err != nil {
		return "", 0, fmt.Errorf("sandglass plan: %w", err)
	}
	info, err := exec.Command(o.sandglass, slices.Concat([]string{"run"}, degraded(), []string{"--", "/bin/cat", "/proc/self/mountinfo"})...).Output()
	if err != nil {
		return "", 0, fmt.Errorf("mounts of a run: %w", err)
	}
	ops, err := floorOps(text, string(info))
	if err != nil {
		return "", 0, err
	}
	source, table, binary := filepath.Join(dir, "floor.c"), filepath.Join(dir, "ops.h"), filepath.Join(dir, "floor")
	if err := os.WriteFile(source, floorSource, 0o644); err != nil {
		return "", 0, err
	}
	if err := os.WriteFile(table, []byte(floorTable(ops)), 0o644); err != nil {
		return "", 0, err
	}
	return binary, strings.Count(string(info), "\n"), loud(exec.Command(gcc, "-O2", "-static", "-Wall", "-include", table, "-o", binary, source))
}

// floorOp is one step of the floor's, as testdata/floor.c has them.
type floorOp struct {
	kind     string
	to, from string
}

// floorOps are the directories, files and links of a plan, and the mounts of the
// table that a run of it had.
func floorOps(plan []byte, mountinfo string) ([]floorOp, error) {
	var p struct {
		Mounts []struct{ Op, Target, Source string }
	}
	if err := json.Unmarshal(plan, &p); err != nil {
		return nil, err
	}
	f := floorBuilder{made: map[string]bool{"/": true}}
	for _, m := range p.Mounts {
		if strings.HasPrefix(m.Target, "/tmp/") {
			continue // floor.c has one file and one directory for all masks, and its own scratch
		}
		switch m.Op {
		case "dir":
			f.directory(m.Target)
		case "file":
			f.file(m.Target)
		case "link":
			f.parent(m.Target)
			f.ops = append(f.ops, floorOp{"LINK", m.Target, m.Source})
		}
	}
	points := mountPoints(mountinfo)
	var binds []floorOp
	for _, point := range points {
		if scratch[point] == "" && point != "/" && point != "/proc" && !strings.HasPrefix(point, "/proc/") {
			f.target(point)
			binds = append(binds, floorOp{"BIND", point, point})
		}
	}
	f.ops = append(append(f.ops, binds...), floorOp{"FREEZE", "/", ""})
	tmpfs := false
	for _, point := range points {
		switch {
		case point == "/proc":
			f.ops = append(f.ops, floorOp{"PROC", point, ""})
		case point == "/proc/sys":
			f.ops = append(f.ops, floorOp{"INNER", point, point})
		case strings.HasPrefix(point, "/proc/"):
			f.ops = append(f.ops, floorOp{maskKind(point), point, ""})
		case point == "/tmp" && !tmpfs:
			tmpfs = true
			f.ops = append(f.ops, floorOp{"TMPFS", point, ""})
		case scratch[point] != "":
			f.ops = append(f.ops, floorOp{"DIR", scratch[point], ""}, floorOp{"INNER", point, scratch[point]})
		}
	}
	return f.ops, nil
}

// scratch are the places that are one tmpfs, and where each lies in it.
var scratch = map[string]string{"/tmp": "/tmp/tmp", "/work": "/tmp/work", "/home/sandbox": "/tmp/home", "/out": "/tmp/out", "/dev/shm": "/tmp/shm"}

// mountPoints are those of a table, in its order: that of the mounts.
func mountPoints(mountinfo string) []string {
	var points []string
	for line := range strings.Lines(mountinfo) {
		if fields := strings.Fields(line); len(fields) > 4 {
			points = append(points, fields[4])
		}
	}
	return points
}

// maskKind says whether what is hidden is a directory.
func maskKind(point string) string {
	if st, err := os.Stat(point); err == nil && st.IsDir() {
		return "MASKDIR"
	}
	return "MASK"
}

// floorBuilder makes each directory once, after its parent.
type floorBuilder struct {
	ops  []floorOp
	made map[string]bool
}

func (f *floorBuilder) directory(name string) {
	if f.made[name] {
		return
	}
	f.parent(name)
	f.made[name] = true
	f.ops = append(f.ops, floorOp{"DIR", name, ""})
}

func (f *floorBuilder) parent(name string) { f.directory(path.Dir(name)) }

func (f *floorBuilder) file(name string) {
	if f.made[name] {
		return
	}
	f.parent(name)
	f.made[name] = true
	f.ops = append(f.ops, floorOp{"FILE", name, ""})
}

// target is what something of the host's is mounted on.
func (f *floorBuilder) target(name string) {
	if st, err := os.Stat(name); err == nil && !st.IsDir() {
		f.file(name)
		return
	}
	f.directory(name)
}

// floorTable is the operations in C. Names in the new root are relative to it.
func floorTable(ops []floorOp) string {
	var b strings.Builder
	b.WriteString("enum kind { DIR, FILE_, LINK, BIND, FREEZE, PROC, INNER, MASK, MASKDIR, TMPFS };\n")
	b.WriteString("static const struct op { enum kind kind; const char *to, *from; } ops[] = {\n")
	for _, op := range ops {
		kind, from := op.kind, op.from
		if kind == "FILE" {
			kind = "FILE_" // FILE is a type
		}
		if kind == "INNER" {
			from = within(from)
		}
		fmt.Fprintf(&b, "\t{%s, %s, %s},\n", kind, strconv.Quote(within(op.to)), strconv.Quote(from))
	}
	b.WriteString("};\n")
	return b.String()
}

func within(name string) string {
	if name = strings.TrimPrefix(name, "/"); name == "" {
		return "."
	}
	return name
}
