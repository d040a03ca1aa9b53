#!/usr/bin/env bash
# A08: process substitution without /dev/fd. Bash process substitution opens /dev/fd/63, which is
# missing when /dev is a bare tmpfs or devtmpfs; read loops then quietly see no input.
n=0
while IFS= read -r _; do n=$((n + 1)); done < <(printf 'a\nb\n')
[ "$n" = 2 ] || { echo "FAIL: loop over substitution saw $n lines"; exit 1; }
cmp -s <(echo same) <(echo same) || { echo "FAIL: two substitutions"; exit 1; }
[ "$(echo up | cat /dev/stdin)" = up ] || { echo "FAIL: /dev/stdin"; exit 1; }
t=$(mktemp) && echo deep > >(cat >"$t"); wait; sleep 0.2
[ "$(cat "$t")" = deep ] || { echo "FAIL: output substitution"; exit 1; }
rm -f "$t"; echo PASS
