package runtimes

import (
	"path/filepath"
	"slices"
	"strings"
)

// Language is one row of the table of what the package knows by name. What is
// not in the table can still be found as a plain command.
type Language struct {
	Name       string   // canonical, lower case: python, node, r
	Aliases    []string // what people also write for --lang: py, js, shell
	Commands   []string // looked up in PATH in this order
	Extensions []string // of source files, with the dot, lower case
	File       string   // what a piece of its code is called inside; "" when code alone cannot be run
	Package    string   // Debian package, for the hint when it is missing

	also  []string // further command stems that belong to it, never looked up unasked
	marks []string // below a prefix, proof that it is this interpreter's own; one * allowed
	wraps bool     // the interpreter itself may be a shell script
	// binary: it is a binary everywhere, so that a script of its name is a wrapper
	// of an unknown kind, whose interpreter cannot be known without running it.
	binary bool
	etc    []string // configuration outside /usr without which it does not start, see config
	lib    []string // below the prefix, where distributions keep its standard library; one * allowed
}

// Languages is the table. It holds constants only, so that it costs no
// initialisation in the binary that executes itself.
var Languages = [...]Language{
	{Name: "python", Aliases: []string{"py", "python3"}, Commands: []string{"python", "python3"}, also: []string{"pypy"},
		Extensions: []string{".py", ".pyw"}, File: "main.py", Package: "python3",
		marks:  []string{"lib/python*/os.py", "lib/pypy*/os.py", "lib-python/3/os.py"},
		binary: true},
	{Name: "node", Aliases: []string{"js", "javascript", "nodejs"}, Commands: []string{"node", "nodejs"},
		Extensions: []string{".js", ".mjs", ".cjs"}, File: "main.js", Package: "nodejs",
		marks: []string{"lib/node_modules/npm", "include/node", "share/doc/node"}, binary: true, lib: []string{"share/nodejs"}},
	{Name: "typescript", Aliases: []string{"ts"}, Commands: []string{"deno", "bun", "node"},
		Extensions: []string{".ts", ".mts"}, File: "main.ts", marks: []string{"lib/node_modules/npm", "include/node"}},
	{Name: "sh", Aliases: []string{"shell"}, Commands: []string{"sh", "bash"},
		Extensions: []string{".sh"}, File: "main.sh", Package: "dash"},
	{Name: "bash", Commands: []string{"bash"},
		Extensions: []string{".bash"}, File: "main.sh", Package: "bash"},
	{Name: "ruby", Aliases: []string{"rb"}, Commands: []string{"ruby"},
		Extensions: []string{".rb"}, File: "main.rb", Package: "ruby",
		marks: []string{"lib/ruby"}, binary: true, lib: []string{"lib/ruby", "lib/*/ruby"}},
	{Name: "perl", Aliases: []string{"pl"}, Commands: []string{"perl"},
		Extensions: []string{".pl"}, File: "main.pl", Package: "perl",
		marks: []string{"lib/perl5", "lib/5.*"}, binary: true, lib: []string{"share/perl", "share/perl5", "lib/*/perl", "lib/*/perl-base"}},
	{Name: "php", Commands: []string{"php"},
		Extensions: []string{".php"}, File: "main.php", Package: "php-cli",
		marks: []string{"lib/php"}, binary: true, lib: []string{"lib/php", "share/php"}},
	{Name: "lua", Commands: []string{"lua", "lua5.4", "lua5.3", "lua5.1", "luajit"},
		Extensions: []string{".lua"}, File: "main.lua", Package: "lua5.4", marks: []string{"share/lua", "lib/lua"}},
	{Name: "r", Aliases: []string{"rscript"}, Commands: []string{"Rscript", "R"}, wraps: true,
		Extensions: []string{".r"}, File: "main.R", Package: "r-base-core", marks: []string{"lib/R", "lib64/R"},
		etc: []string{"/etc/R/ldpaths", "/etc/R/Renviron"}, lib: []string{"lib/R", "share/R"}},
	{Name: "java", Commands: []string{"java"},
		Extensions: []string{".java"}, File: "Main.java", Package: "default-jdk-headless",
		marks: []string{"lib/modules", "lib/rt.jar", "jre/lib/rt.jar"},
		etc:   []string{"jvm-*.cfg", "security", "logging.properties", "net.properties", "jfr"}, lib: []string{"lib", "conf"}},
	{Name: "deno", Commands: []string{"deno"}, File: "main.ts"},
	{Name: "bun", Commands: []string{"bun"}, File: "main.ts"},
	// A Go program needs a module, a cache and minutes of CPU: `run -- go …` works, code alone is refused.
	{Name: "go", Aliases: []string{"golang"}, Commands: []string{"go"}, Package: "golang-go", marks: []string{"pkg/tool"},
		lib: []string{"src", "pkg", "lib", "go.env", "VERSION"}},
	{Name: "tcl", Commands: []string{"tclsh", "tclsh8.6", "tclsh9.0"},
		Extensions: []string{".tcl"}, File: "main.tcl", Package: "tcl", marks: []string{"lib/tcl*/init.tcl"}, lib: []string{"share/tcltk"}},
}

