#!/bin/bash
# Installs the Debian packages that a make target needs and that are missing.
# Nothing missing: nothing is called and nothing changes.
#
#   hack/setup.sh demo|test|vm|compat
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
gpg gpg
gpg-agent gpg-agent
gpgconf gpgconf
pkg-config pkg-config
/usr/include/seccomp.h libseccomp-dev
newuidmap uidmap
rpm rpm
python3:ensurepip python3-venv
python3:setuptools python3-setuptools
python3:wheel python3-wheel
setpriv util-linux"

# The test machines see this host's / and boot its systemd; see docs/VM.md.
vm="$test
qemu-system-x86_64 qemu-system-x86
qemu-system-aarch64 qemu-system-arm
aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
/usr/aarch64-linux-gnu/include/stdio.h libc6-dev-arm64-cross
/usr/lib/qemu/virtiofsd qemu-system-common
xz xz-utils
dpkg-deb dpkg
unshare util-linux
podman podman
/sbin/mkfs.ext4 e2fsprogs
/lib/systemd/systemd systemd
/usr/lib/systemd/user/dbus.socket dbus-user-session
/lib/x86_64-linux-gnu/security/pam_systemd.so libpam-systemd"

# The programs of integration/compat: 500 MB to load and 2 GB on disk where there
# is nothing but test.
compat="$test
python3:numpy python3-numpy
lib:libopenblas.so.0 libopenblas0-pthread
python3:pandas python3-pandas
python3:matplotlib python3-matplotlib
python3:scipy python3-scipy
python3:lxml python3-lxml
python3:PIL python3-pil
python3:requests python3-requests
npm npm
tsc node-typescript
mypy mypy
strace strace
gdb gdb
curl curl
wget wget
ip iproute2
openssl openssl
busybox busybox-static
bsdtar libarchive-tools
runc runc
bindfs bindfs
musl-gcc musl-tools
free procps
gawk gawk
jq jq
make make
g++ g++
javac default-jdk-headless
perl:threads perl
ruby ruby
php php-cli
lua5.4 lua5.4
Rscript r-base-core
/usr/bin/convert imagemagick
chromium chromium
zsh zsh
fish fish
groff groff-base
man man-db"

case "${1:-}" in
demo) wanted=$demo ;;
test) wanted=$test ;;
vm) wanted=$vm ;;
compat) wanted=$compat ;;
*) echo 'usage: hack/setup.sh demo|test|vm|compat' >&2; exit 2 ;;
esac

# has says whether a command, a file, a library or a module is there. The Python
# that counts is Debian's: the sandbox of another user may see no other.
has() {
  case "$1" in
  /*) [ -e "$1" ] ;;
  python3:*) /usr/bin/python3 -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)' "${1#python3:}" 2>/dev/null ;;
  perl:*) /usr/bin/perl -M"${1#perl:}" -e 1 2>/dev/null ;;
  lib:*) /sbin/ldconfig -p | grep -F "${1#lib:} " >/dev/null ;;
  *) command -v "$1" >/dev/null || [ -x "/usr/bin/$1" ] ;;
  esac
}

# install calls apt-get for packages, as root.
install() {
  if ! command -v apt-get >/dev/null; then
    echo "setup: missing: $* (names of Debian packages); there is no apt-get here to install them" >&2
    exit 1
  fi
  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
      echo "setup: missing: $*" >&2
      echo "hint: as root: apt-get install $*" >&2
      exit 1
    fi
    as_root=(sudo)
  fi
  echo "setup: installing $*"
  "${as_root[@]}" apt-get update -q
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@"
}

missing=()
while read -r what package; do
  has "$what" || missing+=("$package")
done <<<"$wanted"
if [ ${#missing[@]} != 0 ]; then install "${missing[@]}"; fi

# unpack_postgresql puts the server into build/: its package would make a user
# and start a server on this host. Of what it needs, the libraries are installed.
unpack_postgresql() {
  local dir server libs
  dir=$(dirname "$0")/../build/postgresql
  if [ -d "$dir" ]; then return; fi
  server=$(apt-cache depends postgresql | sed -n 's/^ *Depends: \(postgresql-[0-9]*\)$/\1/p')
  rm -rf "$dir.new"
  mkdir -p "$dir.new"
  cd "$dir.new"
  echo "setup: unpacking $server into build/postgresql"
  apt-get download -q "$server" "postgresql-client-${server#postgresql-}"
  # The compiler of queries, libllvm, is 100 MB, and the server works without.
  libs=$(for deb in *.deb; do dpkg-deb -f "$deb" Depends; done |
    tr ',' '\n' | sed -n 's/^ *\(lib[^ |]*\).*/\1/p' | grep -v '^libllvm' | sort -u)
  missing=()
  for package in $libs; do
    dpkg -s "$package" >/dev/null 2>&1 || missing+=("$package")
  done
  if [ ${#missing[@]} != 0 ]; then install "${missing[@]}"; fi
  for deb in *.deb; do dpkg-deb -x "$deb" .; done
  rm -- *.deb
  chmod 755 .
  cd - >/dev/null
  mv -T "$dir.new" "$dir"
}
if [ "$1" = compat ]; then unpack_postgresql; fi
