package verbs

import "sandglass/pkg/policy"

func run() Verb {
	return Verb{Name: "run", Help: "one program in one fresh sandbox", Forms: policy.Forms(), About: policy.About, Notes: policy.Notes, Run: true}
}

func session() Verb {
	return Verb{
		Name: "session", Help: "many programs, each in a fresh sandbox, by requests on stdin",
		Forms: []string{"session [FLAGS OF RUN] [--max-running N] [--max-queued N] [--warm KIND=N,...]"},
		About: `Runs many programs, each in a fresh sandbox of its own. Each line on stdin is a
request, each line on stdout a reply, all in JSON; docs/SESSION.md has them all.

  {"type":"run","id":"1","code":"print(1)","lang":"python"}
  {"type":"run","id":"2","command":["sh","-c","cat in; echo x >/out/y"],
   "files":[{"path":"in","text":"hello"}],"artifacts":{"inline":"1m"},
   "options":{"memory":"512m","timeout":"5s"},"output":"stream"}
  {"type":"cancel","id":"2"}

The flags are defaults: a request's options have the same names and replace them,
or are added where a flag may be repeated. --allow-degraded, --allow-mount and
--cgroup-parent hold for all runs and are no options of a request.

--warm makes sandboxes before there is a request, for requests with the session's
own policy: command=2 for any program, python=2 or node=2 with the interpreter
started, for code without arguments, environment and files.
`,
		Flags: policy.SessionFlags(),
		Run:   true,
		Notes: `At the end of stdin all that was accepted is finished and answered. A signal, or a
reader of stdout that goes away, ends every run at once. Exit code 0, 128+n for
signal n, 125 when it cannot start or nobody reads.

The other flags: sandglass help run
`,
	}
}

func asJSON(help string) policy.Flag { return policy.Flag{Name: "json", Bool: true, Help: help} }

func check() Verb {
	return Verb{
		Name: "check", Help: "prove the controls on this host by doing the forbidden things",
		Forms: []string{"check [--json] [--allow-degraded LIST]"},
		About: `Does the forbidden things inside real sandboxes of the default policy and says
of each control whether it held. Exit code 0: all held; 1: one did not; 125:
sandboxes cannot be started here.
`,
		Flags: []policy.Flag{
			asJSON("one JSON object instead of lines"),
			{Name: "allow-degraded", Arg: "LIST", Help: "limits that may be held by less: memory,cpu,pids,io"},
		},
	}
}

func doctor() Verb {
	return Verb{
		Name: "doctor", Help: "say what this host gives a sandbox, what it lacks, and the remedy",
		Forms: []string{"doctor [--json]"},
		About: `Tries each layer of the sandbox on this host, in throwaway children, and says
whether it works, why not, and what to paste. Exit code 0: a run with no flags
starts here; 125: it would be refused, and the last line says whether flags help.
`,
		Flags: []policy.Flag{asJSON("one JSON object instead of lines, see docs/doctor.schema.json")},
	}
}

func plan() Verb {
	return Verb{
		Name: "plan", Help: "print what a run with these flags would do",
		Forms: []string{"plan [FLAGS] [host|DIR|IMAGE] COMMAND [ARG...]\n       and every other form of sandglass run, with the same flags"},
		About: `Prints what a run with these flags would mount, filter, limit and map, and runs
nothing. Exit code 0: the command line is good; a run on this host may still be
refused, and then the last line says why. 125, 126, 127: as a run's refusal.
`,
		Flags: append([]policy.Flag{asJSON("the plan as one JSON object: the same flags on the same host give the same bytes, for diffing. " +
			"It is no result, and --result is not written")}, policy.PlanFlags()...),
		Run:   true,
		Notes: "The other flags: sandglass help run\n",
	}
}

func profile() Verb {
	return Verb{
		Name: "profile", Help: "list, show, compare, compile and learn system call profiles",
		Forms: []string{
			"profile list",
			"profile show NAME|FILE.json",
			"profile diff A B",
			"profile compile [-o FILE.bpf] [--force] FILE.json",
			"profile learn [FLAGS OF RUN] -o FILE.json [--merge OLD.json] -- COMMAND [ARG...]",
		},
		About: `A profile says which system calls a program may make: sandglass run --seccomp
NAME, or a compiled one, --seccomp ./FILE.bpf. Its form is in
seccomp-profiles/README.md.
`,
		Sub: []Verb{
			{Name: "list", Help: "the profiles that come with sandglass"},
			{Name: "show", Help: "one of them, or a file in the form that learn writes"},
			{Name: "diff", Help: "a line for each call that A and B decide differently. Exit code 0 when there is none, 1 when there are"},
			{Name: "compile", Help: "a profile for this machine's architecture, to FILE.bpf beside it", Flags: []policy.Flag{
				{Short: "o", Arg: "FILE.bpf", Help: "write it there"},
				{Name: "force", Bool: true, Help: "replace a file that is there"},
			}},
			{Name: "learn", Help: "run COMMAND, with the flags of run, under the default profile, and write a profile of what it used. " +
				"What the default profile refuses stays refused, and is listed. Run it with all that the program is to do, and more than once: " +
				"--merge OLD adds to OLD, and -o may be OLD itself. Each call is slower meanwhile; --timeout may have to be longer. " +
				"The exit code is the program's own", Flags: policy.LearnFlags(), Run: true},
		},
		Notes: "A file that is there is replaced only where --merge names it, or by compile --force.\n",
	}
}

