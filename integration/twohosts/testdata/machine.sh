# What a machine does that is called NAME: it takes the name, and so do its user,
# its volume, its processes; then root and an ordinary user look at it from inside.
export PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/root TMPDIR=/tmp
hostname "$NAME-host"
echo "$NAME-domain" >/proc/sys/kernel/domainname
for f in passwd group; do cp /etc/$f /vm/$f && cat /vm/$f >/etc/$f; done
echo "$NAME-user:x:4711:4711:$NAME-user:/home/$NAME-user:/bin/sh" >>/etc/passwd
rm -f /etc/hostname /etc/machine-id /etc/hosts
echo "$NAME-host" >/etc/hostname
echo "$NAME-machine" >/etc/machine-id
echo "127.0.0.1 localhost $NAME-host" >/etc/hosts
mkfs.ext4 -q -L "$NAME-label" /dev/vda && mount /dev/vda /var/tmp
chmod 1777 /var/tmp /tmp
ip link add "$NAME-if" type dummy 2>/dev/null
echo 1 >/proc/sys/kernel/unprivileged_userns_clone 2>/dev/null
chmod 755 /vm /vm/sandglass /vm/dump
for i in $(/vm/busybox seq ${#NAME}); do # another number of them in each machine
	mkdir -p "/var/tmp/$NAME-mount-$i" && mount -t tmpfs "$NAME-mount-$i" "/var/tmp/$NAME-mount-$i"
done
cat >"/var/tmp/$NAME-process" <<'S'
read -r line </var/tmp/hold
S
mkfifo /var/tmp/hold
for i in 1 2 3; do SECRET="$NAME-environment" /bin/sh "/var/tmp/$NAME-process" & done
mkdir "/var/tmp/$NAME-path" && cd "/var/tmp/$NAME-path"

look() {
	echo "@@ $1"
	shift
	SECRET="$NAME-environment" "$@" run --timeout 250s --output-limit 64m -v /vm/dump:/task/dump:ro "--allow-degraded=$degraded" -- /task/dump ||
		echo "@@ exit $?"
}
degraded=io look root /vm/sandglass
degraded=memory,cpu,pids look user setpriv --reuid 1000 --regid 1000 --clear-groups /vm/sandglass
echo "@@ end"
