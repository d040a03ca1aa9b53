package policy

import (
	"path"
	"slices"
	"strings"

	"sandglass/internal/refusal"
)

// place is a path of the host that hostile code must not get by accident. Both
// what is below it and what contains it are as bad, unless itself is set: then
// only the path and what contains it.
type place struct {
	path   string
	why    string
	itself bool
}

// hostPlaces are the same for every caller.
var hostPlaces = [...]place{
	{path: "/proc", why: "it shows every process of the host, with its environment"},
	{path: "/sys", why: "it holds the kernel's settings"},
	{path: "/dev", why: "it holds the host's devices"},
	{path: "/run", why: "it holds the sockets of the host's services"},
	{path: "/var/run", why: "it holds the sockets of the host's services"},
	{path: "/boot", why: "it holds the kernel that starts next"},
	{path: "/etc", why: "it holds the host's accounts, keys and settings"},
	{path: "/home", why: "it holds everybody's files", itself: true},
	{path: "/lost+found", why: "it holds files that lost their names"},
	{path: "/tmp", why: "it holds other programs' sockets and files", itself: true},
	{path: "/var/tmp", why: "it holds other programs' sockets and files", itself: true},
	{path: "/var/lib/docker", why: "it holds the containers of the host"},
	{path: "/var/lib/containerd", why: "it holds the containers of the host"},
	{path: "/var/lib/containers", why: "it holds the containers of the host"},
	{path: "/var/lib/kubelet", why: "it holds the secrets of the host's pods"},
	{path: "/var/lib/rancher", why: "it holds the secrets of the host's cluster"},
	{path: "/var/lib/lxc", why: "it holds the containers of the host"},
	{path: "/var/lib/lxd", why: "it holds the containers of the host"},
	{path: "/var/lib/sss", why: "it holds cached accounts"},
	{path: "/var/lib/systemd", why: "it holds the secrets of the host's services"},
	{path: "/var/spool/cron", why: "it holds commands that the host runs"},
	{path: "/var/backups", why: "it holds copies of the host's accounts"},
	{path: "/var/log", why: "it holds the host's logs", itself: true},
	{path: "/var/mail", why: "it holds everybody's mail"},
	{path: "/var/spool/mail", why: "it holds everybody's mail"},
}

// homeSecrets are paths below a home directory that hold keys, tokens,
// passwords or histories. Some hold the last name's neighbours as well.
const homeSecrets = ".ssh .gnupg .aws .azure .kube .docker .podman .config .netrc .git-credentials .gitconfig .npmrc .yarnrc" +
	" .pypirc .pgpass .my.cnf .mylogin.cnf .vault-token .terraform.d .terraformrc .boto .s3cfg .rclone.conf .password-store" +
	" .local/share/keyrings .local/share/containers .local/share/docker .local/share/kwalletd .local/state .pki .mozilla" +
	" .thunderbird .gem/credentials .cargo/credentials .cargo/credentials.toml .m2/settings.xml .m2/settings-security.xml" +
	" .gradle/gradle.properties .composer/auth.json .dbus .Xauthority .ICEauthority .bash_history .zsh_history" +
	" .python_history .node_repl_history .psql_history .mysql_history .sqlite_history .rediscli_history .lesshst .viminfo" +
	" .histfile .histdb .snowflake .databricks .oci .minikube .helm .ansible .chef .putty .subversion" +
	" .cache/huggingface .kaggle .jupyter .netlify .heroku .fly .vscode .vscode-server .cursor .electrum .bitcoin .ethereum" +
	" .claude .claude.json .codex .gemini .dockercfg .tsh .cloudflared .ngrok2 .doctl .linode-cli .railway .supabase .expo .sentryclirc" +
	" .wgetrc .curlrc .authinfo .authinfo.gpg .msmtprc .fetchmailrc .offlineimaprc .mbsyncrc .cert .step .sops .age .1password" +
	" .Private .ecryptfs .purple .irssi .weechat .local/share/fish .local/share/TelegramDesktop snap .var" +
	" .databrickscfg .ollama .pulumi .huggingface .netrc.gpg .op .doppler .vercel .gsutil .cvspass .bundle/config .nuget .openai .anthropic" +
	" .aider.conf.yml .copilot .continue .streamlit/secrets.toml .mongorc.js .dbshell .bash_sessions .zsh_sessions .sh_history .Renviron"

