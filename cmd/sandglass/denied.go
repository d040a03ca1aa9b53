package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"sandglass/internal/refusal"
	"sandglass/pkg/policy"
	"sandglass/pkg/result"
	"sandglass/pkg/sandbox"
)

// mostDenials is how many are told on stderr; the result has all.
const mostDenials = 5

// explainDenials ends a run that explains with what was refused. It was asked
// for, so it is told to who is no terminal as well.
func explainDenials(p *policy.Parsed, res *sandbox.Result) {
	if !p.Spec.ExplainDenials || p.Quiet {
		return
	}
	list, untold := networkDenials(res.Network), res.DeniedMore
	if res.Network != nil {
		untold += res.Network.MoreRefused
	}
	list = append(list, denied(res.Denied, p.Spec.Seccomp)...)
	var text strings.Builder
	for i, l := range list {
		if i >= mostDenials {
			untold += l.count
			continue
		}
		fmt.Fprintln(&text, "hint: "+refusal.Line(l.text))
	}
	if untold > 0 {
		fmt.Fprintf(&text, "hint: and %d more: --result FILE has them\n", untold)
	}
	if text.Len() > 0 {
		tell(os.Stderr, text.String())
	}
}

// denied is what was refused, in words. What libraries do by themselves and go on
// without comes last, however often it was: who looks for the reason of a failure
// would be led astray. The result has all of it in its place.
func denied(rows []result.Denial, profile string) []told {
	var list, quiet []told
	var links told
	for _, d := range rows {
		switch {
		case d.Errno == "ENOSYS": // as on an older kernel: libraries have another way
		case d.What == "socket" && strings.HasPrefix(d.Args, "AF_NETLINK,") && strings.HasSuffix(d.Args, ", 0"): // NETLINK_ROUTE
			links.count += d.Count
		case d.Kind == "host" && d.Args != "":
			quiet = append(quiet, told{denial(d, profile), d.Count})
		default:
			list = append(list, told{denial(d, profile), d.Count})
		}
	}
	if links.count > 0 {
		links.text = "socket(AF_NETLINK) was refused " + times(links.count) +
			" with EAFNOSUPPORT: libraries ask for the network interfaces when they look up a name, and do without"
		quiet = append(quiet, links)
	}
	return append(list, quiet...)
}

// denial is one row in words, with what would allow it where something does.
func denial(d result.Denial, profile string) string {
	what := d.What
	switch {
	case d.Kind == "file":
		what = "writing " + d.What + " (" + d.Args + ")"
	case d.Kind == "host" && d.Args != "":
		what += " (" + d.Args + ")"
	case d.Args != "":
		what += "(" + d.Args + ")"
	}
	often := times(d.Count)
	if d.Program != "" {
		often += " (" + d.Program + ")"
	}
	switch {
	case d.Kind == "file":
		return what + " was out of reach " + often + ": only /tmp, /work, HOME, /out and what -v mounts with :rw can be written"
	case d.Kind == "host" && d.Args != "":
		return what + " was out of reach " + often + ": nothing leads out by UDP; with a library it may be no more than a question for its own address"
	case d.Kind == "host" && d.Errno == "":
		return what + " was out of reach " + often + ": no rule has this port, --allow-host " + refusal.Shell(d.What) + " would add it"
	case d.Kind == "host":
		return what + " was out of reach " + often + ": there is no network but loopback, and what --allow-host lists"
	case profile == "default" && slices.Contains(debugAllows, d.What):
		return what + " was refused " + often + ": run with --seccomp debug"
	}
	return what + " was refused " + often + " with " + d.Errno
}

// debugAllows is what the profile debug has beyond the default one.
var debugAllows = []string{"ptrace", "process_vm_readv", "process_vm_writev", "kcmp"}
