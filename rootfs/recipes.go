package etcfiles

import "embed"

// Recipes are those of sandglass image build, which alone links them.
//
//go:embed *.recipe
var Recipes embed.FS
