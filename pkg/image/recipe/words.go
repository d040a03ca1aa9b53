package recipe

import (
	"path"
	"strings"

	"sandglass/internal/refusal"
)

// Newest is the version that stands for the newest one.
const Newest = "*"

const (
	lower  = "abcdefghijklmnopqrstuvwxyz"
	digits = "0123456789"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

func made(s, of string) bool { return strings.Trim(s, of) == "" }

// checkName takes the names of the Debian policy (5.6.1) and nothing else: what
// begins with a dash is an option to apt, what ends with one removes a package,
// and =, / and : choose something else than the recipe says.
func checkName(s string) error {
	if len(s) < 2 || len(s) > 128 || !made(s[:1], lower+digits) || !made(s, lower+digits+"+-.") || strings.HasSuffix(s, "-") {
		return refusal.Newf("%s is not the name of a package", refusal.Word(s)).Hint("apt-cache search WORD")
	}
	return nil
}

// checkVersion takes the versions of the Debian policy (5.6.12), which begin with a digit.
func checkVersion(s string) error {
	if s == "" || len(s) > 128 || !made(s[:1], digits) || !made(s, lower+upper+digits+".+-~:") {
		return refusal.Newf("%s is not the version of a package", refusal.Word(s)).Hint("package NAME *   # the newest")
	}
	return nil
}

// checkPath takes absolute paths without a detour.
func checkPath(s string) error {
	if !strings.HasPrefix(s, "/") || path.Clean(s) != s || s == "/" || len(s) > 1024 {
		return refusal.Newf("%s is not an absolute path in an image, without .. and the like", refusal.Word(s))
	}
	return nil
}

func isVariable(s string) bool {
	return s != "" && made(s, lower+upper+digits+"_") && !made(s[:1], digits)
}

// Pattern is a path whose parts may have *, ? and [] as in a shell; a part ** is
// any number of parts. It means what it matches and all below that.
type Pattern struct {
	Text  string
	parts []string
}

// ParsePattern reads one.
func ParsePattern(s string) (Pattern, error) {
	if err := checkPath(s); err != nil {
		return Pattern{}, err
	}
	p := Pattern{s, strings.Split(s[1:], "/")}
	for _, part := range p.parts {
		if _, err := path.Match(part, ""); err != nil || strings.ContainsRune(part, '\\') || part != "**" && strings.Contains(part, "**") {
			return Pattern{}, refusal.Newf("%s is not a pattern", refusal.Word(s)).Hint("remove '/usr/lib/python3*/**/tests'")
		}
	}
	if made(s, "/*") {
		return Pattern{}, refusal.Newf("%s matches everything", refusal.Word(s))
	}
	return p, nil
}

// Must is ParsePattern for patterns of our own.
func Must(list ...string) []Pattern {
	out := make([]Pattern, len(list))
	for i, s := range list {
		p, err := ParsePattern(s)
		if err != nil {
			panic("recipe: " + err.Error())
		}
		out[i] = p
	}
	return out
}

// Match says whether a path of an image, without the slash in front, is what the
// pattern means, or lies below it.
func (p Pattern) Match(name string) bool { return matchParts(p.parts, strings.Split(name, "/")) }

func matchParts(pattern, name []string) bool {
	if len(pattern) == 0 {
		return true
	}
	if pattern[0] == "**" {
		for i := range len(name) + 1 {
			if matchParts(pattern[1:], name[i:]) {
				return true
			}
		}
		return false
	}
	if len(name) == 0 {
		return false
	}
	ok, err := path.Match(pattern[0], name[0])
	return err == nil && ok && matchParts(pattern[1:], name[1:])
}

// Any says whether one of the patterns matches.
func Any(list []Pattern, name string) bool {
	for _, p := range list {
		if p.Match(name) {
			return true
		}
	}
	return false
}

// Removes says whether the recipe, or what is of no use in any image, leaves a
// path out.
func (r *Recipe) Removes(name string) bool {
	return !Any(r.Keep, name) && !Any(locales, name) && (Any(useless, name) || Any(r.Remove, name))
}

// locales is the one that LANG names inside.
var locales = Must("/usr/lib/locale/C.utf8", "/usr/lib/locale/C.UTF-8")

// useless is what nothing in a sandbox can use: what installs packages, what
// starts with a machine, what is read by people, and languages that are not set.
var useless = Must(
	"/var", "/boot", "/run", "/home", "/root", "/srv", "/media", "/mnt", "/dev", "/proc", "/sys", "/tmp",
	"/etc/apt", "/etc/dpkg", "/etc/cron*", "/etc/init.d", "/etc/init", "/etc/rc*.d", "/etc/logrotate.d", "/etc/default", "/etc/kernel",
	"/etc/pam.d", "/etc/security", "/etc/skel", "/etc/systemd", "/etc/udev", "/etc/bash_completion.d", "/etc/apparmor.d",
	"/usr/bin/dpkg*", "/usr/bin/apt*", "/usr/lib/apt", "/usr/lib/dpkg", "/usr/share/dpkg", "/usr/share/apt", "/usr/share/debconf",
	"/usr/lib/systemd", "/usr/lib/udev", "/usr/lib/tmpfiles.d", "/usr/lib/sysusers.d", "/usr/lib/init", "/usr/lib/locale",
	"/usr/share/doc", "/usr/share/doc-base", "/usr/share/man", "/usr/share/info", "/usr/share/lintian", "/usr/share/bug", "/usr/share/reportbug",
	"/usr/share/menu", "/usr/share/locale", "/usr/share/i18n", "/usr/share/bash-completion", "/usr/share/zsh", "/usr/share/fish",
	"/usr/share/applications", "/usr/share/pixmaps", "/usr/share/icons", "/usr/share/metainfo", "/usr/share/help", "/usr/share/gtk-doc",
	"/usr/share/apport", "/usr/share/gdb", "/usr/share/binfmts", "/usr/share/initramfs-tools", "/usr/games",
)