// homeShell are files below a home directory that shells start with, where
// people export their tokens.
const homeShell = ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .kshrc .cshrc .tcshrc" +
	" .envrc .direnvrc .xonshrc"

// homeStartup are further paths below a home directory that the host runs code
// from: harmless to read.
const homeStartup = ".xinitrc .xprofile .xsession .xsessionrc .inputrc .vimrc .vim .emacs .emacs.d .pythonrc" +
	" .local/bin .local/lib .local/share/sandglass .local/share/applications .local/share/systemd bin .gdbinit .tmux.conf .screenrc .npm-global" +
	" .irbrc .Rprofile .julia .ipython .duckdbrc .sqliterc" +
	" .psqlrc .selected_editor .pam_environment .nanorc .wezterm.lua .lesskey .asdf .volta .deno .bun .local/share/mise" +
	" .cargo/bin .rustup .pyenv .rbenv .nvm .sdkman .oh-my-zsh .hgrc .mailcap .forward .rhosts .k5login"

// systemPlaces are what the host runs as; harmless to read, not to write.
var systemPlaces = [...]place{
	{path: "/usr", why: "the host runs programs from it"},
	{path: "/bin", why: "the host runs programs from it"},
	{path: "/sbin", why: "the host runs programs from it"},
	{path: "/lib", why: "the host loads libraries from it"},
	{path: "/lib32", why: "the host loads libraries from it"},
	{path: "/lib64", why: "the host loads libraries from it"},
	{path: "/libx32", why: "the host loads libraries from it"},
	{path: "/opt", why: "the host runs programs from it"},
	{path: "/snap", why: "the host runs programs from it"},
	{path: "/nix", why: "the host runs programs from it"},
	{path: "/var/lib", why: "it holds the state of the host's services"},
	{path: "/var/spool", why: "it holds the work of the host's services"},
	{path: "/var/cache", why: "it holds the work of the host's services"},
}

// DangerousSource says why a host path must not be shown to hostile code:
// secrets, sockets, or control of the host at it, below it or above it. The
// path is absolute; call it on the path as given and on the path with every
// symbolic link resolved, because a link can lead anywhere. home is the
// caller's, "" when unknown; every directory of /home is taken for one anyway.
func DangerousSource(resolved, home string) (reason string, bad bool) {
	p := path.Clean(resolved)
	if p == "/" {
		return "it is the whole host", true
	}
	for _, d := range hostPlaces {
		if why, bad := d.judge(p); bad {
			return why, true
		}
	}
	if path.Clean(home) != "/root" { // else it is judged like any other home
		if why, bad := (place{path: "/root", why: "it holds the administrator's files"}).judge(p); bad {
			return why, true
		}
	}
	if why, bad := judgeHomes(p, home, homeSecrets, "it holds the owner's keys, tokens or settings"); bad {
		return why, true
	}
	return judgeHomes(p, home, homeShell, "the owner's shell starts with it, and may have tokens from it")
}

// DangerousWrite is DangerousSource for a path that hostile code may write to:
// it also refuses what the host runs code from.
func DangerousWrite(resolved, home string) (reason string, bad bool) {
	if why, bad := DangerousSource(resolved, home); bad {
		return why, true
	}
	p := path.Clean(resolved)
	for _, d := range systemPlaces {
		if why, bad := d.judge(p); bad {
			return why, true
		}
	}
	return judgeHomes(p, home, homeStartup, "the owner's shell or programs run code from it")
}

