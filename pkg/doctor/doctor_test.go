package doctor

import (
	"os"
	"slices"
	"strings"
	"testing"

	"sandglass/internal/testkit/schema"
	"sandglass/pkg/boxinit"
	"sandglass/pkg/launch"
	"sandglass/pkg/sandbox"
	"sandglass/pkg/wire"
)

func TestMain(m *testing.M) {
	sandbox.Init()
	Init()
	os.Exit(m.Run())
}

func example() *Report {
	return &Report{Schema: Schema,
		Host: Host{Kernel: "6.1.0", Machine: "amd64", UID: 1000, Cgroup: "v1", Kind: []string{"podman container"}},
		Run:  Run{State: Less, Flags: "--allow-degraded memory,cpu", Error: "memory limit: x", Hints: []string{"y"}},
		Layers: []Layer{
			{Name: userNS, State: Works, Detail: "the caller's own host id, 1000"},
			{Name: proc, State: DoesNot, Cause: "mount /proc: no", Remedies: []string{"one", "two"}},
			{Name: pivotRoot, State: DoesNot, Cause: "pivot_root: no", Remedies: []string{"one", "two"}},
			{Name: devices, State: NotTried, Cause: "it needs it"},
			{Name: scratch, State: NotTried, Cause: "it needs it"},
			{Name: landlock, State: Less, Detail: "version 2", Cause: "old"},
			{Name: "memory limit", State: Less, Cause: "no group: mkdir /a", Remedies: []string{"sudo", "--allow-degraded memory   # less"}, Flag: "--allow-degraded memory"},
			{Name: "cpu limit", State: Less, Cause: "no group: mkdir /b", Remedies: []string{"sudo", "--allow-degraded cpu   # less"}, Flag: "--allow-degraded cpu"},
			{Name: "io limit", State: Less, Cause: "another: mkdir /b\x1b[2J", Remedies: []string{"sudo", "--allow-degraded io   # less"}, Flag: "--allow-degraded io"},
		}}
}

func TestText(t *testing.T) {
	const want = `Linux 6.1.0 amd64, uid 1000, cgroup v1, podman container

works            user namespace: the caller's own host id, 1000
does not         proc: mount /proc: no
    one
    two
does not         pivot_root: pivot_root: no
    the same as for proc
not tried        devices, scratch: it needs it
works with less  landlock: version 2: old
works with less  memory limit, cpu limit: no group: mkdir /a
    sudo
    --allow-degraded memory,cpu   # weaker means, by name
works with less  io limit: another: mkdir /b\x1b[2J
    the same as for memory limit
    --allow-degraded io   # weaker means, by name

A run starts here with --allow-degraded memory,cpu; without it is refused.
`
	r := example()
	if got := r.Text(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if r.Starts() {
		t.Error("it starts only with flags")
	}
	r.Run = Run{State: Works}
	if got := r.Text(); !strings.HasSuffix(got, "\n\nA run starts here.\n") || !r.Starts() {
		t.Error(got)
	}
	r.Run = Run{State: DoesNot, Error: "no\nway"}
	if got := r.Text(); !strings.HasSuffix(got, "\n\nNo run starts here: no\\nway\n") || r.Starts() {
		t.Error(got)
	}
}

func TestSchema(t *testing.T) {
	s := schema.Load(t, "../../docs/doctor.schema.json")
	text, err := example().JSON()
	if err != nil {
		t.Fatal(err)
	}
	if bad := s.Validate(text, "report"); len(bad) > 0 {
		t.Errorf("%q", bad)
	}
	for name, spoil := range map[string]func(*Report){
		"schema":        func(r *Report) { r.Schema = 2 },
		"state":         func(r *Report) { r.Layers[0].State = "works well" },
		"name":          func(r *Report) { r.Layers[0].Name = "another" },
		"flag":          func(r *Report) { r.Layers[0].Flag = "--privileged" },
		"run":           func(r *Report) { r.Run.State = NotTried },
		"no kind":       func(r *Report) { r.Host.Kind = nil },
		"empty remedy":  func(r *Report) { r.Layers[1].Remedies = []string{""} },
		"unknown flags": func(r *Report) { r.Run.Flags = "--force" },
	} {
		r := example()
		spoil(r)
		text, err := r.JSON()
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Validate(text, "report")) == 0 {
			t.Errorf("%s: the schema takes %s", name, text)
		}
	}
	// The schema's names are those of the code, in its order.
	layer := s["$defs"].(map[string]any)["layer"].(map[string]any)["properties"].(map[string]any)["name"].(map[string]any)["enum"].([]any)
	var names []string
	for _, tr := range trials() {
		names = append(names, tr.name)
		if tr.name == userNS {
			names = append(names, ownID)
		}
		if tr.name == bindMounts {
			names = append(names, idMapped)
		}
	}
	for _, l := range []string{"memory", "cpu", "pids", "io"} {
		names = append(names, limitLayer(l))
	}
	if len(layer) != len(names) {
		t.Fatalf("%d names, the schema has %d", len(names), len(layer))
	}
	for i := range names {
		if layer[i] != names[i] {
			t.Errorf("layer %d is %s, in the schema %v", i, names[i], layer[i])
		}
	}
}

