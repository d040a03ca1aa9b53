// Package defaults is for tests that make sandboxes in their own process, under the
// default policy.
package defaults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"sandglass/pkg/sandbox"
)

// Main gives tests what main gives a program, on a host that can enforce the
// default policy.
func Main(m *testing.M) {
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
