# host.sh NAME DIR COMMAND...: runs the command on a host that is called NAME and
# holds things that are called after it. In mount and UTS namespaces of its own.
set -eu
name=$1 dir=$2
shift 2
hostname "$name-host"
domainname "$name-domain" 2>/dev/null || echo "$name-domain" >/proc/sys/kernel/domainname
mkdir -p "$dir/etc" "$dir/$name-path"
mount -t tmpfs -o mode=755 "$name-volume" "$dir/etc"
cp -a /etc/. "$dir/etc/"
cd "$dir/etc"
echo "$name-user:x:4711:4711:$name-user:/home/$name-user:/bin/sh" >>passwd
echo "$name-user:x:4711:" >>group
echo "$name-host" >hostname
echo "127.0.0.1 localhost $name-host" >hosts
echo "nameserver 192.0.2.1
search $name-domain" >resolv.conf.new && rm -f resolv.conf && mv resolv.conf.new resolv.conf
rm -f machine-id
echo "$name-machine" >machine-id
mkdir -p ssh && echo "$name-key" >ssh/ssh_host_ed25519_key
mount --bind "$dir/etc" /etc
# Other file systems, and their number differs.
for i in $(seq ${#name}); do
	mkdir -p "$dir/$name-mount-$i"
	mount -t tmpfs "$name-mount-$i" "$dir/$name-mount-$i"
done
cd "$dir/$name-path"
exec "$@"
