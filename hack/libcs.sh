#!/bin/bash
# Roots of Debian 11, 12 and 13 with a shell, coreutils, Perl and Python in them,
# and musl to link against, out of packages that are downloaded, checked by apt
# against Debian's keys, unpacked and never installed:
#
#   hack/libcs.sh DIR
#
# leaves DIR/bullseye, DIR/bookworm, DIR/trixie and DIR/musl. What is there is
# kept: a second call downloads nothing.
set -euo pipefail
. "$(dirname "$0")/debian.sh"
mkdir -p "$1"
dir=$(cd "$1" && pwd)
exec 9>"$dir/lock"
flock 9

for release in bullseye bookworm trixie; do
  debian_root "$dir/$release" "$release" amd64 dash coreutils perl-base python3-minimal
done
debian_root "$dir/musl" bookworm amd64 musl musl-dev
