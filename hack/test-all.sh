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

# Software emulation is 5 to 15 times slower than this host, and a neighbour's
# load shows in it: what fails there is named, and the machines run once more.
# This host's own tests are never repeated.
machines() { hack/test-vm.sh -host build/host.json 2>&1 | tee build/vm.log; }
if ! machines; then
  if grep -q '^failed: ' build/vm.log; then
    echo "test-vm: failed, and runs once more. A name that is not in the next list of failures is flaky:"
    sed -n 's/^failed: /flaky or broken: /p' build/vm.log
    machines || failed=1
  else
    failed=1 # not in a machine: the table has this host's failures too
  fi
fi
exit "$failed"
