package compat

import (
	"testing"

	"sandglass/internal/testkit"
)

var tools = []program{
	{file: "bash.sh", needs: "bash",
		want: "process substitution\ncoprocess\nended by 15\nthrough a fifo\ntrapped\nhere string\n"},
	{file: "coreutils.sh", needs: "bash free",
		want: "b2bc7d3f8b652d2e\n 1 a 2 b \nd/ d/f d/l \nf\n1970-01-01\nba\n1\n256\n65536\n"},
	{file: "awk.sh", needs: "bash awk gawk", want: "5050\npiped\n1970-01-01\nco-process\n"},
	{file: "jq.sh", needs: "jq", want: "3\n3\n[{\"key\":\"b\",\"value\":3}]\n"},
	{file: "git.sh", needs: "bash git", start: inCheckout,
		want: "first\nsecond\nfirst\nfsck: clean\n 1 file changed, 1 insertion(+)\n"},
}

func TestTools(t *testing.T) { each(t, tools) }

// inCheckout mounts a checkout of the caller's, which others may not enter.
func inCheckout(t *testing.T, who testkit.Who, file string) []string {
	t.Helper()
	dir := testkit.Dir(t)
	git(t, dir, "init", "-q", ".")
	git(t, dir, "-c", "user.name=t", "-c", "user.email=t@example.invalid", "commit", "-q", "--allow-empty", "-m", "first")
	own(t, who, dir)
	return []string{"-v", dir + ":/repo", file}
}
