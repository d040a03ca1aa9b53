package launch

import (
	"os"
	"strings"

	"sandglass/internal/refusal"

	"golang.org/x/sys/unix"
)

// Around is what the hints of a refusal need to know of the run: pasted, they run
// in the same root and under the same weaker limits, or they would be refused or
// answer for another root.
type Around struct {
	Again string // the run's own command line up to its command, "" for sandglass run
	Bare  string // the same in the host's view
	Image string // "image NAME" or the directory that is the root, "" for the host's view
	Root  string // the host path of its files
}

func (a *Around) run() string {
	if a.Again == "" {
		return "sandglass run"
	}
	return a.Again
}

// notIn says which root a command is not in.
func (a *Around) notIn() string {
	if a.Image == "" {
		return ""
	}
	return ": not in " + a.Image
}

// commandDirs is where a root has its commands.
var commandDirs = [...]string{"/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"}

// whereIs helps with a command that is not inside: the host may have it
// outside the view, in it but not where PATH inside leads, or not at all.
func (a *Around) whereIs(name string) []string {
	if a.Image != "" {
		return a.whereInImage(name)
	}
	if strings.Contains(name, "/") {
		return []string{a.run() + " -- ls -ld -- " + refusal.Shell(name)}
	}
	path := onHost(name)
	switch {
	case path == "":
		return []string{a.run() + " -- ls /usr/bin   # the commands that are inside"}
	case below(path, "/usr", "/bin", "/sbin"):
		return []string{a.run() + " -- " + refusal.Shell(path) + "   # PATH inside does not lead to it"}
	}
	at := "/opt/" + name
	return []string{a.run() + " -v " + refusal.Shell(path+":"+at) + " -- " + refusal.Shell(at) + "   # the host has it outside /usr"}
}

// onHost is where the caller's PATH leads for a name, "" for nowhere.
func onHost(name string) string {
	for _, dir := range strings.Split(os.Getenv("PATH"), ":") {
		path := dir + "/" + name
		if strings.HasPrefix(path, "/") && unix.Access(path, unix.X_OK) == nil {
			return path
		}
	}
	return ""
}

// whereInImage looks in the image's files: an image need not have an ls to look with.
func (a *Around) whereInImage(name string) []string {
	if strings.Contains(name, "/") {
		if strings.HasPrefix(name, "/") {
			return []string{"ls -ld -- " + refusal.Shell(a.Root+name) + "   # where " + a.Image + " is on this host"}
		}
		return []string{"ls -- " + refusal.Shell(a.Root) + "   # the files of " + a.Image}
	}
	var dirs, hints []string
	for _, dir := range commandDirs {
		var st unix.Stat_t
		if unix.Lstat(a.Root+dir, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
			continue // a link is to one of the others, or to a place of the host's
		}
		dirs = append(dirs, refusal.Shell(a.Root+dir))
		if unix.Lstat(a.Root+dir+"/"+name, &st) == nil {
			hints = append(hints, a.run()+" -- "+refusal.Shell(dir+"/"+name)+"   # PATH inside does not lead to it")
		}
	}
	if dirs == nil {
		dirs = []string{refusal.Shell(a.Root)}
	}
	hints = append(hints, "ls -- "+strings.Join(dirs, " ")+"   # the commands of "+a.Image)
	if path := onHost(name); path != "" && below(path, "/usr", "/bin", "/sbin") {
		hints = append(hints, a.Bare+" -- "+refusal.Shell(name)+"   # the host's, without the image")
	}
	return hints
}
