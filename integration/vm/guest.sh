# What a test machine does before its suites, with sh. boot.go puts source=
# before it, which init has mounted on /vm/src, built= and programs=, and a line
# "suite WHO PACKAGE BINARY ARGUMENTS..." for each suite behind it.
export PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/root TMPDIR=/tmp

rm -f /.dockerenv # where the host is a container, the machine is none
mkfs.ext4 -q /dev/vda && mount /dev/vda /var/tmp
mkdir /var/tmp/tmp && mount --bind /var/tmp/tmp /tmp # a tmpfs cannot map ids before Linux 6.3
chmod 1777 /tmp /var/tmp
mkswap /dev/vdb >/dev/null && swapon /dev/vdb
[ -d /sys/kernel/tracing/events ] || mount -t tracefs tracefs /sys/kernel/tracing
echo 1 >/proc/sys/kernel/unprivileged_userns_clone 2>/dev/null
cp "$built/sandglass" "$built/sandglass-image" /vm/ && chmod 755 /vm/sandglass /vm/sandglass-image

export SANDGLASS_TEST_BINARY=/vm/sandglass SANDGLASS_TEST_IMAGE_BINARY=/vm/sandglass-image
export SANDGLASS_TEST_COMPILED=$programs
[ ! -e "$built/runc" ] || export SANDGLASS_TEST_RUNC=$built/runc
[ ! -e /vm/src/build/vm/dist ] || export SANDGLASS_TEST_DEB=$(echo /vm/src/build/vm/dist/*.deb)
export SANDGLASS_TEST_PATIENCE=300s
export SANDGLASS_TEST_CLOCK=1 SANDGLASS_TEST_OWN_MACHINE=1 # its clock and settings are nobody else's
[ ! -d "$built/../apparmor" ] || export SANDGLASS_TEST_APPARMOR=$(realpath "$built/../apparmor")

as_root() { "$@"; }
as_user() {
  systemctl start user@1000.service
  setpriv --reuid 1000 --regid 1000 --init-groups env HOME="$(getent passwd 1000 | cut -d: -f6)" \
    XDG_RUNTIME_DIR=/run/user/1000 DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1000/bus \
    systemd-run --user --quiet --scope -p Delegate=yes "$@"
}

suite() {
  who=$1 package=$2 binary=$3
  shift 3
  echo "@@ begin $package"
  (cd "/vm/src/$package" && $who "$built/$binary" "$@")
  # On a line of its own, whatever the last output was.
  printf '\n@@ end %s %d\n' "$package" $?
}
