#!/bin/bash
# All tests: this host's, then those in the test machines, whatever became of
# the first. The end is one table of which tests ran where, and the count.
# What fails runs once more, and is named as flaky or broken whatever comes of it.
set -uo pipefail
cd "$(dirname "$0")/.."
failed=0
mkdir -p build
host=build/host.json

# A machine that stands still for a moment fails a test or two. More than three, a
# package as a whole, or a test of escape, where what gives way once has given way,
# are no bad luck.
host_again() {
  local list package tests
  list=$(go run ./hack/again -most 3 -never '/escape$' list $host) || return 1
  [ -n "$list" ] || return 1 # a skip that must not be
  : >build/again.json
  while IFS=$'\t' read -r package tests; do
    tests=${tests//$'\t'/|}
    echo "flaky or broken: $package $tests: once more, with no other beside it"
    SANDGLASS_TEST_JSON=build/one.json hack/test.sh -count=1 -run "^($tests)\$" "$package" </dev/null
    cat build/one.json >>build/again.json
  done <<<"$list"
  go run ./hack/again merge $host build/again.json && go run ./hack/testsum -skips hack/skips.txt <$host
}

SANDGLASS_TEST_JSON=$host hack/test.sh "$@" ./... || host_again || failed=1
hack/test-vm.sh -again -host $host || failed=1
exit "$failed"