func (d place) judge(p string) (string, bool) {
	switch {
	case p == d.path, !d.itself && below(p, d.path):
		return d.why, true
	case below(d.path, p):
		return "it contains " + d.path + ": " + d.why, true
	}
	return "", false
}

func judgeHomes(p, home, names, why string) (string, bool) {
	for _, h := range homes(p, home) {
		if whyHome, bad := (place{path: h, why: "it is a whole home directory", itself: true}).judge(p); bad {
			return whyHome, true
		}
		if !below(p, h) {
			continue
		}
		for name := range strings.SplitSeq(names, " ") {
			if whyName, bad := (place{path: h + "/" + name, why: why}).judge(p); bad {
				return whyName, true
			}
		}
	}
	return "", false
}

// homes are the home directories that p could lie in: the caller's and the one
// below each place where systems keep them.
func homes(p, home string) []string {
	var list []string
	if home = path.Clean(home); strings.HasPrefix(home, "/") && home != "/" {
		list = append(list, home)
	}
	for _, parent := range [...]string{"/home/", "/var/home/", "/export/home/"} {
		if name, ok := strings.CutPrefix(p, parent); ok {
			user, _, _ := strings.Cut(name, "/")
			list = append(list, parent+user)
		}
	}
	return list
}

// below says that p lies inside dir and is not dir itself.
func below(p, dir string) bool {
	return len(p) > len(dir)+1 && p[len(dir)] == '/' && p[:len(dir)] == dir
}

// MayFollow says that a symbolic link in this directory may be followed on the
// way to what is written: no sandbox can be given the directory for writing, so
// no program made the link. Where one can be, because it was allowed, it is not.
func (s *Spec) MayFollow(dir string) bool {
	for _, p := range s.AllowMounts {
		if p = path.Clean(p); dir == p || below(dir, p) {
			return false
		}
	}
	_, bad := DangerousWrite(dir, s.Home)
	return bad
}

// CheckSource refuses a dangerous host path unless AllowMounts names that very
// path. The mount planner calls it again with links resolved; only naming the
// resolved path then helps, since a link can be turned after it was allowed.
func (s *Spec) CheckSource(resolved string, write bool) error {
	e := s.danger(resolved, write)
	if e == nil {
		return nil
	}
	return e.Hint("share only the files the task needs: -v \"$PWD/task:/task:ro\"")
}

// ByLink words a refusal of what a link leads to. Its hint does not have the
// target allowed: a program may have made the link, and a hint is pasted.
func ByLink(what, name string, err error) error {
	e, ok := err.(*refusal.Error)
	if !ok {
		return err
	}
	e.What = what + " leads through a symbolic link: " + e.What
	e.Hints = []string{WhereALinkLeads(name)}
	return e
}

// WhereALinkLeads is the hint for a path that a link leads away from.
func WhereALinkLeads(name string) string {
	return "readlink -f -- " + refusal.Shell(name) + "   # where it leads: name that itself, if it is what you want"
}

// CheckWritten is CheckSource for a place that the supervisor itself writes to.
func (s *Spec) CheckWritten(flag, resolved string) error {
	if e := s.danger(resolved, true); e != nil {
		return where(flag, e)
	}
	return nil
}

func (s *Spec) danger(resolved string, write bool) *refusal.Error {
	judge := DangerousSource
	if write {
		judge = DangerousWrite
	}
	why, bad := judge(resolved, s.Home)
	if !bad || slices.Contains(s.AllowMounts, path.Clean(resolved)) {
		return nil
	}
	e := refusal.Newf("host path %s is refused: %s", quote(resolved), why)
	if below(path.Clean(resolved), "/proc") {
		return e // a process's own, which is gone when a hint is pasted
	}
	return e.Hint("if it must be this path: --allow-mount %s", refusal.Shell(resolved))
}
