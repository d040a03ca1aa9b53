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
mkdir -p "$1"
dir=$(cd "$1" && pwd)
exec 9>"$dir/lock"
flock 9

# fetch RELEASE PACKAGE...: with all that they need, into DIR/RELEASE.
fetch() {
  local release=$1 root=$dir/$1 state=$dir/apt-$1
  shift
  [ ! -e "$root/complete" ] || return 0
  rm -rf "$root" "$state"
  mkdir -p "$state"/{lists,cache/archives}/partial "$root"/usr/{bin,sbin,lib,lib64}
  : >"$state/status"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian ${suite:-$release} main" >"$state/sources.list"
  local apt=(apt-get -qq -o "Dir::Etc::sourcelist=$state/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o "Dir::State::lists=$state/lists" -o "Dir::State::status=$state/status" -o "Dir::Cache=$state/cache"
    -o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false -o Acquire::Retries=1
    -o APT::Sandbox::User=root -o Debug::NoLocking=1)
  "${apt[@]}" update
  "${apt[@]}" -y --no-install-recommends --download-only install "$@"
  # As a merged /usr has them, whatever the packages of that time say.
  for name in bin sbin lib lib64; do ln -s "usr/$name" "$root/$name"; done
  for package in "$state"/cache/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink --no-same-owner -C "$root" --exclude='./dev/*'
  done
  ln -sf dash "$root/usr/bin/sh"
  chmod -R go+rX "$root"
  rm -rf "$state"
  touch "$root/complete"
}

fetch bullseye dash coreutils perl-base python3-minimal
fetch bookworm dash coreutils perl-base python3-minimal
fetch trixie dash coreutils perl-base python3-minimal
suite=bookworm fetch musl musl musl-dev
