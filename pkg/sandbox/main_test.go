package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"sandglass/pkg/sandbox"
)

// TestMain gives the examples what main gives a program. They show the default
// policy, so they need a host that can enforce it.
func TestMain(m *testing.M) {
	sandbox.Init()
	spec := sandbox.Default()
	spec.Program.Command = []string{"true"}
	_, err := sandbox.Run(context.Background(), spec)
	var refused *sandbox.Error
	if errors.As(err, &refused) && os.Geteuid() != 0 {
		fmt.Println("SKIP(want a control group for this user, have: " + err.Error() + ")")
		os.Exit(0)
	}
	os.Exit(m.Run())
}