// OfCode are the canonical names of those whose code alone can be run.
func OfCode() (names []string) {
	for i := range Languages {
		if Languages[i].File != "" {
			names = append(names, Languages[i].Name)
		}
	}
	return names
}

// Lang is the canonical language of a name, an alias or a command, in any
// case: "py", "Python" and "python3.12" are python.
func Lang(name string) (lang string, ok bool) {
	if l := ofLang(strings.ToLower(name)); l != nil {
		return l.Name, true
	}
	if l := ofCommand(name); l != nil {
		return l.Name, true
	}
	return "", false
}

// ofLang finds a row by canonical name or alias.
func ofLang(name string) *Language {
	for i := range Languages {
		if l := &Languages[i]; l.Name == name || slices.Contains(l.Aliases, name) {
			return l
		}
	}
	return nil
}

// ofCommand finds a row by command, with or without a version: ruby3.1.
func ofCommand(name string) *Language {
	for i := range Languages {
		l := &Languages[i]
		for _, list := range [...][]string{l.Commands, l.also} {
			for _, c := range list {
				if rest, ok := strings.CutPrefix(name, c); ok && strings.Trim(rest, "0123456789.") == "" {
					// typescript only borrows the commands of others.
					if l.Name != "typescript" {
						return l
					}
				}
			}
		}
	}
	return nil
}

// commands lists what to look up for a name. python means python or else
// python3, but who asks for python3 must not get an old python.
func commands(name string) (*Language, []string) {
	if name != "python3" {
		if l := ofLang(name); l != nil {
			return l, l.Commands
		}
	}
	// Nil for a command that the table does not know.
	l := ofCommand(name)
	if l == nil {
		if l = ofLang(strings.ToLower(name)); l != nil {
			return l, l.Commands
		}
	}
	return l, []string{name}
}

// ByExtension is the language of a source file by the ending of its name.
func ByExtension(path string) (lang string, ok bool) {
	ext := strings.ToLower(filepath.Ext(path))
	for i := range Languages {
		if ext != "" && slices.Contains(Languages[i].Extensions, ext) {
			return Languages[i].Name, true
		}
	}
	return "", false
}

// CodeFile is the name that code of a language is stored under, whichever way Lang
// knows it, or "" when it does not or the language cannot run a single file.
func CodeFile(lang string) string {
	if name, ok := Lang(lang); ok {
		return ofLang(name).File
	}
	return ""
}

// CodeArgs is the argv that runs a source file of lang with exe.
func CodeArgs(lang, exe, file string, args []string) []string {
	if strings.HasPrefix(file, "-") {
		file = "./" + file // a file called -c must not become an option
	}
	argv := []string{exe}
	name, _ := Lang(lang)
	switch base := filepath.Base(exe); {
	case base == "deno":
		// deno would ask for each permission; the sandbox around it is the boundary.
		argv = append(argv, "run", "--allow-all", file)
	case base == "bun":
		argv = append(argv, "run", file)
	case base == "R" && name == "r":
		argv = append(argv, "--no-echo", "--no-restore", "--file="+file)
		if len(args) > 0 {
			argv = append(argv, "--args")
		}
	default:
		argv = append(argv, file)
	}
	return append(argv, args...)
}
