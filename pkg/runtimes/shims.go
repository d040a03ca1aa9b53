package runtimes

import (
	"path/filepath"
	"strings"

	"sandglass/internal/refusal"
)

// headBytes of a script are read to see which shim it is.
const headBytes = 4 << 10

// manager is a version manager whose shims are scripts in $ROOT/shims and
// whose versions are directories in $ROOT/versions.
type manager struct {
	name     string
	env      string // variable that overrides every file
	file     string // looked for from the current directory upward
	fallback bool   // a version that is not installed is passed over silently
}

// managers: only pyenv goes on to the rest of PATH when the version it is set
// to is missing (measured with 2.6); the others stop with an error.
var managers = [...]manager{
	{"pyenv", "PYENV_VERSION", ".python-version", true},
	{"rbenv", "RBENV_VERSION", ".ruby-version", false},
	{"nodenv", "NODENV_VERSION", ".node-version", false},
	{"plenv", "PLENV_VERSION", ".perl-version", false},
	{"phpenv", "PHPENV_VERSION", ".php-version", false},
	{"luaenv", "LUAENV_VERSION", ".lua-version", false},
	{"goenv", "GOENV_VERSION", ".go-version", false},
	{"jenv", "JENV_VERSION", ".java-version", false},
}

// throughShim is the executable behind a shim at path, or "" when path is no
// shim. A skip error means that the rest of PATH is to be searched.
func (f Finder) throughShim(lang *Language, path, real string) (string, error) {
	cmd := filepath.Base(path)
	switch filepath.Base(real) {
	case "mise", "rtx":
		return f.mise(lang, path, cmd)
	case "volta-shim":
		return f.volta(path, cmd)
	case "snap":
		return "", skip(quote(path) + " is a snap, which runs only through its daemon")
	}
	dir := filepath.Dir(path)
	if inHostView(real) && filepath.Base(dir) != "shims" {
		return "", nil // a wrapper there finds inside what it finds outside
	}
	head, err := readFile(real, headBytes, false)
	if err != nil || !strings.HasPrefix(string(head), "#!") {
		return "", nil // execute-only is possible; a binary then
	}
	script := string(head)
	if filepath.Base(dir) == "shims" {
		root := filepath.Dir(dir)
		for _, m := range managers {
			if strings.Contains(script, m.name+`" exec `) || strings.Contains(script, m.name+" exec ") {
				return f.versioned(m, lang, root, cmd)
			}
		}
		if strings.Contains(script, `asdf" exec `) || strings.Contains(script, "asdf exec ") {
			return f.asdf(script, root, cmd)
		}
	}
	if lang == nil || lang.wraps || inHostView(real) || !lang.binary {
		return "", nil
	}
	return "", skip(quote(path) + " is a script of an unknown kind")
}

// versioned resolves a shim of the pyenv family without running it.
func (f Finder) versioned(m manager, lang *Language, root, cmd string) (string, error) {
	versions, origin := f.versionsOf(m, root)
	name := ""
	if lang != nil {
		name = lang.Name
	}
	lost := ""
	for _, v := range versions {
		if v == "system" {
			return "", skip(m.name + " is set to system by " + quote(origin))
		}
		dir := installed(root+"/versions", name, v)
		if dir == "" {
			lost = v
			continue
		}
		if exe := dir + "/bin/" + cmd; executable(exe) == nil {
			return exe, nil
		}
	}
	if lost != "" {
		return "", f.lost(m.name, cmd, lost, origin, m.fallback).orStop()
	}
	return "", skip(m.name + " has no " + quote(cmd) + " in the versions set by " + quote(origin))
}

// versionsOf is what a manager is set to, and by what.
func (f Finder) versionsOf(m manager, root string) (versions []string, origin string) {
	if set := f.getenv(m.env); set != "" {
		return readVersions([]byte(strings.ReplaceAll(set, ":", "\n"))), m.env
	}
	local := false
	upward(f.Cwd, m.file, func(data []byte) bool {
		versions, local = readVersions(data), true
		return true
	})
	if local {
		return versions, m.file
	}
	origin = root + "/version"
	if data, err := readFile(origin, versionBytes, true); err == nil {
		return readVersions(data), origin
	}
	return nil, origin
}

// lostVersion is a version that a manager is set to and does not have.
type lostVersion struct {
	text string
	hint string
	pass bool
}

func (f Finder) lost(tool, cmd, version, origin string, pass bool) lostVersion {
	l := lostVersion{
		text: tool + " has no version " + quote(version) + " for " + quote(cmd) + " (set by " + quote(origin) + ")",
		hint: tool + " install " + refusal.Shell(version),
		pass: pass,
	}
	// A name alone is a file of the task's, perhaps a model's; `pyenv install X`
	// takes the file X of the current directory for a recipe, and runs it.
	if strings.HasPrefix(origin, ".") || strings.HasSuffix(origin, ".toml") && !filepath.IsAbs(origin) {
		l.hint = tool + " versions   # " + quote(origin) + " names another"
		if tool == "asdf" || tool == "mise" {
			l.hint = tool + " list   # " + quote(origin) + " names another"
		}
	}
	return l
}

