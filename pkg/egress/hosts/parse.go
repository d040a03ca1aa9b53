package hosts

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"sandglass/internal/refusal"
)

// Parse makes a list of the values of --allow-host. Errors are refusals with
// hints. No values are an error too: an empty list must never come to mean all.
func Parse(values []string) (*List, error) {
	if len(values) == 0 {
		return nil, refuse("the list of hosts is empty")
	}
	if len(values) > MaxRules {
		return nil, refuse("%d hosts are too many: at most %d", len(values), MaxRules).
			Hint("--allow-host '*.example.org'   # one rule for all names below one")
	}
	l := &List{}
	for _, v := range values {
		r, err := parseRule(v)
		if w, ok := err.(*wish); ok {
			err = w.hinted()
		}
		if err != nil {
			return nil, err
		}
		l.rules = append(l.rules, r)
	}
	slices.SortFunc(l.rules, func(a, b Rule) int { return strings.Compare(a.String(), b.String()) })
	l.rules = slices.Compact(l.rules)
	if n := len(l.Ports()); n > MaxPorts {
		return nil, refuse("%d different ports are too many: at most %d", n, MaxPorts)
	}
	return l, nil
}

func parseRule(value string) (Rule, error) {
	if err := checkForm(value); err != nil {
		return Rule{}, err
	}
	host, port, err := split(value)
	if err != nil {
		return Rule{}, err
	}
	if strings.Contains(host, ":") || strings.Contains(host, "/") || isAddr(host) {
		return addrRule(value, host, port)
	}
	return nameRule(value, host, port)
}

// checkForm refuses what people write who think of something else.
func checkForm(value string) error {
	switch {
	case value == "":
		return refuse("an empty value").Hint("--allow-host example.org")
	case strings.Contains(value, "://"):
		return instead(refuse("%s is a URL: the name and the port alone are compared, never the path", word(value)),
			"--allow-host example.org", ofURL(value))
	case strings.ContainsAny(value, ", \t\n"):
		return instead(refuse("%s is not one host", word(value)), "--allow-host one.example.org --allow-host two.example.org", ofList(value)...)
	case strings.Contains(value, "@"):
		return instead(refuse("%s has a user in it", word(value)), "--allow-host example.org:22", ofLogin(value))
	}
	return nil
}

// split takes the port off. Of a host with several colons the port is behind
// brackets: where fe80::1:443 ends and its port begins, two readers could differ.
func split(value string) (host string, port uint16, err error) {
	host, tail := value, ""
	if inner, found := strings.CutPrefix(value, "["); found {
		if host, tail, found = strings.Cut(inner, "]"); !found || tail != "" && tail[0] != ':' || !strings.Contains(host, ":") {
			return "", 0, instead(refuse("%s: an IPv6 address stands in the brackets, and a port behind them", word(value)),
				"--allow-host '[2001:db8::1]:443'", ofBrackets(value))
		}
	} else if strings.Count(value, ":") == 1 {
		i := strings.IndexByte(value, ':')
		host, tail = value[:i], value[i:]
	}
	if host == "" {
		return "", 0, refuse("%s has no host", word(value)).Hint("--allow-host example.org:443")
	}
	if tail == "" {
		return host, DefaultPort, nil
	}
	port, err = parsePort(value, tail[1:])
	return host, port, err
}

func parsePort(value, s string) (uint16, error) {
	if n, err := strconv.ParseUint(s, 10, 16); err == nil && n != 0 && strconv.FormatUint(n, 10) == s {
		return uint16(n), nil
	}
	if strings.HasSuffix(lower(s), "/udp") {
		return 0, refuse("%s: hosts are reached by TCP alone", word(value)).Hint("--allow-host example.org:443")
	}
	example := "--allow-host example.org:443"
	if s == "*" || strings.Contains(s, "-") {
		example = "--allow-host example.org:80 --allow-host example.org:443"
	}
	return 0, instead(refuse("%s: the port is a number from 1 to 65535, one for each rule", word(value)), example, ofPort(value, s)...)
}

func nameRule(value, host string, port uint16) (Rule, error) {
	name, wildcard := strings.CutPrefix(host, "*.")
	name = strings.TrimSuffix(name, ".")
	if strings.Contains(name, "*") {
		err := refuse("%s: a star stands for whole parts at the front of a name only", word(value))
		if host == "*" {
			err = refuse("%s: the list cannot mean every host", word(value))
		}
		return Rule{}, err.Hint("--allow-host '*.example.org'")
	}
	switch why := badName(name); {
	case why == notASCII && utf8.ValidString(name):
		return Rule{}, refuse("%s %s: its form in punycode (xn--…) is needed", word(value), why).
			Hint(`python3 -c 'import sys; print(sys.argv[1].encode("idna").decode())' %s`, refusal.Shell(name))
	case why != "" && name[:min(1, len(name))] == ".": // as in NO_PROXY and cookies: all names below
		return Rule{}, instead(refuse("%s %s: names below one begin with a star", word(value), why), "--allow-host '*.example.org'", "*"+value)
	case why != "":
		return Rule{}, refuse("%s %s", word(value), why).Hint("--allow-host example.org:443")
	}
	name = lower(name)
	if own(name) {
		return Rule{}, refuse("%s means the host itself, which is named by its address only", word(value)).
			Hint("--allow-host 127.0.0.1:%d", port)
	}
	// *.com would be the names of everybody: with one of them a program talks to
	// whom it likes.
	if wildcard && !strings.Contains(name, ".") {
		return Rule{}, refuse("%s is too wide: at least two parts stand behind the star", word(value)).
			Hint("--allow-host '*.example.%s'", name)
	}
	return Rule{Name: name, Wildcard: wildcard, Port: port}, nil
}

func isAddr(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil
}

func refuse(format string, args ...any) *refusal.Error {
	return refusal.Newf("--allow-host: "+format, args...)
}

// word is a value in a sentence, which stays one line of bearable length.
func word(s string) string {
	if len(s) > 300 {
		s = strings.ToValidUTF8(s[:300], "") + "…"
	}
	return refusal.Word(s)
}
