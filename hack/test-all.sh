#!/bin/bash
# All tests: this host's, and beside them those in the test machines, whatever
# becomes of the first. The end is one table of which tests ran where, and the count.
set -uo pipefail
cd "$(dirname "$0")/.."
failed=0
mkdir -p build
machines() { hack/test-vm.sh -host build/host.json; }

# Before any test looks at what is installed.
if [ "$(uname -m)" = x86_64 ]; then hack/setup.sh vm || exit 1; fi

# This host's tests often wait. One machine takes what they leave of two CPUs, and
# when the lock is free, which says that they have ended, there are two. Without root
# the machines come after them: in the background sudo could ask for no password, and
# nobody but root could end what it has started.
exec 9>>build/host.json
flock -n 9 || { echo 'test: another run of all tests is at work in this directory' >&2; exit 1; }
: >build/host.json
if [ "$(id -u)" = 0 ]; then
  set -m # in a process group of their own, which ends with this script
  machines >build/vm.log 2>&1 9>&- &
  set +m
  vm=$!
  trap 'kill -- "-$vm" 2>/dev/null' EXIT
fi
SANDGLASS_TEST_JSON=$PWD/build/host.json hack/test.sh "$@" ./... 9>&- || failed=1
exec 9>&-

# Software emulation is 5 to 15 times slower than this host, and a neighbour's
# load shows in it: what fails there is named, and the machines run once more.
# This host's own tests are never repeated.
echo "=== the test machines"
if [ "$(id -u)" = 0 ]; then
  tail -n +1 -f --pid="$vm" build/vm.log
  wait "$vm"
  machines_failed=$?
else
  machines 2>&1 | tee build/vm.log
  machines_failed=$?
fi
trap - EXIT
if [ "$machines_failed" != 0 ]; then
  if grep -q '^failed: ' build/vm.log; then
    echo "test-vm: failed, and runs once more. A name that is not in the next list of failures is flaky:"
    sed -n 's/^failed: /flaky or broken: /p' build/vm.log
    machines || failed=1
  else
    failed=1 # not in a machine: the table has this host's failures too
  fi
fi
exit "$failed"
