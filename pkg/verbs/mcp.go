package verbs

import "sandglass/pkg/policy"

// mcp is done by sandglass-mcp, which reads its own flags; their Set is nil.
func mcp() Verb {
	return Verb{
		Name: "mcp", Help: "offer a model run_code and run_command over the Model Context Protocol",
		Forms: []string{"mcp [FLAGS OF RUN] [--max-running N] [--max-queued N] [FLAGS]"},
		About: `Offers the tools run_code and run_command to a client of the Model Context Protocol,
on stdin and stdout, or over HTTP. Each call has a fresh sandbox of its own. The
flags of run hold for all of them; a model names nothing of the host's, and may have
less of a limit, or more up to its --ceiling. docs/MCP.md has what to paste into
clients. The work is done by sandglass-mcp, a binary that lies beside this one.
`,
		Flags: append([]policy.Flag{
			{Name: "ceiling", Arg: "FLAG=VALUE", Many: true, Help: "the most that a model may ask for of timeout, memory, disk, cpus or pids-limit; without it what the flag says or is by default"},
			{Name: "offer-host", Arg: "HOST[:PORT]", Many: true, Help: "a host that a model may ask for, for one call"},
			{Name: "artifacts", Arg: "SIZE|none", Help: "the most that a call may return of the files in /out (default 1m)"},
			{Name: "http", Arg: "[ADDRESS:]PORT", Help: "serve http://ADDRESS:PORT/mcp instead of stdin and stdout; the address is 127.0.0.1 unless it is said"},
			{Name: "token-file", Arg: "FILE", Help: "the bearer token of --http, in a file that only its owner may read; without it the variable SANDGLASS_MCP_TOKEN"},
			{Name: "http-host", Arg: "NAME", Many: true, Help: "a name that clients may call this server by, beside localhost and addresses"},
			{Name: "origin", Arg: "URL", Many: true, Help: "a web page's origin that may call; without it none may"},
			{Name: "sandglass", Arg: "FILE", Help: "the sandglass to start (default the one beside this binary)"},
		}, policy.SessionFlags()...),
		Run: true,
		Notes: `A call's answer has at most 64k of each stream, unless --output-limit says otherwise.
Exit code 0 when the client has gone, 128+n for signal n, 125 when it cannot start.

The other flags: sandglass help run
`,
	}
}
