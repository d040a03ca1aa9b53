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
if [ "$(id -u)" != 0 ] && command -v sudo >/dev/null; then
  # The machines see / through a read-only mount, which only root can make.
  exec sudo env "PATH=$PATH" "HOME=$HOME" "GOCACHE=$(go env GOCACHE)" "GOMODCACHE=$(go env GOMODCACHE)" build/vmtest "$@"
fi
exec build/vmtest "$@"
