#!/bin/bash
# The tests in virtual machines: kernels with cgroup v2, under QEMU's software
# emulation. Arguments are those of integration/vm; see docs/VM.md.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "$(uname -m)" != x86_64 ]; then
  # The machines run this host's own programs, and Debian's amd64 kernels.
  echo "test-vm: not run: SKIP(want amd64, have $(uname -m))"
  exit 0
fi
hack/setup.sh vm
mkdir -p build
go build -o build/vmtest ./integration/vm
as_root=()
if [ "$(id -u)" != 0 ] && command -v sudo >/dev/null; then
  # The machines see / through a read-only mount, which only root can make.
  as_root=(sudo env "PATH=$PATH" "HOME=$HOME" "GOCACHE=$(go env GOCACHE)" "GOMODCACHE=$(go env GOMODCACHE)")
fi
status=0
"${as_root[@]}" build/vmtest "$@" || status=$?
case " $* " in *" -only "* | *" -suite "* | *" -run "* | *" -update "*) exit $status ;; esac
# Two machines that differ, compared by what shows inside: docs/LEAKS.md.
go test -c -o build/twohosts.test ./integration/twohosts
cd integration/twohosts
two_hosts() { "${as_root[@]}" env SANDGLASS_TWO_MACHINES=1 ../../build/twohosts.test -test.run '^TestTwoMachines$' -test.timeout 15m; }
again() { [[ " $* " == *" -again "* ]] && echo "flaky or broken: integration/twohosts TestTwoMachines"; }
two_hosts || { again "$@" && two_hosts; } || {
  echo "failed: integration/twohosts TestTwoMachines"
  status=1
}
exit $status
