#!/bin/bash
# Installs the Debian packages that a make target needs and that are missing.
# Nothing missing: nothing is called and nothing changes.
#
#   hack/setup.sh demo|test|vm
set -euo pipefail

# command or header, and the package that has it
demo='python3 python3
node nodejs
gcc gcc
/usr/include/stdio.h libc6-dev'
test="$demo
/usr/bin/python3 python3
bash bash
perl perl-base
git git
pkg-config pkg-config
/usr/include/seccomp.h libseccomp-dev
python3:ensurepip python3-venv
setpriv util-linux"

# The test machines see this host's / and boot its systemd; see docs/VM.md.
vm="$test
qemu-system-x86_64 qemu-system-x86
/usr/lib/qemu/virtiofsd qemu-system-common
xz xz-utils
dpkg-deb dpkg
unshare util-linux
/sbin/mkfs.ext4 e2fsprogs
/lib/systemd/systemd systemd
/usr/lib/systemd/user/dbus.socket dbus-user-session
/lib/x86_64-linux-gnu/security/pam_systemd.so libpam-systemd"

case "${1:-}" in
demo) wanted=$demo ;;
test) wanted=$test ;;
vm) wanted=$vm ;;
*) echo 'usage: hack/setup.sh demo|test|vm' >&2; exit 2 ;;
esac

# has says whether a command, a file or a Python module is there. The Python
# that counts is Debian's: the sandbox of another user may see no other.
has() {
  case "$1" in
  /*) [ -e "$1" ] ;;
  python3:*) /usr/bin/python3 -c "import ${1#python3:}" 2>/dev/null ;;
  *) command -v "$1" >/dev/null || [ -x "/usr/bin/$1" ] ;;
  esac
}

missing=()
while read -r what package; do
  has "$what" || missing+=("$package")
done <<<"$wanted"
if [ ${#missing[@]} = 0 ]; then exit 0; fi

if ! command -v apt-get >/dev/null; then
  echo "setup: missing: ${missing[*]} (names of Debian packages); there is no apt-get here to install them" >&2
  exit 1
fi
as_root=()
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "setup: missing: ${missing[*]}" >&2
    echo "hint: as root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "setup: installing ${missing[*]}"
"${as_root[@]}" apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
