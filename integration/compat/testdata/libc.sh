set -e
cd /tmp && mkdir -p a/b && echo one >a/f && cp a/f a/b/g && cp -a a c && ln -s f a/l && mv a/b/g a/g
test "$(cat c/b/g)" = one && test "$(ls a | tr '\n' ' ')" = "b f g l " && test -r a/f && test ! -x a/f
chmod 600 a/f && touch -d '2001-02-03 04:05:06 UTC' a/f && test "$(stat -c '%a %Y' a/f)" = "600 981173106"
test "$(seq 5 | sort -rn | head -n 1 | wc -c)" -eq 2 && test "$(printf 'b\na\n' | sort | paste -s -d ,)" = a,b
(exit 4) & wait $! || test $? -eq 4
trap 'echo trapped >t' TERM; kill -TERM $$; test "$(cat t)" = trapped
df . >/dev/null && du -s . >/dev/null && date >/dev/null && id -u >/dev/null && nproc >/dev/null && truncate -s 10 z && dd if=z of=y bs=5 2>/dev/null
timeout 5 sleep 0.01 && mktemp >/dev/null && rm -r a c && mkfifo p && test -p p
echo PASS
