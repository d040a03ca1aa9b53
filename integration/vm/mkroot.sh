#!/bin/bash
# The root of a test machine of another architecture, which can run nothing of
# this host's: a small Debian, unpacked and never installed:
#
#   integration/vm/mkroot.sh DIR RELEASE ARCH
set -euo pipefail
. "$(dirname "$0")/../../hack/debian.sh"
debian_root "$1" "$2" "$3" base-passwd dash bash coreutils grep sed findutils util-linux mount mawk procps iproute2 e2fsprogs \
  libc-bin perl-base python3 busybox-static
# What the packages' own scripts would have made.
mkdir -p "$1"/{etc,root,home,dev,proc,sys,run,tmp,mnt,var/tmp,vm,src}
chmod 1777 "$1/tmp" "$1/var/tmp"
cp "$1/usr/share/base-passwd/passwd.master" "$1/etc/passwd"
cp "$1/usr/share/base-passwd/group.master" "$1/etc/group"
printf '127.0.0.1 localhost\n::1 localhost\n' >"$1/etc/hosts"
printf 'passwd: files\ngroup: files\nhosts: files dns\n' >"$1/etc/nsswitch.conf"
echo 'root:*:19000:0:99999:7:::' >"$1/etc/shadow"
chmod 600 "$1/etc/shadow"
ln -sf mawk "$1/usr/bin/awk"
