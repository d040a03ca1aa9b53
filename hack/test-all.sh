#!/bin/bash
# All tests: this host's, then those in the test machines, whatever became of
# the first. The end is one table of which tests ran where, and the count.
set -uo pipefail
cd "$(dirname "$0")/.."
failed=0
mkdir -p build
export SANDGLASS_TEST_JSON=$PWD/build/host.json
hack/test.sh "$@" ./... || failed=1
unset SANDGLASS_TEST_JSON
hack/test-vm.sh -host build/host.json || failed=1
exit "$failed"
