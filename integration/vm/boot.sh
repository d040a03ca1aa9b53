#!/bin/bash
# Boots the kernel of DIR (see mkbase.sh) under QEMU's software emulation, with
# this machine's / below a tmpfs, and runs FILE there with sh, as root:
#
#   integration/vm/boot.sh DIR FILE
#
# prints what FILE prints and exits with its status; 125 when the machine never
# said one. FILE is /vm/run there, and whatever lies beside it is in /vm too.
#
#   VMINIT=systemd   systemd is PID 1 and starts FILE as a unit
#   LIMIT=600        seconds until the machine is stopped
#   CONSOLE=FILE     keep the kernel's messages
#   APPEND=WORDS     more of the kernel's command line
#   CPUS=2 MEMORY=2G
#   NINE=1           a share of 9p, with the tag "nine": an empty directory
#   ARCH=arm64 ROOT=DIR   a machine of another architecture, with DIR in place
#                    of this machine's /; the source is at /src there
set -euo pipefail
dir=$(realpath "$1") file=$(realpath "$2")
here=$(cd "$(dirname "$0")" && pwd)
source=$(realpath "$here/../..")
root=$(realpath "${ROOT:-/}") at=$source
[ "$root" = / ] || { at=/src; mkdir -p "$root$at"; }
tmp=$(mktemp -d /tmp/sandglass-vm.XXXXXX)
share=
trap '[ -z "$share" ] || kill "$share" 2>/dev/null || true; rm -rf "$tmp"' EXIT

# The second archive of the initramfs: init and the work.
mkdir -p "$tmp/more/vm"
cp "$here/init" "$tmp/more/init"
chmod 755 "$tmp/more/init"
cp -r "$(dirname "$file")/." "$tmp/more/vm/"
cp "$file" "$tmp/more/vm/run"
(cd "$tmp/more" && find . | "$dir/busybox" cpio -o -H newc 2>/dev/null) >"$tmp/more.cpio"
cat "$dir/base.cpio.gz" "$tmp/more.cpio" >"$tmp/initrd"

# A disk for files, to be limited, and one for swap, to be kept from.
truncate -s 512M "$tmp/disk" "$tmp/swap"

# This virtiofsd has no read-only switch: it is given a read-only bind mount, in
# a mount namespace of its own, so that no guest can write to the host. Other
# file systems of the host are left out, but for the one with this source.
mkdir "$tmp/ro"
unshare -m --propagation private sh -c "
  mount --bind '$root' '$tmp/ro' && mount -o remount,bind,ro '$tmp/ro' &&
  mount --bind '$source' '$tmp/ro$at' && mount -o remount,bind,ro '$tmp/ro$at' &&
  exec /usr/lib/qemu/virtiofsd --socket-path='$tmp/share.sock' -o source='$tmp/ro' -o cache=always -o no_posix_lock" \
  >"$tmp/share.log" 2>&1 &
share=$!
for _ in $(seq 500); do [ -S "$tmp/share.sock" ] && break; sleep 0.02; done

# mapped-file: whatever owner and mode the guest gives its files, they stay this
# script's own here, and plain ones.
nine=()
if [ -n "${NINE:-}" ]; then
  mkdir "$tmp/nine"
  nine=(-virtfs "local,path=$tmp/nine,mount_tag=nine,security_model=mapped-file")
fi

# thread=single: with a thread for each CPU the emulator lets one CPU run code
# that the other is patching, and the kernel dies of it (Oops: int3).
# no_timer_check: on a busy host the kernel finds that its timer does not work.
# erms and fsrm are string instructions that it does byte by byte, and pauth is
# a cipher for each return from a function.
case ${ARCH:-amd64} in
amd64) qemu=(qemu-system-x86_64 -M q35 -cpu "max,erms=off,fsrm=off,la57=off") tty=ttyS0 ;;
arm64) qemu=(qemu-system-aarch64 -M virt -cpu "max,pauth-impdef=on") tty=ttyAMA0 ;;
esac
# --foreground: in this script's process group, which is ended as a whole.
timeout --foreground "${LIMIT:-600}" "${qemu[@]}" -accel tcg,thread=single \
  -smp "${CPUS:-2}" -m "${MEMORY:-2G}" -nodefaults -no-reboot -display none \
  -object "memory-backend-memfd,id=ram,size=${MEMORY:-2G},share=on" -numa node,memdev=ram \
  -chardev "socket,id=share,path=$tmp/share.sock" -device vhost-user-fs-pci,chardev=share,tag=host \
  -drive "file=$tmp/disk,if=virtio,format=raw,cache=unsafe" -drive "file=$tmp/swap,if=virtio,format=raw,cache=unsafe" \
  ${nine[@]+"${nine[@]}"} \
  -kernel "$dir/vmlinuz" -initrd "$tmp/initrd" \
  -append "console=$tty quiet no_timer_check panic=-1 oops=panic mitigations=off vminit=${VMINIT:-sh} systemd.getty_auto=no systemd.show_status=false systemd.unified_cgroup_hierarchy=1 ${APPEND:-}" \
  -serial "file:$tmp/console" -device virtio-serial-pci \
  -chardev file,id=out,path=/dev/stdout,append=on -device virtserialport,chardev=out,name=out \
  </dev/null | cat || echo "boot: the machine failed or ran past ${LIMIT:-600} s" >&2

status=$(tr -d '\r' <"$tmp/console" | sed -n 's/.*VM-EXIT \([0-9]*\).*/\1/p' | tail -n 1)
[ -z "${CONSOLE:-}" ] || cp "$tmp/console" "$CONSOLE"
[ -n "$status" ] || cat "$tmp/console" "$tmp/share.log" >&2
exit "${status:-125}"
