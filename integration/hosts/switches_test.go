package hosts

import (
	"testing"

	"sandglass/internal/testkit"
	"sandglass/internal/testkit/agree"
)

// price is what doctor says of a switch that is opened to everybody.
const price = "   # its price: every user's programs reach more of the kernel"

// Each switch that turns namespaces off is named, whoever meets it, and the
// command below is all that a run needs.
func TestSwitches(t *testing.T) {
	ownMachine(t)
	for _, s := range []struct {
		name, what, hint string
		root             bool // root meets it as well
	}{
		{"kernel.unprivileged_userns_clone", "user namespaces are off for ordinary users: kernel.unprivileged_userns_clone is 0",
			"sysctl -w kernel.unprivileged_userns_clone=1" + price, false},
		{"user.max_user_namespaces", "user namespaces cannot be made: user.max_user_namespaces is 0",
			"sysctl -w user.max_user_namespaces=15000" + price, true},
		{"user.max_net_namespaces", "network namespaces cannot be made: user.max_net_namespaces is 0",
			"sysctl -w user.max_net_namespaces=15000" + price, true},
	} {
		t.Run(s.name, func(t *testing.T) {
			testkit.Each(t, func(t *testing.T, who testkit.Who) {
				works(t, echo(t, who))
				setting(t, s.name, "0")
				if who.IsRoot() && !s.root {
					works(t, echo(t, who))
					return
				}
				refused(t, agree.As(who), echo(t, who), s.what, s.hint)
				paste(t, s.hint)
				works(t, echo(t, who))
			})
		})
	}
}
