package hosts

import (
	"strconv"
	"strings"

	"sandglass/internal/refusal"
)

// mostMeant is how many values a hint repeats at most.
const mostMeant = 8

// wish is a refusal of a value that was meant in another form.
type wish struct {
	why     *refusal.Error
	example string
	meant   []string
}

func (w *wish) Error() string { return w.why.Error() }

// instead is err with a hint at the values that were meant, where they would be
// accepted, and else at an example: what is pasted must not be refused again.
// Which of the two it is Parse asks, once: what was meant may be refused with a
// wish of its own.
func instead(err *refusal.Error, example string, meant ...string) error {
	return &wish{err, example, meant}
}

// hinted is the refusal with its hint.
func (w *wish) hinted() *refusal.Error {
	var words []string
	for _, m := range w.meant {
		if _, bad := parseRule(m); bad != nil || len(w.meant) > mostMeant {
			return w.why.Hint("%s", w.example)
		}
		words = append(words, "--allow-host "+refusal.Shell(m))
	}
	if len(words) == 0 {
		return w.why.Hint("%s", w.example)
	}
	return w.why.Hint("%s", strings.Join(words, " "))
}

// ofURL is the host of a URL, at the port that its scheme means.
func ofURL(value string) string {
	scheme, rest, _ := strings.Cut(value, "://")
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	rest = rest[strings.LastIndexByte(rest, '@')+1:]
	if port := service(lower(scheme)); port != "" && (!strings.Contains(rest, ":") || strings.HasSuffix(rest, "]")) {
		return rest + ":" + port
	}
	return rest
}

// service is the port of what people write for one.
func service(name string) string {
	switch name {
	case "http", "ws":
		return "80"
	case "ssh", "git+ssh":
		return "22"
	case "":
		return strconv.Itoa(DefaultPort)
	}
	return ""
}

// ofList are the hosts of a list with commas or spaces. A number among them is one
// more port of the host before it.
func ofList(value string) []string {
	var list []string
	host := ""
	for _, v := range strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(", \t\n", r) }) {
		if _, err := strconv.ParseUint(v, 10, 16); err == nil {
			v = host + ":" + v
		} else if host = v; strings.Count(v, ":") == 1 || strings.Contains(v, "]:") {
			host = v[:strings.LastIndexByte(v, ':')]
		}
		list = append(list, v)
	}
	return list
}

// ofLogin is the host of user@host, or of what git calls user@host:path, where ssh
// is meant.
func ofLogin(value string) string {
	host, port, _ := strings.Cut(value[strings.LastIndexByte(value, '@')+1:], ":")
	if _, err := strconv.ParseUint(port, 10, 16); err == nil {
		return host + ":" + port
	}
	return host + ":" + service("ssh")
}

// ofPort are hosts with the ports that were meant by the port s of value.
func ofPort(value, s string) []string {
	host := strings.TrimSuffix(value, s) // with the colon
	first, last, isRange := strings.Cut(s, "-")
	number, _, _ := strings.Cut(s, "/") // 443/tcp
	switch {
	case s == "*":
		return []string{host + "80", host + "443"}
	case isRange:
		return []string{host + first, host + last}
	case service(s) != "":
		return []string{host + service(s)}
	}
	if bare := strings.TrimLeft(number, "0"); bare != "" && bare != s && strings.Trim(bare, "0123456789") == "" {
		return []string{host + bare}
	}
	return []string{host + strconv.Itoa(DefaultPort)}
}

// ofBrackets is what stands in brackets that are in the wrong place.
func ofBrackets(value string) string {
	host, tail, _ := strings.Cut(strings.TrimPrefix(value, "["), "]")
	if port := strings.TrimPrefix(tail, ":"); port != "" {
		tail = ":" + port
	}
	if strings.Contains(host, ":") {
		return "[" + host + "]" + tail
	}
	return host + tail
}

// unbracketed is an IPv6 network with the port behind it, in the form that tells
// where the one ends, "" for anything else.
func unbracketed(value string) string {
	i := strings.LastIndexByte(value, ':')
	if i < 0 || strings.HasPrefix(value, "[") || !strings.Contains(value[:i], "/") {
		return ""
	}
	return "[" + value[:i] + "]" + value[i:]
}
