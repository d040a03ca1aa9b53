#!/bin/bash
# The kernel and the base of the test machine's initramfs, out of Debian
# packages that are downloaded and unpacked, and never installed:
#
#   integration/vm/mkbase.sh DIR PACKAGE [RELEASE ARCH]
#
# leaves DIR/vmlinuz and DIR/base.cpio.gz. PACKAGE is a kernel's meta package,
# such as linux-image-cloud-amd64, of this host's own release and architecture
# or of the ones that are named. What is there is kept: a second call downloads
# nothing.
set -euo pipefail
dir=$1 meta=$2 release=${3:-} arch=${4:-}
. "$(dirname "$0")/../../hack/debian.sh"

# Loaded at boot where they are not built in, each after what it needs.
modules='virtio_pci virtio_console virtio_blk virtiofs crc32c_generic ext4 overlay loop veth 9pnet_virtio 9p'

# One that was made with other modules is made again.
[ "$(cat "$dir/complete" 2>/dev/null)" != "$modules, busybox" ] || exit 0
mkdir -p "$dir/download"
dir=$(cd "$dir" && pwd)
cd "$dir/download"

# The sandbox user of apt may not enter this directory.
apt_get=(apt-get -qq -o APT::Sandbox::User=root) apt_cache=(apt-cache)
# fetch PACKAGE...: into this directory, with newer lists if those there are too old.
fetch() { "${apt_get[@]}" download "$@" || { "${apt_get[@]}" update && "${apt_get[@]}" download "$@"; }; }
# unpack PACKAGE...: one after the other, into unpacked.
unpack() {
  rm -rf unpacked && mkdir unpacked
  for package; do dpkg-deb -x "$(echo "$package"_*.deb)" unpacked; done
}
busybox() { find unpacked -path '*/bin/busybox' -type f | head -n 1; }

# One busybox for this host, and one for the machine.
fetch busybox-static
unpack busybox-static
cp "$(busybox)" "$dir/busybox"
if [ -n "$release" ]; then debian "$dir/download/apt" "$release" "$arch"; fi

# A meta package depends on the newest kernel of its kind.
newest() { "${apt_cache[@]}" depends "$meta" 2>/dev/null | awk '/Depends: linux-image/ { print $2; exit }'; }
image=$(newest)
if [ -z "$image" ]; then
  "${apt_get[@]}" update
  image=$(newest)
fi
[ -n "$image" ] || { echo "mkbase: apt knows no package $meta" >&2; exit 1; }
rm -f ./*.deb
fetch "$image" busybox-static
unpack "$image" busybox-static
cp unpacked/boot/vmlinuz-* "$dir/vmlinuz"

base=$dir/base
rm -rf "$base" && mkdir -p "$base"/{bin,sbin,dev,proc,sys,etc,root,vm,modules,usr}
cp "$(busybox)" "$base/bin/busybox"
for applet in $("$dir/busybox" --list); do
  [ "$applet" = busybox ] || ln -sf busybox "$base/bin/$applet"
done

# The package has no modules.dep; busybox makes it, without kmod.
tree=$(find unpacked -path '*/lib/modules/*/kernel' -type d | head -n 1)
tree=${tree%/kernel}
"$dir/busybox" depmod -b "${tree%/lib/modules/*}" "$(basename "$tree")" 2>/dev/null
: >"$base/modules/order"
for module in $modules; do
  # "path/module.ko: needed needed": what is needed first stands last. A
  # built-in module has no line.
  awk -v want="$module" -F '[: ]+' '{
    name = $1; sub(/.*\//, "", name); sub(/\.ko.*/, "", name); gsub(/-/, "_", name)
    if (name == want) for (i = NF; i > 0; i--) if ($i != "") print $i
  }' "$tree/modules.dep" |
    while read -r path; do
      name=$(basename "$path" .xz)
      ! grep -qx "$name" "$base/modules/order" || continue
      case $path in
      *.xz) xz -dc "$tree/$path" >"$base/modules/$name" ;;
      *) cp "$tree/$path" "$base/modules/$name" ;;
      esac
      echo "$name" >>"$base/modules/order"
    done
done

(cd "$base" && find . | "$dir/busybox" cpio -o -H newc 2>/dev/null) | gzip -1 >"$dir/base.cpio.gz"
# The kernel unpacks one archive after another, if each starts at a multiple of
# four bytes: boot.sh appends one.
truncate -s %4 "$dir/base.cpio.gz"
cd "$dir" && rm -rf download "$base/modules"
echo "$modules, busybox" >complete
