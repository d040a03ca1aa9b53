#!/bin/bash
# go test, with a summary that hides no skip: hack/testsum prints every failure
# with its output, every skip with its reason, and the count.
#
#   hack/test.sh [GO TEST FLAGS] PACKAGE...
set -uo pipefail
cd "$(dirname "$0")/.."
go test -json "$@" | go run ./hack/testsum -skips hack/skips.txt
