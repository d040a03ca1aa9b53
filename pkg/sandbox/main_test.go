package sandbox_test

import (
	"testing"

	"sandglass/internal/testkit/defaults"
)

// The examples show the default policy.
func TestMain(m *testing.M) { defaults.Main(m) }
