# Sourced: Debian's packages of any release and architecture, downloaded with
# lists of their own and checked by apt against Debian's keys. This host's apt
# and dpkg see nothing of it.

# debian DIR RELEASE ARCH: makes DIR and sets apt_get and apt_cache.
debian() {
  local state release=$2 arch=$3
  mkdir -p "$1"/{lists,cache/archives}/partial
  state=$(cd "$1" && pwd)
  : >"$state/status"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $release main" >"$state/sources.list"
  local options=(-o "Dir::Etc::sourcelist=$state/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o "Dir::State::lists=$state/lists" -o "Dir::State::status=$state/status" -o "Dir::Cache=$state/cache"
    -o "APT::Architecture=$arch" -o "APT::Architectures=$arch"
    -o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false -o Acquire::Retries=1
    -o APT::Sandbox::User=root -o Debug::NoLocking=1)
  apt_get=(apt-get -qq "${options[@]}")
  apt_cache=(apt-cache "${options[@]}")
  "${apt_get[@]}" update
}

# debian_root ROOT RELEASE ARCH PACKAGE...: unpacks these with all that they need.
# What is there is kept: a second call downloads nothing.
debian_root() {
  local root=$1 release=$2 arch=$3 state=$1.apt package name
  shift 3
  [ ! -e "$root/complete" ] || return 0
  rm -rf "$root" "$state"
  mkdir -p "$root"/usr/{bin,sbin,lib,lib64}
  debian "$state" "$release" "$arch"
  "${apt_get[@]}" -y --no-install-recommends --download-only install "$@"
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