// orStop is the error: silently taking another version than the one that was
// chosen is done only where the manager itself does so.
func (l lostVersion) orStop() error {
	if l.pass {
		return skip(l.text)
	}
	return refusal.Newf("%s", l.text).Hint("%s", l.hint).Code(refusal.ExitNotFound)
}

// asdf resolves an asdf shim, which names its plugins in comments.
func (f Finder) asdf(script, root, cmd string) (string, error) {
	plugin := ""
	for line := range strings.Lines(script) {
		if rest, ok := strings.CutPrefix(line, "# asdf-plugin: "); ok {
			if words := strings.Fields(rest); len(words) > 0 && plainVersion(words[0]) {
				plugin = words[0]
				break
			}
		}
	}
	if plugin == "" {
		return "", skip("an asdf shim for " + quote(cmd) + " names no plugin")
	}
	key := "ASDF_" + strings.ToUpper(strings.ReplaceAll(plugin, "-", "_")) + "_VERSION"
	versions, origin := readTools([]byte(plugin+" "+f.getenv(key)), plugin), key
	read := func(data []byte) bool {
		versions = readTools(data, plugin)
		return len(versions) > 0
	}
	if len(versions) == 0 {
		origin = ".tool-versions"
		upward(f.Cwd, origin, read)
	}
	if len(versions) == 0 && filepath.IsAbs(f.Home) {
		if data, err := readFile(f.Home+"/.tool-versions", versionBytes, true); err == nil {
			read(data)
		}
	}
	return f.pick("asdf", root+"/installs/"+plugin, cmd, origin, versions, false)
}

// pick is the command in the first of versions that has it.
func (f Finder) pick(tool, dir, cmd, origin string, versions []string, pass bool) (string, error) {
	for _, v := range versions {
		if v == "system" {
			return "", skip(tool + " is set to system by " + quote(origin))
		}
		at := installed(dir, "", v)
		if at == "" {
			return "", f.lost(tool, cmd, v, origin, pass).orStop()
		}
		if exe := at + "/bin/" + cmd; executable(exe) == nil {
			return exe, nil
		}
	}
	return "", skip(tool + " has no version set for " + quote(cmd))
}

// mise resolves a shim that is a link to mise itself: from MISE_X_VERSION, the
// simple forms of mise.toml and .tool-versions, and the global configuration.
// When mise has nothing set, it runs what comes later in PATH.
func (f Finder) mise(lang *Language, path, cmd string) (string, error) {
	tool := cmd
	if lang != nil {
		tool = lang.Name
	}
	if lang == nil || filepath.Base(filepath.Dir(path)) != "shims" {
		return "", skip(quote(path) + " leads to mise, which is no interpreter")
	}
	dir := filepath.Dir(filepath.Dir(path)) + "/installs/" + tool
	if v := f.getenv("MISE_" + strings.ToUpper(tool) + "_VERSION"); plainVersion(v) {
		return f.pick("mise", dir, cmd, "the environment", []string{v}, true)
	}
	var versions []string
	toml := func(data []byte) bool {
		versions = readTOML(data, tool)
		return len(versions) > 0
	}
	origin := ""
	for _, name := range [...]string{"mise.toml", ".mise.toml", ".tool-versions"} {
		read := toml
		if name == ".tool-versions" {
			read = func(data []byte) bool {
				versions = readTools(data, tool)
				return len(versions) > 0
			}
		}
		if upward(f.Cwd, name, read); len(versions) > 0 {
			origin = name
			break
		}
	}
	if len(versions) == 0 && filepath.IsAbs(f.Home) {
		origin = f.Home + "/.config/mise/config.toml"
		if data, err := readFile(origin, 4*versionBytes, true); err == nil {
			toml(data)
		}
	}
	return f.pick("mise", dir, cmd, origin, versions, true)
}

// volta resolves a link to volta-shim to the user's default platform. Pins in
// a package.json are not read: it is the model's as often as not.
func (f Finder) volta(path, cmd string) (string, error) {
	root := filepath.Dir(filepath.Dir(path))
	origin := root + "/tools/user/platform.json"
	data, err := readFile(origin, versionBytes, true)
	if err != nil {
		return "", skip("volta has no default platform in " + quote(origin))
	}
	_, rest, _ := strings.Cut(string(data), `"runtime"`)
	fields := strings.SplitN(rest, `"`, 3)
	if cmd != "node" || len(fields) < 3 || strings.Trim(fields[0], ": \t\r\n") != "" || !plainVersion(fields[1]) {
		return "", skip("volta has no default version for " + quote(cmd))
	}
	return f.pick("volta", root+"/tools/image/node", cmd, origin, fields[1:2], false)
}