func image() Verb {
	limit := func(name, arg, help string) policy.Flag { return policy.Flag{Name: name, Arg: arg, Help: help} }
	quiet := policy.Flag{Name: "quiet", Short: "q", Bool: true, Help: "nothing on stderr but errors"}
	return Verb{
		Name: "image", Help: "import and build images, list, show, verify, export and remove them",
		Forms: []string{
			"image import [FLAGS] FILE|DIR", "image build [FLAGS] RECIPE", "image from-host [FLAGS] COMMAND...", "image list [--json]", "image show [--json] IMAGE", "image verify [IMAGE...]",
			"image rm [--force] IMAGE...", "image prune [--cache]", "image export IMAGE DIR",
		},
		About: `Images that sandglass run IMAGE runs a program in, see docs/IMAGES.md. An IMAGE is a
name, or sha256: and at least twelve digits of its digest. The store is
XDG_DATA_HOME/sandglass, else /var/lib/sandglass for root and
~/.local/share/sandglass for others. The work is done by sandglass-image, a binary
that lies beside this one.
`,
		Sub: []Verb{
			{Name: "import", Help: "an archive of docker save, an OCI layout or an archive of one, a tar archive of a root (also gzip, zstd), a directory", Flags: []policy.Flag{
				limit("name", "NAME[:TAG]", "what it is called; without it as FILE or DIR. What the archive calls itself does not count"),
				{Name: "force", Bool: true, Help: "NAME may mean another image now, and then means this one"}, quiet,
				limit("max-files", "N", "files, directories and links (default 400000)"),
				limit("max-bytes", "SIZE", "of all files together (default 16g)"),
				limit("max-ratio", "N", "how many times larger than the archive they may be (default 200)"),
				limit("max-layers", "N", "layers (default 256)"),
				limit("max-config", "SIZE", "of settings and of lists of layers (default 4m)"),
			}},
			{Name: "build", Help: "an image of Debian's packages. RECIPE is static, bash, python, python-science, node, go or java, or a FILE.recipe: " +
				"docs/IMAGES.md. apt chooses, downloads and checks the packages; nothing of them is run, and none is installed", Flags: []policy.Flag{
				limit("name", "NAME[:TAG]", "what it is called; without it as RECIPE"),
				{Name: "force", Bool: true, Help: "NAME may mean another image now, and then means this one"}, quiet,
				limit("lock", "FILE", "exactly the packages of FILE; where there is none it is made"),
				limit("mirror", "URL", "not from the host's sources, but from here"),
				limit("suite", "NAME", "its release (default the host's)"),
				limit("keyring", "FILE", "the keys that its lists are signed with (default Debian's)"),
			}},
			{Name: "from-host", Help: "an image of interpreters and programs of this host, with their libraries and standard library: python3, node, sh", Flags: []policy.Flag{
				limit("name", "NAME[:TAG]", "what it is called; without it host-COMMAND"),
				{Name: "force", Bool: true, Help: "NAME may mean another image now, and then means this one"}, quiet,
			}},
			{Name: "list", Help: "the names, and the images without one", Flags: []policy.Flag{asJSON("one JSON object instead of lines")}},
			{Name: "show", Help: "settings, layers, size, what was left out and what has no effect inside", Flags: []policy.Flag{asJSON("one JSON object instead of lines")}},
			{Name: "verify", Help: "reads every byte of these images, or of all; exit code 1 when one is not as it was"},
			{Name: "rm", Help: "takes names away, and images that have no other. One that a run uses stays", Flags: []policy.Flag{
				{Name: "force", Bool: true, Help: "of a digest: all its names"},
			}},
			{Name: "prune", Help: "removes images without a name, leftovers of killed imports, contents that no image has, downloads that no build has used for 30 days", Flags: []policy.Flag{
				{Name: "cache", Bool: true, Help: "and all other downloads, which the next build gets again"},
			}},
			{Name: "export", Help: "writes an OCI layout with one layer to DIR, which must not be there"},
		},
	}
}

func sweep() Verb {
	return Verb{
		Name: "sweep", Help: "remove what runs whose supervisor was killed have left",
		Forms: []string{"sweep [--json]"},
		About: `Removes what runs and checks whose supervisor was killed have left on this
host, as far as this user may: control groups, and files of check's. Every run
does the same where it makes its own groups, so this is only needed when there
is no next run. What belongs to a live supervisor is never touched: it holds a
lock, which ends with it. Files that a check made less than a minute ago stay.
Exit code 0, or 125 when something could not be removed.
`,
		Flags: []policy.Flag{asJSON("one JSON object instead of lines")},
	}
}

func version() Verb {
	return Verb{
		Name: "version", Help: "print the version",
		Forms: []string{"version"},
		About: "Prints the version, the machine and the Go release that built it, on one line.\n",
	}
}
