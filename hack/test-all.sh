#!/bin/bash
# All tests: this host's, and beside them those in the test machines, whatever
# becomes of the first. The end is one table of which tests ran where, and the count.
set -uo pipefail
cd "$(dirname "$0")/.."
failed=0
mkdir -p build
machines() { hack/test-vm.sh -host build/host.json; }

# Before any test looks at what is installed, and where a password can be asked for.
if [ "$(uname -m)" = x86_64 ]; then hack/setup.sh vm || exit 1; fi
if [ "$(id -u)" != 0 ] && command -v sudo >/dev/null; then sudo -v; fi

# This host's tests often wait. One machine takes what they leave of two CPUs, and
# when the lock is free, which says that they have ended, there are two.
exec 9>build/host.json
flock 9
set -m # in a process group of their own, which ends with this script
machines >build/vm.log 2>&1 9>&- &
set +m
vm=$!
trap 'kill -- "-$vm" 2>/dev/null' EXIT
SANDGLASS_TEST_JSON=$PWD/build/host.json hack/test.sh "$@" ./... 9>&- || failed=1
exec 9>&-
echo "=== the test machines"
tail -n +1 -f --pid="$vm" build/vm.log

# Software emulation is 5 to 15 times slower than this host, and a neighbour's
# load shows in it: what fails there is named, and the machines run once more.
# This host's own tests are never repeated.
wait "$vm"
machines_failed=$?
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
