#!/bin/sh
# D10: merged /usr, ELF loader. On merged-/usr systems /bin, /lib, /lib64 are links: binding /usr
# alone leaves no ELF loader ("execvp: No such file" for a file that is there); mounting onto the
# link fails.
bad=
for p in /bin/sh /usr/bin/env; do [ -x $p ] || bad="$bad $p"; done
for l in /bin /sbin /lib /lib64; do [ -L $l ] && [ ! -e $l ] && bad="$bad dangling:$l"; done
for e in /bin/sh /usr/bin/env /usr/bin/python3 /usr/bin/git; do
  [ -e "$e" ] || continue
  "$e" --version </dev/null >/dev/null 2>&1; [ $? = 127 ] && bad="$bad cannot-load:$e"
  "$e" --version </dev/null >/dev/null 2>&1; [ $? = 126 ] && bad="$bad cannot-exec:$e"
done
ld=$(ls -U /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1 /lib/ld-musl-*.so.1 2>/dev/null | head -1)
[ -n "$ld" ] || bad="$bad no-ELF-loader"
[ -e /etc/alternatives ] && for l in /etc/alternatives/awk /etc/alternatives/editor; do [ -L $l ] && [ ! -e $l ] && bad="$bad dangling:$l"; done
[ -z "$bad" ] && echo "PASS ($ld)" || { echo "FAIL:$bad"; exit 1; }