// What the trials name are steps and calls of a run: one that is renamed there
// would be tried no more.
func TestTrialsAreARuns(t *testing.T) {
	var steps []string
	for _, s := range boxinit.Steps() {
		steps = append(steps, s.Name)
	}
	calls := boxinit.Child(&wire.Config{CgroupNS: true, Rlimits: []wire.Rlimit{{}}, Seccomp: make([]byte, 8)}, 0, 0).Names()
	seen := map[string]bool{}
	for _, tr := range trials() {
		for _, s := range tr.steps {
			seen[s] = true
			if !slices.Contains(steps, s) {
				t.Errorf("%s: init has no step %q", tr.name, s)
			}
		}
		for _, c := range tr.calls {
			seen[c] = true
			if !slices.Contains(calls, c) {
				t.Errorf("%s: the program's process makes no call %q", tr.name, c)
			}
		}
		cfg, err := tr.config()
		if err != nil {
			t.Errorf("%s: %v", tr.name, err)
		} else if tr.mounts != nil && (len(cfg.Mounts) < 2 || cfg.Mounts[0].Kind != wire.OpRoot) {
			t.Errorf("%s: mounts %v", tr.name, cfg.Mounts)
		}
	}
	// These have no host that lacks them, or are of the whole, or of a flag: a run
	// that is started finds out. Its ids are taken by each trial.
	left := []string{"take the ids", "terminal", "die with the supervisor", "receive the plan", "working directory", "hand out the artefact directory",
		"hand out the place of the text", "hand out the way to write to the root", "start program", "report the root", "report the start", "close descriptors of init"}
	for _, s := range steps {
		if !seen[s] && !slices.Contains(left, s) {
			t.Errorf("no layer tries the step %q", s)
		}
	}
}

// A trial is started and tells; a child that says nothing is told too.
func TestTrial(t *testing.T) {
	e := &examiner{report: &Report{}, self: "/proc/self/exe"}
	if err := e.host(); err != nil {
		t.Fatal(err)
	}
	defer e.release()
	child := launch.Trial{Self: e.self, Identity: e.id, Namespaces: launch.Namespaces, Argv: []string{arg0, scratch}}
	r := child.Run()
	if r.Step == "clone" {
		t.Skipf("SKIP(want user namespaces, have %s)", r.What)
	}
	if r.What != "" {
		t.Fatalf("%+v", r)
	}
	child.Argv[1] = "no such layer"
	if r := child.Run(); r.What != "the trial's process ended without a word" {
		t.Errorf("%+v", r)
	}
}
