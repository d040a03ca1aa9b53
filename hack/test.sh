#!/bin/bash
# go test, with a summary that hides no skip: hack/testsum prints every failure
# with its output, every skip with its reason, and the count.
#
#   hack/test.sh [GO TEST FLAGS] PACKAGE...
#
# SANDGLASS_TEST_JSON=FILE keeps what go test -json said, for the table of
# hack/test-all.sh.
set -uo pipefail
# A test binary that links C cannot be a sandbox's PID 1, as the command is not
# built with it. Without these tags package net would bring it in; the tests that
# link runc have it all the same.
export GOFLAGS="$(go env GOFLAGS) -tags=netgo,osusergo"
cd "$(dirname "$0")/.."
go test -json "$@" | tee "${SANDGLASS_TEST_JSON:-/dev/null}" | go run ./hack/testsum -skips hack/skips.txt
